"""`snakemake --profile slurm` on a real Slurm: what each job requested, as Slurm reports it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from slurm.sandbox import Sandbox
from support.running import ROOT, contents, environment, finished, snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.study.forecast import planned_jobs

pytestmark = pytest.mark.slurm

PROFILE = yaml.safe_load((ROOT / "slurm/config.yaml").read_text())


def on_slurm(folder: Path, slurm: Sandbox, *arguments: str, seconds: int = 900) -> str:
    """Run a study with the profile that users use; return its output."""
    words = ["-m", "snakemake", "--profile", "slurm", "--directory", str(folder), *arguments]
    words += ["--slurm-init-seconds-before-status-checks", "14", "--latency-wait", "5"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment() | slurm.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def run(slurm: Sandbox, tmp_path_factory) -> dict:
    """A small study through Slurm, and the same study without it."""
    cohorts, config = make_cohorts((8,), n_sites=200), FAST | {"device": "auto"}
    local = write_study(tmp_path_factory.mktemp("local"), cohorts, config)
    snakemake(local, "distance")
    folder = write_study(tmp_path_factory.mktemp("cluster"), cohorts, config)
    planned = planned_jobs(folder, ["distance"])
    output = on_slurm(folder, slurm, "distance")
    jobs = [job for job in slurm.jobs() if job["WorkDir"] == str(folder)]
    return {"local": local, "folder": folder, "jobs": jobs, "output": output, "planned": planned}


def rule_of(job: dict[str, str]) -> str:
    """The rule of a job, or the rules of a group, from the path of its log in `.snakemake`."""
    return re.search(r"/slurm_logs/(?:rule_|group_tiles_)(\w+)", job["StdOut"])[1]


def ask_of(job: dict[str, str]) -> dict:
    """What a job requested from Slurm: partition, GPUs, threads, megabytes, minutes."""
    days, _, clock = job["TimeLimit"].rpartition("-")
    hours, minutes, _ = clock.split(":")
    memory = re.search(r"mem=([\d.]+)([MG])", job["TRES"])
    return {
        "partition": job["Partition"],
        "gpus": int((job.get("TresPerJob") or "gres:gpu:0").rsplit(":", 1)[1]),
        "threads": int(job["NumCPUs"]),
        "mem_mb": round(float(memory[1]) * (1024 if memory[2] == "G" else 1)),
        "minutes": 1440 * int(days or 0) + 60 * int(hours) + int(minutes),
    }


def test_results_equal_those_without_a_cluster(run):
    assert contents(run["folder"]) == contents(run["local"])


def test_nothing_is_planned_after_a_run_on_the_cluster(run):
    """Jobs parse the Snakefile again on their node; their records must equal the plan."""
    assert "Nothing to be done" in snakemake(run["folder"], "--dry-run", "distance")


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
    assert {"measure_row", "ingest_cohort"} <= seen


def test_slurm_limits_equal_those_of_the_rules(run):
    """Memory, time and threads of each job's first attempt are those that `popdesic plan` shows.

    A rule may request more if its sizes are of files that did not exist at planning.
    """
    stated = {job.rule: job for job in run["planned"]}
    for job in run["jobs"]:
        asked, rule = ask_of(job), stated[rule_of(job)]
        assert asked["threads"] == min(rule.threads, 8)
        assert rule.mem_mb <= asked["mem_mb"] <= rule.mem_mb + 10
        assert asked["minutes"] == rule.runtime


def test_gpu_rules_report_that_they_run_on_the_cpu_without_a_gpu(run):
    (log,) = (run["folder"] / "logs/measure_row").glob("*.log")
    assert " device: cpu: " in log.read_text()


@pytest.mark.slow
def test_the_whole_example_runs_on_slurm(slurm: Sandbox, tmp_path):
    """The embedded example with `--profile slurm`; prints the table of docs/slurm.md."""
    seconds = {}
    for name in ("local", "cluster"):
        shutil.copytree(ROOT / "config", tmp_path / name / "config")
        shutil.copytree(ROOT / "resources", tmp_path / name / "resources")
        start = time.monotonic()
        if name == "local":
            snakemake(tmp_path / name, "--max-threads", "2", seconds=3000)
        else:
            stated = planned_jobs(tmp_path / name)
            on_slurm(tmp_path / name, slurm, seconds=3000)
        seconds[name] = time.monotonic() - start
    jobs = [job for job in slurm.jobs() if job["WorkDir"] == str(tmp_path / "cluster")]
    rows = {}
    for job in jobs:
        assert job["JobState"] == "COMPLETED", job
        rows.setdefault(rule_of(job), []).append(ask_of(job))
    planned_gpus = {job.rule: job.gpu for job in stated}
    expected = Counter(job.rule for job in stated if job.outputs)
    tiles = sum(expected.pop(rule) for rule in PROFILE["groups"])
    found = {rule: len(asked) for rule, asked in rows.items()}
    grouped = [rule for rule in found if set(PROFILE["groups"]) & set(re.split("_(?=meas)", rule))]
    shared = PROFILE["group-components"]["tiles"]
    assert sum(found.pop(rule) for rule in grouped) == -(-tiles // shared)
    assert found == expected
    print(f"wall time: {seconds['local']:.0f} s without, {seconds['cluster']:.0f} s with Slurm")
    print("| rule | jobs | partition | GPUs | threads | memory, MB | time limit, min |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for rule, asked in rows.items():
        (partition,) = {one["partition"] for one in asked}
        (gpus,) = {one["gpus"] for one in asked}
        most = [max(one[name] for one in asked) for name in ("threads", "mem_mb", "minutes")]
        print(f"| {rule} | {len(asked)} | {partition} | {gpus} |", *(f"{m} |" for m in most))
        on_gpu = rule in grouped or rule in PROFILE["set-resources"]
        # Short jobs of a GPU rule ask for its partition, but for no GPU.
        assert partition == ("gpu" if on_gpu else "cpu")
        assert gpus == planned_gpus.get(rule, int(on_gpu))
    found, expected = contents(tmp_path / "cluster"), contents(tmp_path / "local")
    differ = sorted(name for name in expected | found if found.get(name) != expected.get(name))
    assert [name for name in differ if not name.startswith("report/")] == []


@pytest.mark.slow
def test_rows_share_a_job_and_its_gpu(slurm: Sandbox, tmp_path):
    """Two rows of tiles share a job: one GPU, the memory of one row, the time of both."""
    config = FAST | {"device": "auto"}
    folder = write_study(tmp_path / "study", make_cohorts((8, 7), n_sites=200), config)
    stated = [j for j in planned_jobs(folder, ["distance"]) if j.rule == "measure_row"]
    on_slurm(folder, slurm, "distance")
    jobs = [job for job in slurm.jobs() if job["WorkDir"] == str(folder)]
    (job,) = [job for job in jobs if rule_of(job) == "measure_row"]
    asked = ask_of(job)
    assert len(stated) == 2
    assert (asked["partition"], asked["gpus"], asked["threads"]) == ("gpu", 1, 8)
    assert asked["minutes"] == sum(one.runtime for one in stated)
    assert asked["mem_mb"] <= max(one.mem_mb for one in stated) + 10
    sheet = folder / "config/samples.tsv"
    sheet.write_text(sheet.read_text().replace("\tP\t", "\tQ\t", 1))
    ran = finished(on_slurm(folder, slurm, "distance"))
    # The panel and the planes come out as they were, so no job of rows is submitted.
    assert ran == {"ingest_cohort": 1, "build_panel": 1, "encode_cohort": 1}
    assert "Nothing to be done" in on_slurm(folder, slurm, "distance")
