"""Continue a study on Slurm after its Snakemake was killed, with no file written twice at once.

A Slurm job outlives the Snakemake process that submitted it. A new Snakemake would submit the same
job again while the old one still runs. So `popdesic resume` first cancels the study's remaining
jobs by name and waits until they have ended.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from ..core.errors import UserError
from .one_job import Expect, job_names, run_where_told
from .run import option_of, run_study
from .slurm import active_jobs, call_slurm
from .snakemake_internals import run_ids

#: Seconds to wait for cancelled Slurm jobs to end; Slurm's KillWait is 30 s by default.
PATIENCE = 600.0
#: What is said where a command of Slurm fails.
FAILED = "`{command}` failed ({reason}); resume on a machine where this Slurm command works."


def running_here(study: Path) -> int | None:
    """PID of a Snakemake process on this machine that runs the study; None if there is none.

    Snakemake processes inside Slurm jobs do not count.
    """
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            in_study = (process / "cwd").resolve() == study.resolve()
            in_job = b"\0SLURM_JOB_ID=" in b"\0" + (process / "environ").read_bytes()
        except OSError:  # it has ended, or belongs to another user
            continue
        is_snakemake = any(Path(os.fsdecode(word)).name == "snakemake" for word in words[:4])
        if is_snakemake and in_study and not in_job:
            return int(process.name)
    return None


def cancel_jobs(study: Path, patience: float = PATIENCE) -> int:
    """Cancel the study's Slurm jobs and wait until all have ended; return their number.

    Raises
    ------
    UserError
        Snakemake is still running on the study, a Slurm command fails, or a job does not end within
        `patience` seconds.
    """
    if (process := running_here(study)) is not None:
        raise UserError(
            f"Snakemake (process {process}) is still running on {study}; stop it first, or let it "
            "finish."
        )
    names = [*run_ids(study), *job_names(study)]
    if not names:
        return 0
    if shutil.which("squeue") is None:
        raise UserError(
            f"{study} was run on Slurm, but squeue is not on PATH; resume on a login node."
        )
    jobs = active_jobs(*names, failed=FAILED)
    if not jobs:
        return 0
    call_slurm("scancel", *jobs, failed=FAILED)
    end = time.monotonic() + patience
    while left := active_jobs(*names, failed=FAILED):
        if time.monotonic() > end:
            raise UserError(
                f"Slurm job {left[0]} of {study} was cancelled but has not ended after "
                f"{patience:.0f} s; ask the cluster's administrators."
            )
        time.sleep(0.5)
    return len(jobs)


def resume(
    study: Path, arguments: list[str], one_job: bool | None = None, *, expect: Expect
) -> int:
    """Cancel the Slurm jobs of earlier runs, unlock the study, run it; return the exit status.

    `arguments`, `one_job` and `expect` are those of `run_where_told`; without `--profile` among the
    arguments, the profile is `slurm`.
    """
    print(f"Slurm jobs of earlier runs that were cancelled: {cancel_jobs(study)}", flush=True)
    if status := run_study(study, (), ["--unlock"]):
        return status
    if "--profile" not in map(option_of, arguments):
        arguments = ["--profile", "slurm", *arguments]
    return run_where_told(study, (), [*arguments, "--rerun-incomplete"], one_job, expect=expect)
