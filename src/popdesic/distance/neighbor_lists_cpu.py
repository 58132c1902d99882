"""Lists of nearest samples that were found apart, joined into one: the nearest of all of them.

Shapes: lists (n, k), nearest first, ties by sample number; the others (n, m). Loops: threads take
ranges of samples; a list is merged entry by entry, in the order of `distance/nearest.py`.
"""

from __future__ import annotations

import functools

import numba
import numpy as np

from ..core.threads import run_tasks
from .nearest import Nearest

#: Samples of a task: half a millisecond.
ROWS_OF_TASK = 1 << 11


@numba.njit(nogil=True, cache=True)
def merge_loop(distance, index, called, far, near, sites, start, first, last):
    """Merge the lists of others, who are numbered from `start` on, into those of some samples."""
    k, m = index.shape[1], near.shape[1]
    kept, who, used = np.empty(k), np.empty(k, np.int32), np.empty(k, np.int32)
    for i in range(first, last):
        if far[i, 0] > distance[i, k - 1]:
            continue
        own, other = 0, 0
        for place in range(k):
            takes = False
            if other < m:
                value, number = far[i, other], near[i, other] + start
                takes = value < distance[i, own] or (
                    value == distance[i, own] and number < index[i, own]
                )
            if takes:
                kept[place], who[place], used[place] = value, number, sites[i, other]
                other += 1
            else:
                kept[place], who[place] = distance[i, own], index[i, own]
                used[place] = called[i, own]
                own += 1
        distance[i], index[i], called[i] = kept, who, used


def merge_lists(found: Nearest, others: Nearest, start: int, threads: int = 1) -> None:
    """Merge lists of the same samples into `found`, whose places may be empty (`NOBODY`).

    Parameters
    ----------
    found : Nearest
        (n, k); changed.
    others : Nearest
        (n, m); none of them is in `found`.
    start : int
        Number of the first of the others in `found`.
    threads : int
        Changes no byte.
    """
    n, k = found.index.shape
    if not k or not others.index.shape[1]:
        return
    arrays = found.distance, found.index, found.called
    arrays += others.distance, others.index, others.called
    bounds = [(i, min(i + ROWS_OF_TASK, n)) for i in range(0, n, ROWS_OF_TASK)]
    run_tasks(functools.partial(merge_loop, *arrays, start), bounds, threads)
