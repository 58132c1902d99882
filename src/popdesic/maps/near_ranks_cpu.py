"""Nearest others in rows of distances, and ranks of a few of them, without sorting the rows.

Shapes: rows (m, n) of the samples `own` (m,). Others are ordered by distance and then by number; a
sample is not its own neighbour. Loops: rows, then columns.
"""

from __future__ import annotations

import numba
import numpy as np

from .nearest_rows_cpu import keep_smallest


@numba.njit(nogil=True, cache=True)
def ranks_beyond_loop(rows, own, listed, beyond):
    t = listed.shape[1]
    values, numbers = np.empty(t), np.empty(t, np.int64)
    before = np.empty(t + 1, np.int64)
    for i in range(rows.shape[0]):
        for a in range(t):  # in order of distance and number
            number = listed[i, a]
            value, place = rows[i, number], a
            while place > 0 and (
                value < values[place - 1]
                or (value == values[place - 1] and number < numbers[place - 1])
            ):
                values[place], numbers[place] = values[place - 1], numbers[place - 1]
                place -= 1
            values[place], numbers[place] = value, number
        before[:] = 0
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if j == own[i] or value > values[t - 1]:
                continue
            # the first of the listed that comes after this sample, or is it
            low, high = 0, t
            while low < high:
                middle = (low + high) // 2
                if values[middle] < value or (values[middle] == value and numbers[middle] < j):
                    low = middle + 1
                else:
                    high = middle
            before[low] += 1
        rank, total = 0, 0
        for a in range(t):
            rank += before[a]
            total += max(rank - t, 0)
        beyond[i] = total


def k_nearest(rows: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
    """The k nearest others of each sample, int64 (m, k), nearest first.

    Parameters
    ----------
    rows : float64 array, (m, n)
        n > k.
    own : int64 array, (m,)
        Column of each row's sample.
    k : int
    """
    near, far = np.empty((len(rows), k), np.int64), np.empty((len(rows), k))
    for i, sample in enumerate(own.tolist()):
        keep_smallest(rows[i : i + 1], sample, near[i : i + 1], far[i : i + 1])
    return near


def ranks_beyond(rows: np.ndarray, own: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Sum of what the ranks of t listed others exceed t by, int64 (m,); the nearest has rank 1.

    Parameters
    ----------
    rows, own
        As in `k_nearest`, without NaN.
    listed : int64 array, (m, t)
        Different others of each row's sample.
    """
    beyond = np.empty(len(rows), np.int64)
    ranks_beyond_loop(rows, own, np.ascontiguousarray(listed), beyond)
    return beyond
