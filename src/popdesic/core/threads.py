"""Sharing independent tasks among threads, around compiled kernels that release the GIL.

Or among copies of the process, for work that does not (`run_forked`).

Kernels are compiled without numba's parallel loops: they compile several times faster, tasks of
unequal length are balanced dynamically, and processes may fork and nest threads.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import ThreadpoolController

from .processes import end_with_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

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
    """Yield what `run_forked` returns, in order, each result when it is there.

    Tasks and results go through pipes. The pools of Python's library need semaphores besides, which
    some containers forbid (no access to /dev/shm). A copy ends with this process.
    """
    tasks = list(tasks)
    processes = min(processes, len(tasks))
    if processes <= 1 or sys.platform != "linux":
        for task in tasks:
            yield work(*task)
        return
    # Imported here because scripts that fork nothing start without it.
    import multiprocessing
    from multiprocessing.connection import wait

    fork = multiprocessing.get_context("fork")
    copies: list[BaseProcess] = []
    pipes: list[Connection] = []
    done: dict[int, Any] = {}
    numbers = iter(range(len(tasks)))
    try:
        for _ in range(processes):
            here, there = fork.Pipe()
            pipes.append(here)
            # A copy has `work` and `tasks` from the fork, so that they need not be pickled.
            copies.append(fork.Process(target=_work_on, args=(work, tasks, there, [*pipes])))
            copies[-1].start()
            there.close()
            here.send(next(numbers))
        for number in range(len(tasks)):
            while number not in done:
                for pipe in wait(pipes):
                    finished, result, error = _answer(pipe)
                    if error is not None:
                        raise error
                    done[finished] = result
                    if (following := next(numbers, None)) is not None:
                        pipe.send(following)
            yield done.pop(number)
    finally:
        for pipe in pipes:
            pipe.close()
        for copy in copies:
            copy.terminate()
            copy.join()


def _answer(pipe: Connection) -> tuple[int, Any, BaseException | None]:
    try:
        return pipe.recv()
    except (EOFError, ConnectionResetError):
        raise RuntimeError(
            "A copy of this process was killed (perhaps it ran out of memory)."
        ) from None


def _work_on(
    work: Callable[..., Any], tasks: list[tuple], pipe: Connection, others: list[Connection]
) -> None:
    """Send (number, result, error) of each task that is asked for, until nobody asks."""
    end_with_parent()  # also in the middle of a task
    for other in others:
        other.close()  # the parent's ends: this copy must see when the parent is gone
    try:
        while True:
            number = pipe.recv()
            try:
                answer = (number, work(*tasks[number]), None)
            except Exception as error:
                error.add_note("".join(traceback.format_exception(error)))
                answer = (number, None, error)
            try:
                pipe.send(answer)
            except (AttributeError, TypeError, pickle.PicklingError) as error:
                pipe.send((number, None, RuntimeError(f"{answer[1:]}: {error}")))
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass  # the parent has all results, or it is gone


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
