"""Real faults while a Slurm job runs; afterwards the results equal those of an undisturbed run.

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
from slurm.sandbox import Sandbox
from support.running import ROOT, contents, environment, snakemake
from support.study import make_cohorts, write_study

from popdesic.core.errors import UserError
from popdesic.study.resume import cancel_jobs
from popdesic.study.snakemake_internals import run_ids

pytestmark = pytest.mark.slurm

#: Polls Slurm more often than is polite on a real cluster; a job of the study takes 8 to 12 s.
QUICK = ["--slurm-init-seconds-before-status-checks", "14", "--latency-wait", "5"]


@pytest.fixture
def start(folder: Path, slurm: Sandbox):
    """Start the study on Slurm; return its Snakemake process once one of its jobs runs."""
    started = []

    def run(*arguments: str) -> subprocess.Popen:
        words = ["-m", "snakemake", "--profile", "slurm", "--directory", str(folder), *QUICK]
        with open(folder / "snakemake.out", "wb") as out:
            process = subprocess.Popen(
                [sys.executable, *words, "ingest", *arguments],
                cwd=ROOT,
                env=environment() | slurm.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                # A shell that starts the tests in the background makes them ignore Ctrl-C.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        started.append(process)
        wait_until(lambda: any(job["JobState"] == "RUNNING" for job in of(folder, slurm)), process)
        return process

    yield run
    for process in started:
        process.kill()  # after a failed test: nothing of it may disturb the next one
        process.wait()
    for job in of(folder, slurm):
        if job["JobState"] in ("PENDING", "RUNNING", "COMPLETING"):
            slurm.call("scancel", job["JobId"])


def wait_until(condition, process: subprocess.Popen, seconds: float = 900) -> None:
    """Wait for a condition while the run continues."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended"
        assert time.monotonic() < end, f"nothing happened for {seconds} s"
        time.sleep(0.1)


def of(folder: Path, slurm: Sandbox) -> list[dict[str, str]]:
    return [job for job in slurm.jobs() if job.get("WorkDir") == str(folder)]


def resume(folder: Path, slurm: Sandbox) -> subprocess.CompletedProcess:
    """`popdesic resume` of the study."""
    return subprocess.run(
        [sys.executable, "-m", "popdesic", "resume", str(folder), "--", *QUICK, "ingest"],
        env=environment() | slurm.environment | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
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


def wait_for_step(slurm: Sandbox, job: dict[str, str]) -> None:
    """Wait until the job's inner step runs: a step requested before that waits for minutes."""
    log, end = slurm.folder / "slurmd.node1.log", time.monotonic() + 120
    while f"StepId={job['JobId']}.0" not in log.read_text() and time.monotonic() < end:
        time.sleep(0.05)


def processes_of(job: dict[str, str]) -> list[int]:
    """Processes that a job has started, without those of Slurm."""
    mark, found = f"SLURM_JOB_ID={job['JobId']}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def cancel(slurm: Sandbox, job: dict[str, str]) -> None:
    slurm.call("scancel", job["JobId"])


def restart(slurm: Sandbox, job: dict[str, str]) -> None:
    wait_for_step(slurm, job)
    slurm.restart_controller()


def drain(slurm: Sandbox, job: dict[str, str]) -> None:
    wait_for_step(slurm, job)
    slurm.call("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=test")
    time.sleep(2)
    slurm.call("scontrol", "update", "NodeName=node1", "State=RESUME")


def hang(slurm: Sandbox, job: dict[str, str]) -> None:
    """The job hangs, as on a file system that does not respond, and exceeds its time limit."""
    wait_for_step(slurm, job)
    for process in processes_of(job):
        os.kill(process, signal.SIGSTOP)
    slurm.call("scontrol", "update", f"JobId={job['JobId']}", "TimeLimit=1")


def starve(slurm: Sandbox, job: dict[str, str]) -> None:
    """The first attempt asks for too little memory and exceeds its limit."""


@pytest.mark.parametrize(
    ("fault", "states", "arguments"),
    [
        (cancel, ["CANCELLED", "COMPLETED"], []),
        pytest.param(restart, ["COMPLETED"], [], marks=pytest.mark.slow),
        pytest.param(drain, ["COMPLETED"], [], marks=pytest.mark.slow),
        pytest.param(hang, ["TIMEOUT", "COMPLETED"], [], marks=pytest.mark.slow),
        pytest.param(
            starve,
            ["FAILED", "COMPLETED"],
            ["--set-resources", "ingest_cohort:mem_mb=100 if attempt == 1 else 1000"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_run_recovers_without_help(
    slurm: Sandbox, folder, start, undisturbed, fault, states, arguments
):
    process = start(*arguments)
    (job,) = of(folder, slurm)
    fault(slurm, job)
    assert process.wait(600) == 0, (folder / "snakemake.out").read_text()
    found = [job["JobState"] for job in of(folder, slurm)]
    equal = contents(folder) == undisturbed
    print(f"fault {fault.__name__}: jobs {' then '.join(found)}, bytes equal {equal}")
    assert found == states
    assert equal
    if fault is not hang:  # the limit was changed from outside
        asked = [job["TimeLimit"] for job in of(folder, slurm)]
        assert asked == sorted(set(asked))  # HH:MM:SS, more with every attempt
    if fault is starve:
        assert "exceeded memory limit" in (slurm.folder / "slurmd.node1.log").read_text()


@pytest.mark.slow
def test_resume_after_ctrl_c(slurm: Sandbox, folder, start, undisturbed):
    process = start()
    process.send_signal(signal.SIGINT)
    assert process.wait(180) != 0
    done = resume(folder, slurm)
    assert done.returncode == 0, done.stdout
    found = [job["JobState"] for job in of(folder, slurm)]
    equal = contents(folder) == undisturbed
    print(f"fault ctrl-c: jobs {' then '.join(found)}, bytes equal {equal}")
    assert found == ["CANCELLED", "COMPLETED"]
    assert equal


def test_resume_after_kill_9(slurm: Sandbox, folder, start, undisturbed, monkeypatch):
    process = start()
    with monkeypatch.context() as patch:
        for name in ("PATH", "SLURM_CONF"):
            patch.setenv(name, slurm.environment[name])
        with pytest.raises(UserError, match=rf"process {process.pid}\) is still running on"):
            cancel_jobs(folder)  # its jobs are not cancelled
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (orphan,) = of(folder, slurm)
    assert orphan["JobState"] == "RUNNING"
    assert [orphan["JobName"]] == run_ids(folder)

    done = resume(folder, slurm)
    assert done.returncode == 0
    assert "Slurm jobs of earlier runs that were cancelled: 1\n" in done.stdout
    first, second = of(folder, slurm)
    print(*(f"{job['JobState']} {job['StartTime']} {job['EndTime']}" for job in (first, second)))
    assert (first["JobState"], second["JobState"]) == ("CANCELLED", "COMPLETED")
    assert first["EndTime"] <= second["StartTime"]
    equal = contents(folder) == undisturbed
    print(f"fault kill -9: jobs CANCELLED then COMPLETED, bytes equal {equal}")
    assert equal
