"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import signal
import sys

#: Number of Linux's `prctl`: the signal that a process gets when its parent ends.
SET_DEATH_SIGNAL = 1
_C = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let this process get a signal when its parent ends, also if that is killed; on Linux only.

    For copies of a process, and as `preexec_fn` of programs that it starts. The parent is the
    thread that started it.
    """
    if _C is not None:
        _C.prctl(SET_DEATH_SIGNAL, int(number), 0, 0, 0)
