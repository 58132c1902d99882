"""Forked jobs behave as jobs that Python starts (forked_jobs.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import ROOT

RULES = """\
rule all:
    input: "a", "b"

rule make:
    output: "{name}"
    threads: 1
    script: "job.py"
"""
#: Writes what a job can know of its process.
JOB = """\
import atexit, os, sys
import __main__, numpy
assert __name__ == "__main__" and __main__.snakemake is snakemake
assert sys.argv == [sys.argv[0]] and sys.path[0].endswith(".snakemake/scripts")
assert os.getcwd().endswith("study") and os.environ["MARK"] == "as given"
name = snakemake.wildcards.name
atexit.register(lambda: open("ended." + name, "w").close())
print("said by " + name)
if os.path.exists("fail." + name):
    sys.exit(3)
if os.path.exists("kill." + name):
    os.kill(os.getpid(), 9)
with open(snakemake.output[0], "w") as file:
    print(sys.executable, os.getpid(), os.environ["OMP_NUM_THREADS"], file=file)
"""


def run(folder: Path, **variables: str) -> subprocess.CompletedProcess:
    words = [sys.executable, str(ROOT / "tests/forked_jobs.py"), "--cores", "2"]
    environment = os.environ | {"MARK": "as given"} | variables
    return subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "Snakefile").write_text(RULES)
    (folder / "job.py").write_text(JOB)
    return folder


def test_jobs_are_processes_with_their_folder_variables_and_output(folder):
    done = run(folder)
    assert done.returncode == 0, done.stdout
    assert "said by a" in done.stdout and "said by b" in done.stdout
    found = [(folder / name).read_text().split() for name in "ab"]
    assert found[0][0] == found[1][0] == sys.executable
    assert found[0][1] != found[1][1] and found[0][2] == "1"
    assert (folder / "ended.a").exists(), "functions registered with atexit run"


@pytest.mark.parametrize("accident", ["fail", "kill"])
def test_a_job_that_fails_or_is_killed_ends_the_run(folder, accident):
    (folder / f"{accident}.b").touch()
    done = run(folder)
    assert done.returncode and "Error in rule make" in done.stdout
    assert (folder / "a").exists() and not (folder / "b").exists()
    assert (folder / "ended.b").exists() == (accident == "fail")


def test_jobs_end_with_snakemake(folder):
    (folder / "job.py").write_text(
        "import os, time\nprint('PID', os.getpid(), flush=True)\ntime.sleep(300)"
    )
    words = [sys.executable, str(ROOT / "tests/forked_jobs.py"), "--cores", "1", "a"]
    with open(folder / "said", "w") as said:
        process = subprocess.Popen(words, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
    end = time.monotonic() + 200
    while "PID" not in (text := (folder / "said").read_text()) and time.monotonic() < end:
        time.sleep(0.1)
    child = int(text.split("PID ")[1].split()[0])
    assert Path(f"/proc/{child}").exists()
    process.kill()
    process.wait()
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()
