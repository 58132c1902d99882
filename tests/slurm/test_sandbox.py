"""The tests' Slurm: GPUs are counted, jobs survive a restart of the controller."""

from __future__ import annotations

import time

import pytest
from slurm.sandbox import Sandbox

pytestmark = pytest.mark.slurm


def submit(slurm: Sandbox, script: str, *arguments: str) -> str:
    words = ["sbatch", "--parsable", "--output=/dev/null", "--mem=50", *arguments]
    return slurm.call(*words, f"--wrap={script}").strip()


def wait_for(slurm: Sandbox, number: str, state: str) -> dict[str, str]:
    end = time.monotonic() + 300
    while True:
        job = {job["JobId"]: job for job in slurm.jobs()}[number]
        if job["JobState"] == state or time.monotonic() > end:
            assert job["JobState"] == state, job
            return job
        time.sleep(0.2)


def test_a_gpu_job_runs_on_its_partition_and_holds_its_gpu(slurm: Sandbox):
    script = 'test -n "$CUDA_VISIBLE_DEVICES"'
    number = submit(slurm, script, "--partition=gpu", "--gpus=1")
    job = wait_for(slurm, number, "COMPLETED")
    assert (job["Partition"], job["TresPerJob"]) == ("gpu", "gres:gpu:1")
    number = submit(slurm, script)
    assert wait_for(slurm, number, "FAILED")["Partition"] == "cpu"


def test_jobs_survive_a_restart_of_the_controller(slurm: Sandbox):
    number = submit(slurm, "sleep 2")
    slurm.restart_controller()
    wait_for(slurm, number, "COMPLETED")
