"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
from pathlib import Path

#: Number of Linux's `prctl`: the signal that a process gets when its parent ends.
SET_DEATH_SIGNAL = 1
#: Environment variable: the process of the run that a job belongs to, and its space of numbers.
RUN = "POPDESIC_RUN"
#: Where Linux tells that space, which containers may have of their own.
SPACE = "/proc/self/ns/pid"
_C = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let this process get a signal when its parent ends, also if that is killed; on Linux only.

    For copies of a process, and as `preexec_fn` of programs that it starts. The parent is the
    thread that started it.
    """
    if _C is not None:
        _C.prctl(SET_DEATH_SIGNAL, int(number), 0, 0, 0)


def mark_run() -> None:
    """Let jobs that this process starts, by whatever shell, end with it (`end_with_run`)."""
    if _C is not None:
        os.environ[RUN] = f"{os.getpid()} {_space()}"


def end_with_run() -> None:
    """End this process when its run ends, also if that is killed; on Linux only.

    A shell between the two does not end with the run, so its death signal would not reach here.
    """
    number, _, space = os.environ.pop(RUN, "").partition(" ")
    if not number or space != _space() or int(number) == os.getpid():
        return
    try:
        run = os.pidfd_open(int(number))
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGTERM)
        return
    except OSError:  # an old kernel
        return
    threading.Thread(target=_wait_for, args=(run,), daemon=True).start()


def _wait_for(run: int) -> None:
    select.select([run], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def _space() -> str:
    with contextlib.suppress(OSError):
        return str(Path(SPACE).readlink())
    return ""
