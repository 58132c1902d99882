"""A result whose bit flipped is not taken for the one that its readers were made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import environment

from popdesic.study import snakemake_internals
from popdesic.study.snakemake_internals import _is_whole

#: `first` writes the same bytes whatever its input is; `second` copies them.
RULES = """\
from pathlib import Path
from popdesic.core.files import atomic_path
from popdesic.study.snakemake_internals import skip_unchanged
skip_unchanged()

rule second:
    input: "results/first.txt"
    output: "results/second.txt"
    run:
        with atomic_path(output[0]) as path:
            path.write_bytes(Path(input[0]).read_bytes())

rule first:
    input: "given.txt"
    output: "results/first.txt"
    run:
        with atomic_path(output[0]) as path:
            path.write_text("the same")
"""


def run(folder: Path, given: str) -> str:
    (folder / "given.txt").write_text(given)
    words = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", str(folder)]
    done = subprocess.run(
        [*words, "--snakefile", str(folder / "Snakefile")],
        env=environment(),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def flip_bit(path: Path) -> None:
    """Change a bit and keep size and dates."""
    about, text = path.stat(), bytearray(path.read_bytes())
    text[3] ^= 1
    with open(path, "r+b") as file:
        file.write(text)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.mark.slow
def test_readers_of_a_damaged_result_run_when_it_is_made_again(tmp_path):
    (tmp_path / "Snakefile").write_text(RULES)
    first, second = tmp_path / "results/first.txt", tmp_path / "results/second.txt"
    run(tmp_path, "a")
    assert "unchanged, not run (second)" in run(tmp_path, "b")
    # The second is made from the damaged first, as it happens if it runs for a reason of its own.
    flip_bit(first)
    second.unlink()
    run(tmp_path, "b")
    assert second.read_text() != "the same"
    said = run(tmp_path, "c")
    assert "unchanged, not run" not in said
    assert first.read_text() == second.read_text() == "the same"


@pytest.mark.parametrize("read", [True, False])
def test_large_files_are_not_read_again(tmp_path, monkeypatch, read):
    from popdesic.core.files import atomic_path

    path = tmp_path / "results/a.bin"
    with atomic_path(path) as temporary:
        temporary.write_bytes(bytes(1000))
    monkeypatch.setattr(snakemake_internals, "READ_AGAIN", 1000 if read else 999)
    assert _is_whole(path)
    flip_bit(path)
    assert _is_whole(path) == (not read)
