"""Real accidents on one machine; afterwards the results equal those of an undisturbed run.

Each test prints its row of the table in docs/faults.md.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support.running import PATIENCE, ROOT, command, contents, environment, snakemake
from support.study import make_cohorts, write_study

from popdesic.__main__ import main
from popdesic.core.files import checksum_of


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


def test_a_run_that_cannot_fit_is_refused(small_disk):
    """Pairs of 300 samples need more than 100 kB."""
    folder = write_study(small_disk.parent, make_cohorts((300,), n_sites=60))
    output = snakemake(folder, "geodesic", fails=True)
    assert "results needs 0.00" in output and "GB left; make room" in output
    assert "Traceback" not in output and "Finished jobid" not in output
    assert not list(small_disk.rglob("*.bed"))


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


def start(folder: Path, said) -> subprocess.Popen:
    """Start a run of distances in a session of its own, and return once it has decoded a cohort."""
    run = subprocess.Popen(
        command(folder, "distance"),
        env=environment(),
        cwd=folder,
        stdout=said,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    while not (folder / "results/cohorts/north/raw.bed").exists():
        assert run.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.02)
    return run


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").resolve() == folder.resolve():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_process_outlives_a_killed_run(tmp_path, undisturbed):
    """Snakemake alone is killed, as the kernel does where memory is short."""
    folder = make_study(tmp_path / "study")
    with tempfile.TemporaryFile("w+") as said:
        run = start(folder, said)
        run.kill()
        run.wait()
        end = time.monotonic() + 20
        while left := processes_in(folder):
            assert time.monotonic() < end, left
            time.sleep(0.05)
    snakemake(folder, "--unlock")
    snakemake(folder, "distance", "--rerun-incomplete")
    equal = contents(folder) == contents(undisturbed)
    print(
        f"fault Snakemake killed: its jobs end with it, then the run went on, bytes equal {equal}"
    )
    assert equal


def test_interrupted(tmp_path, undisturbed):
    """Ctrl-C ends a run with one line and the status of a shell; no file is half written."""
    folder = make_study(tmp_path / "study")
    with tempfile.TemporaryFile("w+") as said:
        run = start(folder, said)
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(PATIENCE) == 130
        said.seek(0)
        output = said.read()
    assert "Traceback" not in output
    assert "Error" not in output
    last = output.rstrip().splitlines()[-1]
    assert last.startswith("Interrupted. Finished results are kept; go on with: snakemake ")
    assert half_written(folder) == []
    snakemake(folder, "distance")
    equal = contents(folder) == contents(undisturbed)
    print(f"fault Ctrl-C: one line, then the run went on, bytes equal {equal}")
    assert equal


def test_what_a_machine_that_lost_its_power_left_is_removed(tmp_path):
    """A run that succeeds removes half-written files of other machines, and nothing else."""
    folder = make_study(tmp_path / "study")
    place = folder / "results/cohorts/north"
    place.mkdir(parents=True)
    left, kept = (place / f".raw.bed.node2.{tail}" for tail in ("41.0123abcd.tmp", "tmp"))
    for path in (left, kept):
        path.write_text("half")
    snakemake(folder, "ingest")
    assert not left.exists() and kept.exists()
    print("fault a machine that lost its power: what it half wrote is removed")


def test_a_study_of_another_user_or_on_a_read_only_disk(tmp_path, undisturbed):
    """Nothing is begun, and one sentence says why."""
    folder = tmp_path / "study"
    shutil.copytree(undisturbed, folder, copy_function=shutil.copy2)
    shown = str(folder)
    closed = ["mount", "--bind", shown, shown], ["mount", "-o", "remount,ro,bind", shown]
    if any(subprocess.run(words, capture_output=True).returncode for words in closed):
        pytest.skip("no file system can be mounted here")
    try:
        for words in (["run", "--cores", "1"], ["run", "-n"], ["plan"], ["crate"]):
            done = subprocess.run(
                [sys.executable, "-m", "popdesic", words[0], shown, *words[1:]],
                env=environment() | {"PYTHONPATH": str(ROOT / "src")},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert done.returncode == 1
            assert "cannot be written" in done.stdout + done.stderr
            assert "Traceback" not in done.stdout + done.stderr
    finally:
        subprocess.run(["umount", shown], check=True)


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
