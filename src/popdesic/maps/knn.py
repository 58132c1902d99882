"""Nearest neighbours from distances read in blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks

#: Values in a thread's block of rows. Rows are made of matrices as large, a dozen at a time: of
#: blocks that leave the cache, the pages of each are asked of the system anew, by one thread at a
#: time.
BLOCK_NUMBERS = 1 << 17
#: Rows `which` of a matrix of distances: float array (len(which), n).
Rows = Callable[[np.ndarray], np.ndarray]


def nearest_neighbors(
    rows: Rows, n: int, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest other samples of every sample.

    Parameters
    ----------
    rows : callable
        Distances (len(which), n) of the samples `which` to all. NaN counts as infinite; samples at
        an infinite distance are neighbours only if there are not enough others.
    n, k : int
        Number of samples, and of neighbours of each (at most n - 1).
    threads : int
        Blocks worked on at a time; changes no byte.

    Returns
    -------
    neighbors : int64 array, (n, k)
        Nearest first; ties in sample order, for any block size.
    distances : float64 array, (n, k)
    """
    from .nearest_rows_cpu import keep_smallest  # numba starts slowly

    k = min(k, n - 1)
    neighbors, distances = np.empty((n, k), np.int64), np.empty((n, k))

    def search(first: int, last: int) -> None:
        block = np.ascontiguousarray(rows(np.arange(first, last)), np.float64)
        keep_smallest(block, first, neighbors[first:last], distances[first:last])

    run_tasks(search, chunks(n, max(1, BLOCK_NUMBERS // max(n, 1))), threads)
    return neighbors, distances
