"""Sharing independent tasks among threads, around compiled kernels that release the GIL.

Or among copies of the process, for work that does not (`run_forked`).

Kernels are compiled without numba's parallel loops: they compile several times faster, tasks of
unequal length are balanced dynamically, and processes may fork and nest threads.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Function = TypeVar("Function", bound=Callable)


@functools.cache
def _blas_libraries() -> ThreadpoolController:
    """NumPy's BLAS and SciPy's own. To look for them takes 5 ms, so it is done once."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread(function: Function) -> Function:
    """Decorator: BLAS has one thread, because the order of its sums depends on their number."""

    @functools.wraps(function)
    def limited(*arguments, **named):
        with _blas_libraries().limit(limits=1):
            return function(*arguments, **named)

    return limited


def usable_cpus() -> int:
    """CPUs that this process may use (a scheduler may grant fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(work: Callable[..., Any], tasks: Iterable[tuple], threads: int) -> list:
    """Results of ``work(*task)`` for every task, on up to `threads` threads, in order.

    The first error is raised.
    """
    tasks = list(tasks)
    if threads <= 1 or len(tasks) <= 1:
        return [work(*task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda task: work(*task), tasks))


def run_forked(work: Callable[..., Any], tasks: Iterable[tuple], processes: int) -> list:
    """`run_tasks` with copies of this process in place of threads, for work that holds the GIL.

    Results come back pickled. Only on Linux: libraries of other systems may not survive a fork.
    """
    return list(forked_in_order(work, tasks, processes))


def forked_in_order(
    work: Callable[..., Any], tasks: Iterable[tuple], processes: int
) -> Iterator[Any]:
    """Yield what `run_forked` returns, in order, each result when it is there."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    tasks = list(tasks)
    processes = min(processes, len(tasks))
    if processes <= 1 or sys.platform != "linux":
        for task in tasks:
            yield work(*task)
        return
    _FORKED.append(work)
    try:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
            yield from pool.map(_call_forked, tasks)
    finally:
        _FORKED.pop()


#: What copies of this process do: they have it from the fork, so that it need not be pickled.
_FORKED: list[Callable[..., Any]] = []


def _call_forked(task: tuple) -> Any:
    return _FORKED[-1](*task)


def run_ordered(work: Callable[[Any], Any], tasks: Iterable[Any], threads: int) -> Iterator[Any]:
    """Yield ``work(task)`` of every task in order, with up to `threads` of them at work.

    Tasks are taken as they are needed, so that few of them are in memory.
    """
    if threads <= 1:
        yield from map(work, tasks)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque = deque()
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
