"""Run Snakemake with jobs that are forked from one process, which has imported what all need.

A job of a tiny study spends most of its time on starting Python and importing numpy, pandas and
numba. Here they are imported once a run:

    python tests/forked_jobs.py ARGUMENTS OF SNAKEMAKE

Snakemake finds a program in the place of Python. The program hands each script, with its folder,
variables and open files, to a process that has imported all these and forks. The child runs the
script as Python does: as `__main__`, with an exit status. It is killed when its program is.
Everything else, such as `python -m`, is run by Python itself. Popdesic is imported by each job.

All jobs of a run have the same seed of hashes; two runs differ in it. POPDESIC_FRESH_JOBS=1 starts
all jobs as users do. So do `command` of running.py and the tests of the tutorial, the wheel,
modules, edited code, Slurm and the bare root.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path

#: What nearly all jobs import.
IMPORTED = ("numpy", "pandas", "numba", "snakemake.logging", "snakemake.iocontainers")
#: What Snakemake sets for a job of one thread, and numpy reads when it is imported.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Snakemake writes the scripts of jobs here.
SCRIPTS = "/.snakemake/scripts/"
#: Stands in the place of Python; it imports as little as possible.
PROGRAM = """\
#!{python} -ISE
import marshal, os, socket, sys
if not (len(sys.argv) == 2 and {scripts!r} in sys.argv[1]):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
job = marshal.dumps((sys.argv[1], os.getcwd(), dict(os.environ)))
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [len(job).to_bytes(8, "little")], [0, 1, 2])
    line.sendall(job)
    said = line.recv(8)
if len(said) < 8:
    sys.exit("the process that forks jobs has ended")
status = int.from_bytes(said, "little", signed=True)
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def run_snakemake(arguments: list[str]) -> None:
    """Run Snakemake as `python -m snakemake` does; the process that forks jobs ends with it."""
    with tempfile.TemporaryDirectory(prefix="forked-jobs-") as folder:
        address, program = f"{folder}/line", Path(folder, "python")
        values = {"python": sys.executable, "scripts": SCRIPTS, "address": address}
        program.write_text(PROGRAM.format(**values))
        program.chmod(0o755)
        alive, held = os.pipe()  # the other process sees the end of this one
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen()
            files = (listening.fileno(), alive)
            words = [sys.executable, __file__, "--fork", *map(str, files)]
            variables = os.environ | dict.fromkeys(THREADS, "1")
            forks = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=files, env=variables)
        os.close(alive)
        sys.executable, sys.path[0] = str(program), str(Path.cwd())
        sys.argv = ["snakemake", *arguments]
        from snakemake.cli import main

        try:
            main()
        finally:
            os.close(held)
            forks.wait()


def fork_jobs(listening: socket.socket, alive: int) -> str:
    """Fork a child for each job until Snakemake ends; in a child, return its script."""
    jobs: dict[int, socket.socket] = {}
    woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    with selectors.DefaultSelector() as ready:
        for file in (listening, alive, woken):
            ready.register(file, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj == alive:
                    for child in jobs:
                        os.kill(child, signal.SIGTERM)
                    os._exit(0)
                elif key.fileobj == woken:
                    os.read(woken, 512)
                    _say_what_ended(jobs, ready)
                elif key.fileobj is listening:
                    line, _ = listening.accept()
                    _import_all()
                    script, folder, variables, files = _receive(line)
                    if child := os.fork():
                        jobs[child] = line
                        ready.register(line, selectors.EVENT_READ, child)
                        for file in files:
                            os.close(file)
                        continue
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for opened in (listening, line, *jobs.values()):
                        opened.close()
                    for file in (alive, woken, waking):
                        os.close(file)
                    for k, file in enumerate(files):
                        os.dup2(file, k)
                        os.close(file)
                    os.chdir(folder)
                    os.environ.clear()
                    os.environ.update(variables)
                    return script
                elif key.data in jobs:  # its program has ended before it
                    ready.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGTERM)


@functools.cache
def _import_all() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()  # as the first call of compiled code does
    cpu_target.target_context.refresh()


def _receive(line: socket.socket) -> tuple[str, str, dict[str, str], list[int]]:
    """A job's script, folder and variables, and its standard files."""
    size, files, *_ = socket.recv_fds(line, 8, 3)
    left, parts = int.from_bytes(size, "little"), []
    while left:
        parts.append(line.recv(left))
        left -= len(parts[-1])
    return *marshal.loads(b"".join(parts)), files


def _say_what_ended(jobs: dict[int, socket.socket], ready: selectors.BaseSelector) -> None:
    """Send the exit status of each job that has ended to its program."""
    while jobs:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        line = jobs.pop(child)
        if line.fileno() in ready.get_map():
            ready.unregister(line)
        with line:
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):  # the program was killed
                line.sendall(code.to_bytes(8, "little", signed=True))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--fork"]:
        run_snakemake(sys.argv[1:])
    script = fork_jobs(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
    sys.argv, sys.path[0] = [script], str(Path(script).parent)
    job = types.ModuleType("__main__")
    job.__file__, job.__builtins__ = script, __builtins__
    sys.modules["__main__"] = job
    exec(compile(Path(script).read_bytes(), script, "exec"), job.__dict__)
