"""Atomic writing: a file is complete or absent, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import ANY

import pytest

from popdesic.core.files import (
    atomic_path,
    carrying_panel,
    panel_of,
    remove_temporaries,
    resized_results,
    write_json,
)
from popdesic.core.log import logged
from popdesic.study.audit import damaged_files

WRITER = """
import sys, time
from pathlib import Path
from popdesic.core.files import atomic_path
with atomic_path(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_success_replaces_the_file_and_failure_keeps_it(tmp_path):
    target = tmp_path / "new" / "table.tsv"
    with atomic_path(target) as temporary:
        temporary.write_text("first")
        assert not target.exists()
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("second")
        raise RuntimeError
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["table.tsv"]


def test_files_of_a_killed_writer_are_removed_later(tmp_path, pytestconfig):
    target = tmp_path / "table.tsv"
    environment = os.environ | {"PYTHONPATH": str(pytestconfig.rootpath / "src")}
    command = [sys.executable, "-c", WRITER, target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout.readline() == b"writing\n"
        # The file of a running writer is not touched.
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


# --- panels -------------------------------------------------------------------------------------


def write_with(panel: str, path):
    with carrying_panel(panel), atomic_path(path) as temporary:
        temporary.write_text("x")
    return path


def test_what_a_job_writes_carries_the_panel_of_its_inputs(tmp_path):
    results = tmp_path / "results"
    source = write_with("0123456789ab", results / "source.tsv")
    plain = write_with("", results / "plain.tsv")
    (results / "foreign.tsv").write_text("x")
    out = results / "out.tsv"
    inputs = [plain, source, results / "foreign.tsv"]
    with logged(tmp_path / "log", inputs), ThreadPoolExecutor(1) as pool:
        pool.submit(write_json, out, {}).result()  # a job's threads write as that job
    assert [panel_of(path) for path in (source, plain, out)] == ["0123456789ab", "", "0123456789ab"]
    assert damaged_files(tmp_path) == ([("results/foreign.tsv", ANY)], 4)
    with atomic_path(out) as temporary:
        temporary.write_text("outside of a job")
    assert panel_of(out) == ""


def test_results_of_another_size_are_found(tmp_path):
    for name in ("cut", "longer", "whole"):
        write_json(tmp_path / f"results/a/{name}.json", {"n": 1})
    (tmp_path / "results/a/foreign.tsv").write_text("x")
    assert list(resized_results(tmp_path / "results")) == []
    (tmp_path / "results/a/cut.json").write_bytes(b"{")
    with open(tmp_path / "results/a/longer.json", "a") as file:
        file.write("\n")
    found = [path.name for path in resized_results(tmp_path / "results")]
    assert found == ["cut.json", "longer.json"]


def test_results_of_two_panels_are_refused(tmp_path, capsys):
    inputs = [write_with(name * 12, tmp_path / "results" / f"{name}.npy") for name in "aba"]
    with pytest.raises(SystemExit), logged(tmp_path / "log", inputs):
        raise AssertionError("the job began")
    sentence = capsys.readouterr().err
    assert "a.npy was made with the panel aaaaaaaaaaaa" in sentence
    assert "b.npy with the panel bbbbbbbbbbbb" in sentence
    assert "delete those of the old panel" in sentence


def test_temporary_files_of_any_machine_are_removed(tmp_path, monkeypatch):
    folder = tmp_path / "results/deep"
    monkeypatch.setattr("socket.gethostname", lambda: "node-2.cluster")
    with atomic_path(folder / "a.npy") as temporary:
        temporary.write_text("whole")
        (folder / temporary.name.replace("a.npy", "b.npy")).write_text("half")
    other = [folder / name for name in (".c.tmp", "d.1.0123abcd.tmp", ".a.npy.crc32", "a.npy")]
    for path in other[:2]:
        path.write_text("kept")
    assert remove_temporaries(tmp_path / "results") == 1
    assert sorted(folder.iterdir()) == sorted(other)
    assert remove_temporaries(tmp_path / "none") == 0
