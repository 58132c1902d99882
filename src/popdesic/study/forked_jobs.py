"""Jobs that are forked from one process, which has imported what most of them need.

A short job spends most of its time on starting Python and importing numpy, pandas, SciPy and numba.
On Linux, Snakemake's main process starts a second process, which imports them once a run
(`start_forks`). It forks a child for each script (`Forks.job`). The child has the job's folder,
variables and standard files, and runs the script as Python does: as `__main__`, with an exit
status. It ends when the run ends.

The second process has one thread and never uses a GPU, so that its children can do both. All jobs
of a run have the same seed of hashes. POPDESIC_FRESH_JOBS=1 starts each job as a Python of its own:
ten jobs of a tiny study then took 10.2 CPU seconds, forked 5.0.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..core.log import INTERRUPTED
from ..core.processes import RUN, end_with_parent, mark_run
from ..engine.scan_device import DRIVER
from .first_call_cpu import prepare_calls
from .snakemake_internals import fork_jobs

#: Environment variable: each job is a Python of its own.
FRESH_JOBS = "POPDESIC_FRESH_JOBS"
#: What nearly all jobs import, and parts of Popdesic that import little else.
IMPORTED = (
    *("snakemake.iocontainers", "snakemake.logging", "numpy", "pandas", "numba"),
    *("scipy.linalg", "scipy.sparse", "scipy.special", "threadpoolctl"),
    *("popdesic.core.log", "popdesic.distance.store", "popdesic.components.pca"),
)
#: What jobs that draw import, and jobs that use a GPU; it is imported when no job waits. CuPy does
#: not begin to use a GPU before its first call.
IMPORTED_LATER = ("matplotlib.figure", "matplotlib.backends.backend_svg", "matplotlib.patches")
#: What the jobs of a script import and those of others after them, which need not do so again.
IMPORTED_FOR = {"find_communities": "sklearn.cluster"}
#: Variables that numpy's BLAS reads when it is imported.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: The program of the second process; it imports nothing from the current folder, a study's.
PROGRAM = (
    "import sys; sys.path.insert(0, {packages!r}); "
    "from popdesic.study.forked_jobs import serve; serve({file})"
)
PACKAGES = Path(__file__).resolve().parents[2]
#: Numbers that go between the two processes: sizes, exit statuses, what jobs took.
NUMBER = 8
#: Number of Linux's `prctl`: the name of a process.
SET_NAME = 15


# In Snakemake's process.


class Forks:
    """The process that forks jobs, seen from Snakemake's."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        self.lock = threading.Lock()
        with theirs:
            words = PROGRAM.format(packages=str(PACKAGES), file=theirs.fileno())
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", words],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | dict.fromkeys(THREADS, "1"),
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the other process and its children, when Snakemake ends."""
        self.line.close()
        self.process.terminate()  # it may be importing
        self.process.wait()  # its CPU time is then counted as Snakemake's
        gc.freeze()  # Python's search for cycles among Snakemake's objects takes 0.3 s

    @contextlib.contextmanager
    def job(self, script: str, variables: dict[str, str], threads: int) -> Iterator[ForkedJob]:
        """Fork a child for a script, which begins at once; `wait` waits for its end.

        Raises
        ------
        OSError
            The process that forks jobs has ended.
        """
        words = marshal.dumps((script, str(Path.cwd()), variables, threads))
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self.lock:
                socket.send_fds(self.line, [_bytes_of(len(words))], [theirs.fileno()])
                self.line.sendall(words)
            _number(ours)  # it was received: from now on the child runs, or ends with its parent
            yield ForkedJob(ours)


class Ended(NamedTuple):
    """How a job ended, and what it and its own processes took, as the system counted it.

    Attributes
    ----------
    status : int
        Exit status, negative for a signal, as `subprocess` tells it.
    microseconds : int
        CPU time, user and system.
    peak : int
        Most memory of one process, KiB.
    read, written : int
        Blocks of 512 bytes.
    """

    status: int
    microseconds: int = 0
    peak: int = 0
    read: int = 0
    written: int = 0


class ForkedJob:
    """A child that runs a script."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line

    def wait(self) -> Ended:
        """Wait for its end."""
        try:
            return Ended(*(_number(self.line) for _ in Ended._fields))
        except OSError:  # the process that forks jobs was killed, and its children with it
            return Ended(-signal.SIGTERM)


def start_forks() -> None:
    """Start the process that forks jobs, and let Snakemake use it, where a fork is safe.

    Jobs that start as a Python of their own end with this run too.
    """
    mark_run()
    # Libraries of other systems may not survive a fork.
    if sys.platform == "linux" and not os.environ.get(FRESH_JOBS):
        fork_jobs(Forks())


