"""Leases of devices among real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from popdesic.backend.lease import lease_device
from popdesic.errors import UserError

HOLD = """
import sys, time
from pathlib import Path
from popdesic.backend.lease import lease_device
print(lease_device(int(sys.argv[2]), folder=Path(sys.argv[1]), environment={}), flush=True)
time.sleep(60)
"""
PACKAGE = Path(__file__).parents[2] / "workflow" / "scripts"


@pytest.fixture
def hold(tmp_path):
    """Starts processes that lease one of `count` devices and keep it."""
    started = []

    def start(count: int) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path), str(count)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_every_process_gets_its_own(tmp_path, hold):
    processes = [hold(3) for _ in range(3)]
    assert sorted(int(process.stdout.readline()) for process in processes) == [0, 1, 2]
    with pytest.raises(UserError, match="all 3 GPUs of this machine are taken") as error:
        lease_device(3, folder=tmp_path, environment={}, patience=0)
    assert "\n" not in str(error.value)


def test_a_killed_process_gives_its_device_back(tmp_path, hold):
    first = hold(1)
    assert first.stdout.readline() == "0\n"
    second = hold(1)
    time.sleep(0.5)
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    assert second.stdout.readline() == "0\n"


SNAKEFILE = """
rule all:
    input:
        expand("{job}.txt", job=range(8)),

rule hold:
    output:
        "{job}.txt",
    resources:
        gpu=1,
    shell:
        "PYTHONPATH=PACKAGE PYTHON hold.py > {output}"
"""


def test_snakemake_keeps_four_devices_busy(tmp_path):
    """`--resources gpu=4`: four jobs at a time, each on a device of its own."""
    hold = HOLD.replace("sys.argv[2]", "'4'").replace("Path(sys.argv[1])", "Path('locks')")
    timed = "print(time.time()); time.sleep(2); print(time.time())"
    (tmp_path / "hold.py").write_text(hold.replace("time.sleep(60)", timed))
    text = SNAKEFILE.replace("PACKAGE", str(PACKAGE)).replace("PYTHON ", f"{sys.executable} ")
    (tmp_path / "Snakefile").write_text(text)
    words = ["-m", "snakemake", "--cores", "8", "--resources", "gpu=4", "--quiet", "all"]
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, timeout=300)
    held = [tuple(map(float, path.read_text().split())) for path in tmp_path.glob("*.txt")]
    assert {device for device, _, _ in held} == {0, 1, 2, 3}
    for device, start, end in held:
        beside = [one for one in held if one[1] < end and one[2] > start]
        assert [one[0] for one in beside].count(device) == 1
        assert len(beside) > 1, "jobs run beside each other"


def test_a_process_keeps_the_device_that_it_has(tmp_path):
    """In every folder of locks, and whatever it has leased in another."""
    for folder in (tmp_path / "a", tmp_path / "b", tmp_path / "a"):
        assert lease_device(2, folder=folder, environment={}) == 0
    assert len(list(tmp_path.glob("*/*.lock"))) == 2


def test_a_scheduler_has_the_last_word(tmp_path):
    granted = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "2"}
    for _ in range(2):
        assert lease_device(1, folder=tmp_path / "none", environment=granted) == 0
    assert not (tmp_path / "none").exists()


def test_visible_devices_share_locks_by_name(tmp_path, hold):
    """Index 0 of a process that sees device 1 alone is not device 0."""
    assert hold(1).stdout.readline() == "0\n"
    code = HOLD.replace("environment={}", "environment={'CUDA_VISIBLE_DEVICES': '1'}")
    other = subprocess.run(
        [sys.executable, "-c", code.replace("time.sleep(60)", ""), str(tmp_path), "1"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
    )
    assert other.stdout == "0\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.lock", "1.lock"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="lock files of the GPUs cannot be kept there") as error:
        lease_device(1, folder=tmp_path / "file" / "locks", environment={})
    assert "\n" not in str(error.value)
