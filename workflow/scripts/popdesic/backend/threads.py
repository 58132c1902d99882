"""Sharing independent tasks among threads, around compiled kernels that release the GIL.

Kernels are compiled without numba's own parallel loops: they compile several times faster, tasks of
unequal length balance by themselves, and processes may fork or nest threads as they like.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor


def usable_cpus() -> int:
    """CPUs that this process may use (a scheduler may grant fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(work: Callable[..., None], tasks: Iterable[tuple], threads: int) -> None:
    """Call ``work(*task)`` for every task on up to `threads` threads; the first error is raised."""
    tasks = list(tasks)
    if threads <= 1 or len(tasks) <= 1:
        for task in tasks:
            work(*task)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda task: work(*task), tasks):
            pass