def _bytes_of(number: int) -> bytes:
    return number.to_bytes(NUMBER, "little", signed=True)


def _number(line: socket.socket) -> int:
    """The next number of the other process; OSError if it has ended."""
    said = line.recv(NUMBER, socket.MSG_WAITALL)
    if len(said) < NUMBER:
        raise ConnectionResetError("the process that forks jobs has ended")
    return int.from_bytes(said, "little", signed=True)


# In the process that forks jobs.


def serve(file: int) -> None:
    """Fork a child for each job until Snakemake ends; each child runs a script and exits."""
    # Ctrl-C reaches the jobs too, and this process ends when Snakemake does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=file) as line:
        _import_all()
        job = _fork_jobs(line)
    if job:
        _run_script(*job)


def _import_all() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    prepare_calls()
    gc.collect()
    gc.freeze()  # children share these objects and do not look at them again


def _fork_jobs(line: socket.socket) -> tuple | None:
    """Fork a child for each job of `line`; the job in a child, None when Snakemake has ended."""
    jobs: dict[int, socket.socket] = {}
    woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    with selectors.DefaultSelector() as ready:
        ready.register(line, selectors.EVENT_READ)
        ready.register(woken, selectors.EVENT_READ)
        later = [*["cupy"] * (DRIVER.is_dir() and find_spec("cupy") is not None), *IMPORTED_LATER]
        while True:
            found = ready.select(0 if later and jobs else None)
            if not found:
                with contextlib.suppress(Exception):  # the job that needs it reports the error
                    importlib.import_module(later.pop(0))
                gc.freeze()
            for key, _ in found:
                if key.fileobj == woken:
                    os.read(woken, 512)
                    _say_what_ended(jobs)
                elif (job := _receive(line)) is None:
                    for child in jobs:
                        os.kill(child, signal.SIGTERM)
                    return None
                elif child := _fork_for(*job[:2]):
                    jobs[child] = job[0]
                else:
                    signal.set_wakeup_fd(-1)
                    end_with_parent(signal.SIGTERM)
                    for opened in jobs.values():
                        opened.close()
                    os.close(woken)
                    os.close(waking)
                    job[0].close()
                    return job[1:]


def _fork_for(line: socket.socket, script: str) -> int:
    """Fork a child for a script, after the import that others will share with it."""
    with contextlib.suppress(OSError):
        line.sendall(_bytes_of(0))  # before the child can end this process
    if (name := IMPORTED_FOR.get(_name_of(script), "")) not in {"", *sys.modules}:
        with contextlib.suppress(Exception):  # the job reports the error
            importlib.import_module(name)
        gc.freeze()
    return os.fork()


def _name_of(script: str) -> str:
    """The name of a script in the copy that Snakemake runs."""
    return Path(script).stem.split(".")[-1]


def _receive(line: socket.socket) -> tuple | None:
    """The line of a job, its script, folder, variables and threads; None at the end of the run."""
    try:
        size, files, *_ = socket.recv_fds(line, NUMBER, 1)
        if not files:
            return None
        left, parts = int.from_bytes(size, "little"), []
        while left:
            parts.append(line.recv(left))
            if not parts[-1]:
                return None
            left -= len(parts[-1])
    except OSError:
        return None
    return socket.socket(fileno=files[0]), *marshal.loads(b"".join(parts))


def _say_what_ended(jobs: dict[int, socket.socket]) -> None:
    """Send how each job has ended."""
    while jobs:
        child, status, used = os.wait4(-1, os.WNOHANG)
        if not child:
            return
        with jobs.pop(child) as line, contextlib.suppress(OSError):
            microseconds = round(1e6 * (used.ru_utime + used.ru_stime))
            blocks = used.ru_inblock, used.ru_oublock
            ended = Ended(os.waitstatus_to_exitcode(status), microseconds, used.ru_maxrss, *blocks)
            line.sendall(b"".join(map(_bytes_of, ended)))


def _run_script(script: str, folder: str, variables: dict[str, str], threads: int) -> None:
    """Run a script as Python does, in a child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None).prctl(SET_NAME, _name_of(script).encode())  # its first 15 letters
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    os.environ.pop(RUN, None)  # it ends with the process that forked it
    tempfile.tempdir = None
    if threads > 1:
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)
    sys.argv = [script]  # modules beside it, in the study, are not found
    job = types.ModuleType("__main__")
    job.__file__, job.__builtins__ = script, __builtins__
    sys.modules["__main__"] = job
    try:
        exec(compile(Path(script).read_bytes(), script, "exec"), job.__dict__)
    except KeyboardInterrupt:  # before or after the block that writes the job's log
        raise SystemExit(INTERRUPTED) from None
