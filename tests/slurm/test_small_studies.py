"""`popdesic run --profile slurm` of a small study, as one job of a real Slurm."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from slurm.sandbox import Sandbox
from support.running import ROOT, contents, environment, snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.study.one_job import FOLDER, job_name

pytestmark = pytest.mark.slurm


def words(study: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "popdesic", "run", str(study), *arguments]


def on(slurm: Sandbox) -> dict[str, str]:
    return environment() | slurm.environment | {"PYTHONPATH": str(ROOT / "src")}


def jobs_of(study: Path, slurm: Sandbox) -> list[dict[str, str]]:
    return [job for job in slurm.jobs() if job["JobName"] == job_name(study)]


def test_a_small_study_is_one_job_with_a_gpu_and_the_same_bytes(slurm: Sandbox, tmp_path):
    cohorts, config = make_cohorts((8, 7), n_sites=200), FAST | {"device": "auto"}
    local = write_study(tmp_path / "local", cohorts, config)
    snakemake(local, "distance")
    study = write_study(tmp_path / "study", cohorts, config)
    done = subprocess.run(
        words(study, "distance", "--profile", "slurm"),
        env=on(slurm),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "15 samples: one Slurm job" in done.stderr
    assert "Elapsed time" in done.stderr  # the output of the job
    (job,) = jobs_of(study, slurm)
    assert (job["JobState"], job["Partition"], job["TresPerJob"]) == (
        *("COMPLETED", "gpu", "gres:gpu:1"),
    )
    assert job["NumCPUs"] == "8"
    assert contents(study) == contents(local)
    again = words(study, "distance", "--profile", "slurm")
    done = subprocess.run(again, env=on(slurm), cwd=ROOT, capture_output=True, text=True)
    assert "Nothing to be done" in done.stdout + done.stderr
    assert len(jobs_of(study, slurm)) == 1


def test_resume_after_the_job_was_cancelled(slurm: Sandbox, tmp_path):
    """Whoever waits for the job is told of its end, and `popdesic resume` continues the study."""
    cohorts = make_cohorts((8,), n_sites=200)
    local = write_study(tmp_path / "local", cohorts, FAST)
    snakemake(local, "ingest")
    study = write_study(tmp_path / "study", cohorts, FAST)
    process = subprocess.Popen(
        words(study, "ingest", "--profile", "slurm"),
        env=on(slurm),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 300
    while not (study / ".snakemake/locks").is_dir() or not any((study / FOLDER).glob("*.out")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    (job,) = jobs_of(study, slurm)
    slurm.call("scancel", job["JobId"])
    told = process.communicate(timeout=300)[1]
    assert process.returncode != 0, told
    resume = [sys.executable, "-m", "popdesic", "resume", str(study), "--", "ingest"]
    done = subprocess.run(
        resume, env=on(slurm), cwd=ROOT, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert {job["JobState"] for job in jobs_of(study, slurm)} == {"CANCELLED", "COMPLETED"}
    assert contents(study) == contents(local)


def test_a_job_that_asks_for_more_threads_than_any_node_has_runs_with_fewer(slurm, tmp_path):
    """Slurm would refuse or hold a job of 64 threads; all nodes of this cluster have 8."""
    study = write_study(tmp_path / "study", make_cohorts((8,), n_sites=200), FAST)
    wide = ["--set-threads", "ingest_cohort=64"]
    done = subprocess.run(
        words(study, "ingest", "--profile", "slurm", "--", *wide),
        env=on(slurm),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert max(int(job["NumCPUs"]) for job in slurm.jobs()) == 8


@pytest.mark.slow
def test_the_benchmark_prints_local_and_slurm_times(slurm: Sandbox):
    bench = [sys.executable, "tests/bench/bench_slurm.py", "--quick"]
    done = subprocess.run(bench, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert [row[-1] for row in rows] == ["yes", "yes"]
    assert [row[-2] for row in rows] == ["0", "1"]
