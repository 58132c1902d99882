"""Real accidents on one machine; afterwards the results equal those of an undisturbed run.

Each test prints its row of the table in docs/faults.md.
"""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from running import PATIENCE, ROOT, command, contents, environment, snakemake
from study import make_cohorts, write_study

from popdesic.__main__ import main
from popdesic.io.files import checksum_of


def make_study(folder: Path) -> Path:
    return write_study(folder, make_cohorts((8,), n_sites=4000))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    """A study of one cohort with its distances."""
    folder = make_study(tmp_path_factory.mktemp("undisturbed"))
    snakemake(folder, "distance")
    return folder


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 100 kB for a study's results; skipped if it cannot be mounted."""
    target = tmp_path / "study/results"
    target.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(target)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here; the limit of file sizes stands for it")
    yield target
    subprocess.run(["umount", str(target)], check=True)


def half_written(folder: Path) -> list[Path]:
    return list((folder / "results").rglob("*.tmp"))


def same(folder: Path, undisturbed: Path) -> bool:
    """Whether all results of a partial study equal those of the whole one."""
    found, expected = contents(folder), contents(undisturbed)
    return bool(found) and all(expected[name] == digest for name, digest in found.items())


def test_disk_full(small_disk, undisturbed):
    folder = make_study(small_disk.parent)
    output = snakemake(folder, "distance", fails=True)
    assert "Error: the job could not write" in output
    assert "No space left on device" in output or "no space left on the device" in output
    assert "Traceback" not in output
    assert half_written(folder) == []
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    snakemake(folder, "distance")
    equal = contents(folder) == contents(undisturbed)
    print(f"fault disk full: one sentence, then the run went on, bytes equal {equal}")
    assert equal


def test_file_size_limit(tmp_path, undisturbed):
    """As with a quota, a write fails in the middle of a file."""
    folder = make_study(tmp_path / "study")
    done = subprocess.run(
        command(folder, "ingest"),
        env=environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert done.returncode
    assert "Error: the job could not write" in done.stderr + done.stdout
    assert half_written(folder) == []
    snakemake(folder, "ingest")
    equal = same(folder, undisturbed)
    print(f"fault file size limit: one sentence, then the run went on, bytes equal {equal}")
    assert equal


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_result_is_named_and_recomputed(undisturbed, tmp_path, capsys, damage):
    folder = tmp_path / "study"
    shutil.copytree(undisturbed, folder, copy_function=shutil.copy2)
    expected = contents(folder)
    assert main(["audit", str(folder)]) == 0
    assert f"{len(expected)} results match their checksums." in capsys.readouterr().out
    path = folder / "results/cohorts/north/planes.npy"
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-100] ^= 1
    path.write_bytes(data if damage == "flip" else data[:-8])
    assert main(["audit", str(folder)]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("results/cohorts/north/planes.npy: ")
    assert "1 of" in told.err
    assert "--repair" in told.err
    # Results computed from the damaged file are removed too.
    if damage == "cut":
        return
    snakemake(folder, "distance")
    assert contents(folder) != expected
    words = ["audit", "--repair", str(folder), "--", "--cores", "2", "distance"]
    done = subprocess.run(
        [sys.executable, "-m", "popdesic", *words],
        env=environment() | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    equal = contents(folder) == expected
    print(f"fault damaged file ({damage}): named, computed again on request, bytes equal {equal}")
    assert equal


def test_checksums_equal_those_of_zlib(tmp_path):
    import zlib

    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 5)
    assert checksum_of(path) == f"{zlib.crc32(path.read_bytes()):08x} 1280"


def test_two_users_start_at_once(tmp_path, undisturbed):
    """One run works; the other gets an error message and changes nothing.

    The first is halted while it holds the lock, so that it cannot end before the second asks.
    """
    folder = make_study(tmp_path / "study")
    with tempfile.TemporaryFile("w+") as said:
        first = subprocess.Popen(
            command(folder, "ingest"),
            env=environment(),
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            while not any(path.stat().st_size for path in folder.glob(".snakemake/locks/*.lock")):
                assert first.poll() is None, "the first run ended without a lock"
                time.sleep(0.02)
            first.send_signal(signal.SIGSTOP)
            refused = snakemake(folder, "ingest", fails=True)
        finally:
            first.send_signal(signal.SIGCONT)
        assert first.wait(PATIENCE) == 0
    assert "Directory cannot be locked" in refused
    assert "Finished jobid" not in refused
    equal = same(folder, undisturbed)
    print(f"fault two starts at once: one refused with a sentence, bytes equal {equal}")
    assert equal
