"""The log of a job: its last line, and how a job that is done ends."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from popdesic.core.files import atomic_path
from popdesic.core.log import blocked_write
from popdesic.core.places import HOME

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = sorted((HOME / "workflow/scripts").rglob("*.py"))
#: A job: Snakemake defines `snakemake` in its scripts.
JOB = """\
import atexit, sys, time
sys.path.insert(0, {src!r})
from popdesic.core.log import logged

class Witness:
    def __del__(self):
        print("taken apart")

{given}
witness = Witness()
atexit.register(print, "registered function")
while time.process_time() < 0.2:
    pass
with logged("job.log"):
    {body}
{after}
"""


def run_job(folder: Path, *, given="snakemake = 1", body="pass", after="") -> tuple[int, str]:
    """Run a job in a process of its own; return its exit status and what it printed."""
    text = JOB.format(src=str(ROOT / "src"), given=given, body=body, after=textwrap.dedent(after))
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_the_last_line_says_cpu_time_and_start_up(tmp_path):
    body = (
        "start = time.process_time()\n"
        "    while time.process_time() < start + 0.3: pass\n"
        "    print(start, time.process_time())"
    )
    begin, end = map(float, run_job(tmp_path, body=body)[1].splitlines()[0].split())
    last = (tmp_path / "job.log").read_text().splitlines()[-1]
    found = re.search(r"INFO done in (\S+) s, (\S+) CPU-s, (\S+) of them start-up$", last)
    seconds, cpu, start_up = map(float, found.groups())
    # to two digits; how long Python takes to start is the machine's matter
    assert 0.2 <= start_up <= begin + 0.005
    assert end - 0.005 <= cpu < end + 0.3
    assert seconds >= 0.1


def test_a_job_that_is_done_exits_at_once(tmp_path):
    """Functions registered with atexit run, but nothing is taken apart."""
    assert run_job(tmp_path, body="print('work')") == (0, "work\nregistered function\n")


def test_other_processes_are_taken_apart_as_usual(tmp_path):
    status, said = run_job(tmp_path, given="")
    assert (status, said.split("\n")[-2]) == (0, "taken apart")


@pytest.mark.parametrize(
    "how",
    [
        {"body": "raise ValueError('a bug')"},
        {"body": "from popdesic.core.errors import UserError\n    raise UserError('a mistake.')"},
        {"after": "raise ValueError('a bug after the work')"},
    ],
)
def test_a_job_that_fails_keeps_its_exit_status(tmp_path, how):
    assert run_job(tmp_path, **how)[0] == 1


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (
            # Set, because a shell in the background starts programs that ignore the signal.
            "import signal as s\n    s.signal(s.SIGINT, s.default_int_handler)\n"
            "    s.raise_signal(s.SIGINT)",
            130,
            "WARNING interrupted",
        ),
        ("raise PermissionError(13, 'Permission denied', 'results/a')", 1, "results/a cannot be"),
        (
            "from popdesic.core.files import require_space\n    require_space('a.npy', 10**18)",
            1,
            "a.npy: No space left on device, 1,000,000,000,000.0 MB are needed (",
        ),
    ],
)
def test_what_is_no_fault_has_one_sentence_and_no_traceback(tmp_path, body, status, words):
    assert run_job(tmp_path, body=body)[0] == status
    log = (tmp_path / "job.log").read_text()
    assert words in log
    assert "Traceback" not in log


def test_a_full_disk_names_the_file_that_could_not_be_written(tmp_path):
    """numpy's message has neither a number nor a file; that of a write has no file."""
    for cause in ("4 requested and 2 written", (28, "No space left on device")):
        error = OSError(cause) if isinstance(cause, str) else OSError(*cause)
        with pytest.raises(OSError) as found, atomic_path(tmp_path / "closure.npy"):
            raise error
        sentence = blocked_write(found.value)
        assert f"could not write {tmp_path / 'closure.npy'}: No space left on device" in sentence
        assert "MB are left in" in sentence
    temporary = tmp_path / f".a.npy.{socket.gethostname()}.12.0123abcd.tmp"
    assert f"write {tmp_path / 'a.npy'}:" in blocked_write(OSError(28, "full", str(temporary)))
    assert list(tmp_path.iterdir()) == []


def test_what_may_not_be_written_is_part_of_a_study_or_not():
    error = PermissionError(13, "Permission denied", "out.vcf.gz")
    assert "work on a copy of the study" in blocked_write(error)
    sentence = blocked_write(error, study=False)
    assert "out.vcf.gz cannot be" in sentence and "name a file in a folder that is" in sentence
    assert "study" not in sentence


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_adapters_end_with_the_logged_block(path):
    """What follows the last line of the log would not decide the exit status."""
    text = path.read_text()
    assert text.count("with logged(") == 1
    after = text.split("with logged(")[1].splitlines()[1:]
    assert all(line.startswith("    ") or not line for line in after)


def test_a_full_folder_of_temporary_files_is_named(monkeypatch, tmp_path):
    """On a real file system of 16 kB; without one that can be mounted, what Python itself says."""
    full = tmp_path / "full"
    full.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(full)]
    mounted = not subprocess.run(mount, capture_output=True).returncode
    try:
        if mounted:
            monkeypatch.setattr(tempfile, "tempdir", str(full))
            with pytest.raises(OSError) as found, tempfile.TemporaryFile(buffering=0) as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            sentence = blocked_write(found.value)
            # The file is gone, and with it what filled the folder, unless others fill it too.
            assert sentence and "could not write" in sentence
            assert f"{full} is full" in sentence and "set TMPDIR" in sentence
    finally:
        if mounted:
            subprocess.run(["umount", str(full)], check=True)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "absent")])
    with pytest.raises(FileNotFoundError) as found:
        tempfile.gettempdir()
    sentence = blocked_write(found.value)
    assert str(tmp_path / "absent") in sentence and "set TMPDIR to another folder" in sentence
