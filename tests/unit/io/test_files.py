"""Atomic writing: all of a file or none, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from popdesic.io.files import atomic_path

WRITER = """
import sys, time
from pathlib import Path
from popdesic.io.files import atomic_path
with atomic_path(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_success_replaces_and_failure_keeps(tmp_path):
    target = tmp_path / "new" / "table.tsv"
    with atomic_path(target) as temporary:
        temporary.write_text("first")
        assert not target.exists()
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("second")
        raise RuntimeError
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["table.tsv"]


def test_a_killed_writer_leaves_nothing_for_long(tmp_path, pytestconfig):
    target = tmp_path / "table.tsv"
    environment = os.environ | {"PYTHONPATH": str(pytestconfig.rootpath / "src")}
    command = [sys.executable, "-c", WRITER, target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout.readline() == b"writing\n"
        # A living writer's file is not touched.
        with atomic_path(target) as temporary:
            temporary.write_text("other")
        assert len(list(tmp_path.iterdir())) == 2
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert len(list(tmp_path.iterdir())) == 2
    with atomic_path(target) as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["table.tsv"]
    assert target.read_text() == "whole"
