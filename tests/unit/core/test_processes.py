"""Copies of a process and programs that it starts end with it, also if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: A job whose copies, or whose program, would work for ten minutes; each writes its process ID.
COPIES = """
import os, time
from pathlib import Path
from popdesic.core.threads import run_forked

def work(k):
    Path(f"working.{k}").write_text(str(os.getpid()))
    time.sleep(600)

run_forked(work, [(0,), (1,)], 2)
"""
PROGRAM = """
import subprocess
from popdesic.core.processes import end_with_parent

words = ["sh", "-c", "echo $$ > begun && mv begun working.0 && exec sleep 600"]
subprocess.run(words, preexec_fn=end_with_parent)
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
@pytest.mark.parametrize(("text", "count"), [(COPIES, 2), (PROGRAM, 1)])
def test_they_end_when_their_parent_is_killed(tmp_path, text, count):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    job = subprocess.Popen([sys.executable, "-c", text], cwd=tmp_path, env=environment)
    end = time.monotonic() + 60
    while len(ids := [p.read_text().strip() for p in tmp_path.glob("working.*")]) < count or (
        "" in ids
    ):
        assert job.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    job.send_signal(signal.SIGKILL)
    job.wait()
    end = time.monotonic() + 10
    while any(is_running(int(pid)) for pid in ids):
        assert time.monotonic() < end, "a copy goes on without its job"
        time.sleep(0.02)
