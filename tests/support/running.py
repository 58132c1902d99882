"""Run Snakemake on a study folder and read what it did."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Seconds until a run counts as hanging. Ten processes may share a core, and kernels may have to be
#: compiled first.
PATIENCE = 3600


def command(folder: Path, *arguments: str) -> list[str]:
    """The command line that runs the workflow on a study: one thread per job, two jobs at once."""
    workflow = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    cores = ["--cores", "2", "--max-threads", "1"]
    return [sys.executable, "-m", "snakemake", *workflow, *cores, *arguments]


def environment() -> dict[str, str]:
    """This process's environment, but with Python's bytecode cache, so that jobs start faster."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def snakemake(folder: Path, *arguments: str, fails: bool = False, seconds: int = PATIENCE) -> str:
    """Run the workflow on a study; return its output. `fails`: whether it is expected to fail."""
    done = subprocess.run(
        command(folder, *arguments),
        env=environment(),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    print(done.stdout)
    assert (done.returncode != 0) == fails, done.stdout[-3000:]
    return done.stdout


def kill_and_resume(
    folder: Path, target: str, reached: Callable[[str], bool], seconds: int = PATIENCE
) -> tuple[dict[str, tuple[int, str]], str]:
    """Kill a run with all its jobs once `reached(output so far)` holds, then run it to the end.

    Returns
    -------
    state : dict
        `snapshot` after the kill.
    output : str
        Output of the second run.
    """
    with tempfile.NamedTemporaryFile() as said:
        process = subprocess.Popen(
            command(folder, target),
            env=environment(),
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + seconds
        while not reached(Path(said.name).read_text()):
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    state = snapshot(folder)
    snakemake(folder, "--unlock")
    return state, snakemake(folder, target, "--rerun-incomplete")


def finished(output: str) -> Counter[str]:
    """Number of jobs that ran, by rule, without targets."""
    rules = re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", output, re.MULTILINE)
    return Counter(rule for rule in rules if "_" in rule)


def planned(output: str) -> Counter[str]:
    """Number of jobs of a dry run, by rule, from the table at the top of its output."""
    table = re.findall(r"^(\w+_\w+) +(\d+)$", output, re.MULTILINE)
    return Counter({rule: int(count) for rule, count in table})


def snapshot(folder: Path) -> dict[str, tuple[int, str]]:
    """Modification time and content digest of every result file, by path."""
    results = folder / "results"
    return {
        str(path.relative_to(results)): (
            path.stat().st_mtime_ns,
            hashlib.blake2b(path.read_bytes()).hexdigest(),
        )
        for path in sorted(results.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def contents(folder: Path) -> dict[str, str]:
    """Content digest of every result file, by path."""
    return {name: digest for name, (_, digest) in snapshot(folder).items()}


def path_without(folder: Path, *commands: str) -> str:
    """A PATH without these commands: `folder`, filled with links to all others."""
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / command.name
            if command.name not in commands and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


def jobs_of_plan(study: Path) -> list[dict]:
    """`planned_jobs` of a study, in a process of its own: Snakemake's plan changes its process."""
    code = (
        "import json, pathlib; from popdesic.study.snakemake_internals import planned_jobs; "
        "jobs = [vars(job) for job in planned_jobs(pathlib.Path())]; print(json.dumps(jobs))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=study, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])
