"""Go on with a study on Slurm whose Snakemake was killed, without two writers of one file.

A Slurm job outlives the Snakemake that submitted it. Started again at once, Snakemake would submit
the same job a second time beside it. So what is left is cancelled by name first, and waited for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from ..io.errors import UserError
from .run import run_study
from .snakemake_internals import run_ids

#: Jobs that Slurm may still be busy ending, in seconds; KillWait is 30 s by default.
PATIENCE = 600.0


def running_here(study: Path) -> int | None:
    """Process number of a Snakemake of this machine that works on the study, jobs' own left out."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            at_work = (process / "cwd").resolve() == study.resolve()
            in_job = b"\0SLURM_JOB_ID=" in b"\0" + (process / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        name = any(Path(os.fsdecode(word)).name == "snakemake" for word in words[:3])
        if name and at_work and not in_job:
            return int(process.name)
    return None


def _slurm(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise UserError(f"`{' '.join(words)}` failed ({reason}); resume where Slurm answers.")
    return done.stdout


def cancel_jobs(study: Path, patience: float = PATIENCE) -> int:
    """Cancel the study's Slurm jobs and wait until none is left; return how many there were.

    Raises
    ------
    UserError
        Snakemake still works on the study, Slurm does not answer, or a job does not end.
    """
    if (process := running_here(study)) is not None:
        raise UserError(
            f"Snakemake (process {process}) still works on {study}; "
            "end it first, or let it go on by itself."
        )
    names = run_ids(study)
    if not names:
        return 0
    if shutil.which("squeue") is None:
        raise UserError(
            f"{study} has run on Slurm, but squeue is not on PATH; resume on a login node."
        )
    query = ["squeue", "--noheader", "--states=PD,R,S,CF,CG,ST,RQ,RH,SO"]
    query += ["--format=%i", f"--name={','.join(names)}"]
    jobs = _slurm(*query).split()
    if not jobs:
        return 0
    _slurm("scancel", *jobs)
    end = time.monotonic() + patience
    while left := _slurm(*query).split():
        if time.monotonic() > end:
            raise UserError(
                f"Slurm job {left[0]} of {study} does not end; ask the cluster's administrators."
            )
        time.sleep(0.5)
    return len(jobs)


def resume(study: Path, arguments: list[str]) -> int:
    """Cancel what an earlier run left in Slurm, unlock the study, run it on; return the status.

    `arguments` go to Snakemake, as with `run_study`; if they name no profile, it is `slurm`.
    """
    print(f"Cancelled {cancel_jobs(study)} Slurm jobs of earlier runs.", flush=True)
    if status := run_study(study, (), ["--unlock"]):
        return status
    if "--profile" not in {word.partition("=")[0] for word in arguments}:
        arguments = ["--profile", "slurm", *arguments]
    return run_study(study, (), [*arguments, "--rerun-incomplete"])
