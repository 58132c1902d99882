"""Faults tried for real while a Slurm job runs: afterwards the bytes of an undisturbed run.

Each test prints its row of the table in docs/faults.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from popdesic.errors import UserError
from popdesic.resume import cancel_jobs, run_ids
from running import ROOT, contents, environment, snakemake
from slurm.sandbox import Sandbox
from study import make_cohorts, write_study

pytestmark = pytest.mark.slurm

#: Asks Slurm sooner and more often than a cluster's administrators would like.
QUICK = ["--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "5"]


def start(folder: Path, slurm: Sandbox) -> subprocess.Popen:
    """Start the study on Slurm; return its Snakemake once a job of it runs."""
    words = [sys.executable, "-m", "snakemake", "--profile", "slurm", "--directory", str(folder)]
    with open(folder / "snakemake.out", "wb") as out:
        process = subprocess.Popen(
            [*words, *QUICK, "ingest"],
            cwd=ROOT,
            env=environment() | slurm.environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    end = time.monotonic() + 90
    while not any(job["JobState"] == "RUNNING" for job in of(folder, slurm)):
        assert process.poll() is None and time.monotonic() < end, (
            folder / "snakemake.out"
        ).read_text()
        time.sleep(0.1)
    return process


def of(folder: Path, slurm: Sandbox) -> list[dict[str, str]]:
    return [job for job in slurm.jobs() if job.get("WorkDir") == str(folder)]


def resume(folder: Path, slurm: Sandbox) -> subprocess.CompletedProcess:
    """`popdesic resume` of the study."""
    return subprocess.run(
        [sys.executable, "-m", "popdesic", "resume", str(folder), "--", *QUICK, "ingest"],
        env=environment() | slurm.environment | {"PYTHONPATH": str(ROOT / "workflow/scripts")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    """Contents of the study's results, made without Slurm."""
    local = write_study(tmp_path_factory.mktemp("local"), make_cohorts((8,), n_sites=200))
    snakemake(local, "ingest")
    return contents(local)


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_study(tmp_path / "cluster", make_cohorts((8,), n_sites=200))


def cancel(slurm: Sandbox, job: dict[str, str]) -> None:
    slurm.call("scancel", job["JobId"])


def restart(slurm: Sandbox, job: dict[str, str]) -> None:
    # Not before the job's own step runs: a step asked for in between waits until the time limit.
    log, end = slurm.folder / "slurmd.log", time.monotonic() + 30
    while f"StepId={job['JobId']}.0" not in log.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    slurm.restart_controller()


def drain(slurm: Sandbox, job: dict[str, str]) -> None:
    slurm.call("scontrol", "update", "NodeName=localhost", "State=DRAIN", "Reason=test")
    time.sleep(2)
    slurm.call("scontrol", "update", "NodeName=localhost", "State=RESUME")


@pytest.mark.parametrize(
    ("fault", "states"),
    [
        (cancel, ["CANCELLED", "COMPLETED"]),
        (restart, ["COMPLETED"]),
        (drain, ["COMPLETED"]),
    ],
)
def test_the_run_goes_on_by_itself(slurm: Sandbox, folder, undisturbed, fault, states):
    process = start(folder, slurm)
    (job,) = of(folder, slurm)
    fault(slurm, job)
    assert process.wait(200) == 0, (folder / "snakemake.out").read_text()
    found = [job["JobState"] for job in of(folder, slurm)]
    equal = contents(folder) == undisturbed
    print(f"fault {fault.__name__}: jobs {' then '.join(found)}, bytes equal {equal}")
    assert found == states
    assert equal
    asked = [job["TimeLimit"] for job in of(folder, slurm)]
    assert asked == sorted(set(asked))  # HH:MM:SS, more with every try


def test_resume_after_ctrl_c(slurm: Sandbox, folder, undisturbed):
    process = start(folder, slurm)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    done = resume(folder, slurm)
    assert done.returncode == 0, done.stdout
    found = [job["JobState"] for job in of(folder, slurm)]
    equal = contents(folder) == undisturbed
    print(f"fault ctrl-c: jobs {' then '.join(found)}, bytes equal {equal}")
    assert found == ["CANCELLED", "COMPLETED"]
    assert equal


def test_resume_after_kill_9(slurm: Sandbox, folder, undisturbed, monkeypatch):
    process = start(folder, slurm)
    with monkeypatch.context() as patch:
        for name in ("PATH", "SLURM_CONF"):
            patch.setenv(name, slurm.environment[name])
        with pytest.raises(UserError, match=rf"process {process.pid}\) still works on"):
            cancel_jobs(folder)  # its jobs are left alone
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (orphan,) = of(folder, slurm)
    assert orphan["JobState"] == "RUNNING"
    assert [orphan["JobName"]] == run_ids(folder)

    done = resume(folder, slurm)
    assert done.returncode == 0
    assert "Cancelled 1 Slurm jobs" in done.stdout
    first, second = of(folder, slurm)
    print(*(f"{job['JobState']} {job['StartTime']} {job['EndTime']}" for job in (first, second)))
    assert (first["JobState"], second["JobState"]) == ("CANCELLED", "COMPLETED")
    assert first["EndTime"] <= second["StartTime"]
    equal = contents(folder) == undisturbed
    print(f"fault kill -9: jobs CANCELLED then COMPLETED, bytes equal {equal}")
    assert equal
