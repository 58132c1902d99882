"""Forked jobs behave as jobs that Python starts (study/forked_jobs.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.running import ROOT

RULES = """\
import sys
sys.path.insert(0, {packages!r})
from popdesic.study.forked_jobs import start_forks
from popdesic.study.snakemake_internals import before_plan

before_plan(workflow, start_forks)

rule all:
    input: "a", "b"

rule make:
    output: "{{name}}"
    benchmark: "benchmark.{{name}}"
    threads: 2
    script: "job.py"
"""
#: Writes what a job can know of its process.
JOB = """\
import atexit, os, sys
import __main__, numpy
assert __name__ == "__main__" and __main__.snakemake is snakemake
assert sys.argv == [sys.argv[0]] and ".snakemake/scripts" in sys.argv[0]
assert os.getcwd().endswith("study") and os.environ["MARK"] == "as given"
name = snakemake.wildcards.name
atexit.register(lambda: open("ended." + name, "w").close())
print("said by " + name)
if os.path.exists("fail." + name):
    sys.exit(3)
if os.path.exists("kill." + name):
    os.kill(os.getpid(), 9)
import threadpoolctl
blas = {about["num_threads"] for about in threadpoolctl.threadpool_info()}
with open(snakemake.output[0], "w") as file:
    print(os.getpid(), os.getppid(), os.environ["OMP_NUM_THREADS"], *blas, file=file)
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "snakemake", "--cores", "4", *arguments]
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
    (folder / "Snakefile").write_text(RULES.format(packages=str(ROOT / "src")))
    (folder / "job.py").write_text(JOB)
    return folder


def test_jobs_are_processes_with_their_folder_variables_and_output(folder):
    done = run(folder)
    assert done.returncode == 0, done.stdout
    assert "said by a" in done.stdout and "said by b" in done.stdout
    found = [(folder / name).read_text().split() for name in "ab"]
    assert found[0][0] != found[1][0], "each job is a process"
    assert found[0][1] == found[1][1], "which the same one forks"
    assert found[0][2:] == found[1][2:] == ["2", "2"], "BLAS has as many threads as the job"
    assert (folder / "ended.a").exists(), "functions registered with atexit run"
    memory = (folder / "benchmark.a").read_text().split("\n")[1].split("\t")[2]
    assert 20 < float(memory) < 1000


@pytest.mark.parametrize("variables", [{"POPDESIC_FRESH_JOBS": "1"}, {}], ids=["fresh", "forked"])
def test_jobs_are_started_by_python_where_this_is_asked_for(folder, variables):
    (folder / "job.py").write_text(
        "import os, sys\nopen(snakemake.output[0], 'w').write(str('pandas' in sys.modules))\n"
    )
    assert run(folder, **variables).returncode == 0
    assert (folder / "a").read_text() == str(not variables)


def test_what_two_jobs_import_is_imported_once_and_only_for_them(folder):
    ask = "import sys\nopen(snakemake.output[0], 'w').write(str('sklearn' in sys.modules))\n"
    text = (folder / "Snakefile").read_text()
    for name in ("find_communities", "draw"):
        (folder / f"{name}.py").write_text(ask)
        text += f'\nrule {name}:\n    output: "{name}"\n    script: "{name}.py"\n'
    (folder / "Snakefile").write_text(text)
    for name, there in (("draw", "False"), ("find_communities", "True")):
        assert run(folder, name).returncode == 0
        assert (folder / name).read_text() == there
    (folder / "draw").unlink()
    text = text.replace('output: "draw"', 'input: "find_communities"\n    output: "draw"')
    (folder / "Snakefile").write_text(text)
    assert run(folder, "draw", "--forceall").returncode == 0
    assert (folder / "draw").read_text() == "True"


def test_a_dry_run_starts_no_process(folder):
    text = (folder / "Snakefile").read_text()
    begun = text.replace(
        "before_plan(workflow, start_forks)", "before_plan(workflow, lambda: print('BEGUN'))"
    )
    assert begun != text
    (folder / "Snakefile").write_text(begun)
    assert "BEGUN" not in run(folder, "--dry-run").stdout
    assert "BEGUN" not in run(folder, "--unlock").stdout
    assert "BEGUN" in run(folder).stdout


def test_jobs_start_without_the_process_that_forks_them(folder):
    (folder / "job.py").write_text(
        "import os, signal\nopen(snakemake.output[0], 'w').write('made')\n"
        "if snakemake.wildcards.name == 'a':\n    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    import time\n    time.sleep(100)\n"
    )
    done = run(folder, "--keep-going", "--cores", "1")
    assert done.returncode and not (folder / "a").exists(), "its child ended with it"
    assert (folder / "b").exists(), done.stdout


@pytest.mark.parametrize("accident", ["fail", "kill"])
def test_a_job_that_fails_or_is_killed_ends_the_run(folder, accident):
    (folder / f"{accident}.b").touch()
    done = run(folder)
    assert done.returncode and "Error in rule make" in done.stdout
    assert (folder / "a").exists() and not (folder / "b").exists()
    assert (folder / "ended.b").exists() == (accident == "fail")


def test_a_job_is_measured_to_its_end_with_its_own_processes(folder):
    job = (
        "import os, subprocess, sys\n"
        "spend = 'import time\\nwhile time.process_time() < 0.4: pass'\n"
        "subprocess.run([sys.executable, '-c', spend])\n"
        "open(snakemake.output[0], 'w').close()\nos._exit(0)\n"
    )
    (folder / "job.py").write_text(job)
    done = run(folder)
    assert done.returncode == 0, done.stdout
    head, line = (row.split("\t") for row in (folder / "benchmark.a").read_text().splitlines())
    said = dict(zip(head, line, strict=True))
    assert 0.4 <= float(said["cpu_time"]) < 60 and 20 < float(said["max_rss"]) < 1000
    assert float(said["mean_load"]) > 0 and float(said["io_in"]) >= 0


@pytest.mark.parametrize("variables", [{"POPDESIC_FRESH_JOBS": "1"}, {}], ids=["fresh", "forked"])
def test_jobs_end_with_snakemake(folder, variables):
    (folder / "job.py").write_text(
        f"import os, sys, time\nsys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "from popdesic.core.log import logged\n"
        "with logged('job.log'):\n    print('PID', os.getpid(), flush=True)\n    time.sleep(300)"
    )
    words = [sys.executable, "-m", "snakemake", "--cores", "1", "a"]
    with open(folder / "said", "w") as said:
        process = subprocess.Popen(
            words, cwd=folder, stdout=said, stderr=subprocess.STDOUT, env=os.environ | variables
        )
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
