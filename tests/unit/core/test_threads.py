"""Threads: one for BLAS and OpenMP where sums decide bytes, whenever their libraries are loaded."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from popdesic.core.errors import UserError
from popdesic.core.threads import one_blas_thread, run_forked, run_ordered

SOURCES = Path(__file__).resolve().parents[3] / "src"
BLAS = """
from popdesic.core.threads import one_blas_thread

@one_blas_thread
def probe():
    from scipy.linalg import eigh
    return threadpool_info()

found = [one["num_threads"] for one in probe() if one["user_api"] == "blas"]
assert len(found) > 1, found  # NumPy's and SciPy's own
"""
SPLITS = """
import numpy as np
from popdesic.communities import splits

def probe(*_):
    from scipy.linalg import eigh
    return threadpool_info()

splits._split = probe
pools = splits.split_samples(np.zeros((9, 2)))
found = [one["num_threads"] for one in pools if one["user_api"] == "blas"]
assert len(found) > 1, found  # NumPy's and SciPy's own
"""


@pytest.mark.parametrize("program", [BLAS, SPLITS], ids=["blas", "splits"])
def test_libraries_that_are_loaded_late_are_limited_too(program):
    """In a fresh process, in which nothing has loaded SciPy before."""
    program = (
        f"from threadpoolctl import threadpool_info\n{program}assert set(found) == {{1}}, found"
    )
    two = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], "2")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | two | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_a_limit_of_blas_within_another_does_not_lift_it():
    @one_blas_thread
    def outer():
        return [one_blas_thread(blas_threads)(), blas_threads()]

    with threadpool_limits(2, "blas"):
        assert [*outer(), blas_threads()] == [{1}, {1}, {2}]


def test_the_limit_of_blas_is_lifted_after_an_error():
    with threadpool_limits(2, "blas"):
        with pytest.raises(ZeroDivisionError):
            one_blas_thread(lambda: 1 / 0)()
        assert blas_threads() == {2}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order_and_few_tasks_are_waiting(threads):
    taken = []

    def tasks():
        for number in range(40):
            taken.append(number)
            yield number

    for number, result in enumerate(run_ordered(lambda x: x * x, tasks(), threads)):
        assert result == number**2
        assert len(taken) <= number + 2 * threads + 2
    assert number == 39


def test_errors_of_tasks_are_raised():
    with pytest.raises(ZeroDivisionError):
        list(run_ordered(lambda x: 1 // x, [1, 0, 1], 3))


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_copies_of_the_process_return_results_in_order(processes):
    squares = {k: k * k for k in range(5)}  # known to copies without being sent
    assert run_forked(lambda k: squares[k], zip(range(5)), processes) == [0, 1, 4, 9, 16]
    workers = set(run_forked(lambda _: os.getpid(), zip(range(20)), processes))
    assert (os.getpid() in workers) == (processes == 1 or sys.platform != "linux")


@pytest.mark.parametrize("processes", [1, 3])
def test_the_error_of_a_copy_is_raised(processes):
    def fail(k: int) -> None:
        raise UserError(f"number {k}")

    with pytest.raises(UserError, match="number 0"):
        run_forked(fail, zip(range(4)), processes)


def test_a_copy_that_is_killed_is_an_error():
    with pytest.raises(RuntimeError, match="killed"):
        run_forked(lambda _: os.kill(os.getpid(), signal.SIGKILL), zip(range(4)), 2)


def test_tasks_of_unequal_length_are_balanced():
    """One copy sleeps in the first task, the other does all others."""
    by = run_forked(lambda k: (time.sleep(0.3 * (k == 0)), os.getpid())[1], zip(range(9)), 2)
    assert by.count(by[0]) == 1


def test_a_result_that_cannot_be_sent_is_an_error():
    with pytest.raises(RuntimeError, match="pickle"):
        run_forked(lambda k: lambda: k, zip(range(4)), 2)


WITHOUT_SEMAPHORES = """
import multiprocessing.synchronize
from popdesic.core.threads import run_forked
try:
    multiprocessing.get_context("fork").Lock()
except OSError:
    print(run_forked(lambda k: k * k, zip(range(5)), 3))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces of Linux")
def test_copies_work_where_dev_shm_cannot_be_written():
    """Some containers mount it read-only; semaphores lie there."""
    apart = ["unshare", "--mount", "--map-root-user"]
    hidden = "mount -t tmpfs -o ro,size=4k tmpfs /dev/shm"
    if subprocess.run([*apart, "sh", "-c", hidden], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace for this user")
    done = subprocess.run(
        [*apart, "sh", "-c", f'{hidden} && exec "$0" -c "$1"', sys.executable, WITHOUT_SEMAPHORES],
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[0, 1, 4, 9, 16]", done.stderr


def test_copies_end_with_their_parent(tmp_path):
    """A run that is killed leaves nobody at work."""
    program = (
        "import os, time; from pathlib import Path\n"
        "from popdesic.core.threads import run_forked\n"
        "def work(k):\n"
        "    Path(f'pid{k}').write_text(str(os.getpid())); time.sleep(0.5)\n"
        "run_forked(work, zip(range(99)), 2)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
    )
    try:
        until(lambda: all((tmp_path / name).exists() for name in ("pid0", "pid1")))
    finally:
        parent.kill()
        parent.wait()
    copies = {int(path.read_text() or 0) for path in tmp_path.glob("pid*")} - {0}
    until(lambda: not any(alive(pid) for pid in copies))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(done, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
