"""Nearest neighbours from distances read in blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.threads import run_tasks
from ..distance.matrix import ROWS_READ, rows_at_once
from ..io.sites import chunks

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
        found = rows(np.arange(first, last))
        for one, end in chunks(last - first, rows_at_once(n)):
            block, own = np.ascontiguousarray(found[one:end], np.float64), first + one
            lists = neighbors[own : first + end], distances[own : first + end]
            keep_smallest(block, own, *lists)

    run_tasks(search, chunks(n, max(ROWS_READ, rows_at_once(n))), threads)
    return neighbors, distances
