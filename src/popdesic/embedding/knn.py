"""Nearest neighbours from distances that need not be whole in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..io.sites import chunks

#: Numbers of one block of rows.
BLOCK_NUMBERS = 8_000_000
#: Rows `which` of a matrix of distances: float array (len(which), n).
Rows = Callable[[np.ndarray], np.ndarray]


def nearest_neighbors(rows: Rows, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest others of every sample.

    Parameters
    ----------
    rows : callable
        Distances (len(which), n) of the samples `which` to all; infinite and undefined (NaN) ones
        are no neighbours while there are others, and are infinite if they have to be.
    n, k : int
        Samples, and neighbours of each (at most n - 1).

    Returns
    -------
    neighbors : int64 array, (n, k)
        Nearest first; of equally near samples the first in sample order, whatever the blocks.
    distances : float64 array, (n, k)
    """
    k = min(k, n - 1)
    neighbors, distances = np.empty((n, k), np.int64), np.empty((n, k))
    for first, last in chunks(n, max(1, BLOCK_NUMBERS // max(n, 1))):
        which = np.arange(first, last)
        block = np.array(rows(which), np.float64)
        block[np.isnan(block)] = np.inf
        block[np.arange(len(which)), which] = np.inf
        for row, values in zip(which, block, strict=True):
            near = _smallest(values, row, k)
            neighbors[row], distances[row] = near, values[near]
    return neighbors, distances


def _smallest(values: np.ndarray, own: int, k: int) -> np.ndarray:
    """Positions of the k smallest values but the own one, by value and then by position."""
    if k == 0:
        return np.empty(0, np.int64)
    limit = np.partition(values, k - 1)[k - 1]
    close = np.flatnonzero(values <= limit)
    close = close[close != own]
    return close[np.argsort(values[close], kind="stable")][:k]
