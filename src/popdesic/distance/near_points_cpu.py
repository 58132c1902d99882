"""The nearest points of points, by exact squared distances, and lists of neighbours.

Candidates are judged in float32 (SIMD along columns): a group of columns without any costs one
comparison each. For the few that pass, squares are summed in float64 in the order of the
coordinates. Trees of points are slower where coordinates are many.

Shapes: points (n, m). Loops: threads take runs of the points that are asked for.
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks
from .nearest import NOBODY, SLACK, Scaled

#: Points a side of what stays in cache: columns of a strip, rows of a task; columns of a group.
STRIP, POINTS_A_TASK, GROUP = 1024, 512, 64


@numba.njit(nogil=True, cache=True)
def insert_near(distance, index, called, value, other, sites):
    """Put a sample into a list, before all that are farther; the last one leaves it."""
    place = len(index) - 1
    while place > 0 and (
        distance[place - 1] > value or (distance[place - 1] == value and index[place - 1] > other)
    ):
        distance[place] = distance[place - 1]
        index[place] = index[place - 1]
        called[place] = called[place - 1]
        place -= 1
    distance[place], index[place], called[place] = value, other, sites


@numba.njit(nogil=True, cache=True)
def search(
    points, turned, others, others_turned, same, scale, rounding, distance, index, called, rows
):
    """Lists of some points by squared distance, from all others.

    points, others: float64 (n, m); turned, others_turned, scale, rounding: `Scaled`; same: a point
    is no neighbour of itself; rows: the first of these points, and the one behind the last.
    """
    first, last = rows
    n, m = others.shape
    k = index.shape[1]
    near = np.full(STRIP, np.inf, np.float32)
    for start in range(0, n, STRIP):
        width = min(STRIP, n - start)
        for i in range(first, last):
            near[:width], near[width:] = 0, np.inf
            for d in range(0, m - 3, 4):
                x, y, z, u = turned[d, i], turned[d + 1, i], turned[d + 2, i], turned[d + 3, i]
                xs, ys = others_turned[d, start:], others_turned[d + 1, start:]
                zs, us = others_turned[d + 2, start:], others_turned[d + 3, start:]
                for j in range(width):
                    a, b, c, e = xs[j] - x, ys[j] - y, zs[j] - z, us[j] - u
                    near[j] += a * a + b * b + (c * c + e * e)
            for d in range(m - m % 4, m):
                x, xs = turned[d, i], others_turned[d, start:]
                for j in range(width):
                    near[j] += (xs[j] - x) * (xs[j] - x)
            limit = np.float32(_limit(distance[i, k - 1], scale, rounding))
            for group in range(0, width, GROUP):
                some, candidates = near[group : group + GROUP], np.int32(0)
                for j in range(GROUP):  # a fixed number: SIMD
                    candidates += np.int32(some[j] <= limit)
                if not candidates:
                    continue
                for j in range(group, min(group + GROUP, width)):
                    other = start + j
                    if near[j] > limit or (same and other == i):
                        continue
                    value = 0.0
                    for d in range(m):
                        apart = points[i, d] - others[other, d]
                        value += apart * apart
                    last_one = distance[i, k - 1]
                    if value < last_one or (value == last_one and other < index[i, k - 1]):
                        insert_near(distance[i], index[i], called[i], value, other, 0)
                        limit = np.float32(_limit(distance[i, k - 1], scale, rounding))


@numba.njit(nogil=True, cache=True)
def _limit(squared, scale, rounding):
    """What the float32 value of a squared distance of at most `squared` cannot exceed.

    `rounding` counts twice, because the limit becomes a float32 too.
    """
    wide = np.sqrt(squared) * scale + SLACK
    return wide * wide * (1 + 2 * rounding)


def nearest_others(
    points: np.ndarray, others: np.ndarray | None, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest others of every point.

    Parameters
    ----------
    points : float64 array, (n, m)
        Finite, at most 1e100.
    others : float64 array, (n_others, m), optional
        By default the points themselves, each without itself.
    k : int
        At least 1, at most as many as there are others.
    threads : int
        Changes no byte.

    Returns
    -------
    index : int32 array, (n, k)
        Nearest first, ties by number.
    distance : float64 array, (n, k)
    """
    same = others is None
    others = points if same else others
    every = Scaled.of(points if same else np.concatenate([points, others]))
    n = len(points)
    own = np.ascontiguousarray(every.points[:, :n])
    theirs = own if same else np.ascontiguousarray(every.points[:, n:])
    index, distance = np.full((n, k), NOBODY, np.int32), np.full((n, k), np.inf)
    arguments = points, own, others, theirs, same, every.scale, every.rounding
    lists = distance, index, np.zeros((n, k), np.int32)

    def look(first: int, last: int) -> None:
        search(*arguments, *lists, (first, last))

    bounds = range(0, n, POINTS_A_TASK)
    run_tasks(look, [(first, min(first + POINTS_A_TASK, n)) for first in bounds], threads)
    return index, np.sqrt(distance)
