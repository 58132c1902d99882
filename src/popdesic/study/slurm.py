"""Commands of Slurm, and the jobs that it has not ended."""

from __future__ import annotations

import subprocess

from ..core.errors import UserError

#: squeue of jobs that have not ended: their numbers.
QUEUE = ("squeue", "--noheader", "--states=PD,R,S,CF,CG,ST,RQ,RH,SO", "--format=%i")


def call_slurm(*words: str, failed: str, script: str | None = None) -> str:
    """What a command of Slurm prints; `script` is its input.

    Raises
    ------
    UserError
        The command cannot be run, or it fails. `failed` is the sentence then, with {command},
        {name} of the program, and {reason}.
    """
    try:
        done = subprocess.run(words, input=script, capture_output=True, text=True, check=False)
    except OSError as reason:
        raise UserError(f"{words[0]} cannot be run ({reason.strerror}).") from None
    if done.returncode:
        reason = " ".join(done.stderr.split()) or "no reason given"
        raise UserError(failed.format(command=" ".join(words), name=words[0], reason=reason))
    return done.stdout


def active_jobs(*names: str, failed: str) -> list[str]:
    """Numbers of the jobs of these names that have not ended."""
    return call_slurm(*QUEUE, f"--name={','.join(names)}", failed=failed).split()
