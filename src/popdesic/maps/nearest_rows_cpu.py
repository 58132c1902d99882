"""Nearest others of samples from rows of distances: one pass over a row keeps the k smallest.

Shapes: rows (m, n), lists (m, k), nearest first, ties by sample number. NaN counts as infinite.
Loops: rows, then their columns; threads take blocks of rows.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def keep_smallest_loop(rows, first, near, far):
    """Lists of samples first, first + 1, ... from their distances to everyone."""
    k = near.shape[1]
    if k == 0:
        return
    for i in range(rows.shape[0]):
        found = 0
        for j in range(rows.shape[1]):
            if j == first + i:
                continue
            value = rows[i, j]
            if np.isnan(value):
                value = np.inf
            if found == k:
                if not value < far[i, k - 1]:  # of equal ones the first stay
                    continue
                place = k - 1
            else:
                place = found
                found += 1
            while place > 0 and value < far[i, place - 1]:
                far[i, place], near[i, place] = far[i, place - 1], near[i, place - 1]
                place -= 1
            far[i, place], near[i, place] = value, j


def keep_smallest(rows: np.ndarray, first: int, near: np.ndarray, far: np.ndarray) -> None:
    """Fill the lists of consecutive samples.

    Parameters
    ----------
    rows : float64 array, (m, n)
        Distances of the samples `first` ... `first` + m - 1 to all.
    first : int
    near, far : int64 and float64 arrays, (m, k)
        Filled; k is at most n - 1.
    """
    keep_smallest_loop(rows, first, near, far)
