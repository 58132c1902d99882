"""`snakemake --profile slurm` on a real Slurm: what each job asked for, read from Slurm itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from running import ROOT, contents, environment, finished, snakemake
from slurm.sandbox import Sandbox
from study import FAST, make_cohorts, write_study

pytestmark = pytest.mark.slurm

PROFILE = yaml.safe_load((ROOT / "slurm/config.yaml").read_text())


@pytest.fixture(scope="module")
def run(slurm: Sandbox, tmp_path_factory) -> dict:
    """A small study through Slurm, and the same study without it."""
    cohorts, config = make_cohorts((8,), n_sites=200), FAST | {"device": "auto"}
    local = write_study(tmp_path_factory.mktemp("local"), cohorts, config)
    snakemake(local, "geodesic")
    folder = write_study(tmp_path_factory.mktemp("cluster"), cohorts, config)
    words = ["-m", "snakemake", "--profile", "slurm", "--directory", str(folder), "geodesic"]
    words += ["--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "5"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment() | slurm.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:]
    jobs = [job for job in slurm.jobs() if job["WorkDir"] == str(folder)]
    return {"local": local, "folder": folder, "jobs": jobs, "output": done.stdout}


def rule_of(job: dict[str, str]) -> str:
    """The rule of a job, from the path of its log below the study's `.snakemake/slurm_logs`."""
    return job["StdOut"].split("/slurm_logs/rule_")[1].split("/")[0]


def test_results_equal_those_without_a_cluster(run):
    assert contents(run["folder"]) == contents(run["local"])


def test_every_job_ran_once_and_asked_for_memory_and_time(run):
    rules = sorted(rule_of(job) for job in run["jobs"])
    assert rules == sorted(finished(run["output"]).elements())
    for job in run["jobs"]:
        print(rule_of(job), *(f"{k}={job.get(k)}" for k in ("Partition", "TresPerJob", "TRES")))
        assert job["JobState"] == "COMPLETED"
        assert job["TimeLimit"] != "UNLIMITED"
        assert "mem=" in job["TRES"]


def test_gpu_rules_and_only_they_ask_for_a_gpu_on_its_partition(run):
    seen = set()
    for job in run["jobs"]:
        rule = rule_of(job)
        seen.add(rule)
        on_gpu = rule in PROFILE["set-resources"]
        assert job["Partition"] == ("gpu" if on_gpu else "cpu"), rule
        assert job.get("TresPerJob") == ("gres:gpu:1" if on_gpu else None), rule
    assert {"measure_distance_tile", "close_paths", "ingest_cohort"} <= seen


def test_gpu_rules_say_that_they_run_on_the_cpu_where_there_is_no_gpu(run):
    (log,) = (run["folder"] / "logs/measure_distance_tile").glob("*.log")
    assert " device: cpu: " in log.read_text()
