"""Nearest samples on a CPU: tiles of exact counts, and lists that they improve.

Kernels
-------
`fill_distances`: counts int64 (n_outputs, m, n) to distances float64 (m, n); loops rows,
columns; the arithmetic of `distance.matrix.metric_distances`, operation by operation.
`improve_lists`: distances of a tile into the lists of the samples of one side; a list belongs to
one thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from ..core.threads import run_tasks
from ..engine.backend import Backend
from ..engine.plane_parts import PlaneParts
from ..engine.terms import Planes
from .near_points_cpu import insert_near, nearest_others
from .nearest import NOBODY, RATIO, ROOT, Measure, Nearest, checked_points, tiles_of_pairs

#: Samples a side of one tile of counts, and rows of one task.
SIDE, ROWS_A_TASK = 1024, 64


@numba.njit(nogil=True, cache=True)
def fill_distances(counts, form, times, share, least_called, out, first, last):
    """out[i, j] for rows first ... last - 1; infinite below `least_called`."""
    for i in range(first, last):
        for j in range(counts.shape[2]):
            called = counts[1, i, j]
            if called < least_called:
                out[i, j] = np.inf
            elif form == ROOT:
                out[i, j] = np.sqrt(counts[0, i, j] * times / (share * called))
            elif form == RATIO:
                out[i, j] = counts[0, i, j] * times / (share * called)
            else:
                sum_a, square_a = counts[2, i, j], counts[3, i, j]
                sum_b, square_b = counts[4, i, j], counts[5, i, j]
                scale = np.float64(sum_a) * np.float64(sum_b)
                cross = np.float64(square_a * sum_b - square_b * sum_a)
                uneven = np.float64(sum_b - sum_a) * cross
                if scale == 0:
                    out[i, j] = np.inf
                else:
                    out[i, j] = np.sqrt(max(scale * counts[0, i, j] + uneven, 0.0)) / scale


@numba.njit(nogil=True, cache=True)
def improve_lists(values, sites, turned, own, mine, others, distance, index, called, first, last):
    """Offer a tile's samples to the lists of one of its sides.

    values, sites: (rows, columns) distances and jointly called sites; `turned`: the lists are
    those of the columns. `own`: the tile is of a block with itself, whose diagonal does not count.
    mine, others: number of the first sample of either side; first, last: which of mine.
    """
    n_others = values.shape[0] if turned else values.shape[1]
    k = index.shape[1]
    for i in range(first, last):
        person = mine + i
        for j in range(n_others):
            value = values[j, i] if turned else values[i, j]
            if value > distance[person, k - 1] or (own and i == j):
                continue
            other = others + j
            if value == distance[person, k - 1] and other > index[person, k - 1]:
                continue
            used = sites[j, i] if turned else sites[i, j]
            insert_near(distance[person], index[person], called[person], value, other, used)


def nearest_samples(backend: Backend, planes: PlaneParts, measure: Measure, k: int) -> Nearest:
    """`nearest_samples` by tiles of a backend's products."""
    found = Nearest.empty(planes.n_samples, k)
    for rows, columns in tiles_of_pairs(planes.n_samples, SIDE):
        own = rows == columns
        b = None if own else planes.block(*columns)
        counts = backend.bitgemm(planes.block(*rows), b, measure.terms)
        sides = [(found, False, rows[0], columns[0])]
        if not own:
            sides.append((found, True, columns[0], rows[0]))
        found.few += _offer_tile(counts, measure, sides, own, backend.threads)
    assert not (found.index == NOBODY).any(), "a list that is not full"
    return found


def nearest_between(
    backend: Backend,
    a: Planes,
    b: Planes,
    measure: Measure,
    k: int,
    sides: tuple[int, int] | None = None,
) -> tuple[Nearest, Nearest]:
    """`nearest_between` by tiles of a backend's products.

    `sides`: samples of a and of b in one tile, by default SIDE of either.
    """
    of_a = Nearest.empty(a.n_samples, k, b.n_samples)
    of_b = Nearest.empty(b.n_samples, k, a.n_samples)
    step_a, step_b = sides or (SIDE, SIDE)
    for row in range(0, a.n_samples, step_a):
        rows = Planes(a.words[row : row + step_a], a.n_sites)
        for column in range(0, b.n_samples, step_b):
            columns = Planes(b.words[column : column + step_b], b.n_sites)
            counts = backend.bitgemm(rows, columns, measure.terms)
            offered = (of_a, False, row, column), (of_b, True, column, row)
            few = _offer_tile(counts, measure, offered, False, backend.threads)
            of_a.few, of_b.few = of_a.few + few, of_b.few + few
    return of_a, of_b


def _offer_tile(
    counts: np.ndarray,
    measure: Measure,
    sides: Sequence[tuple[Nearest, bool, int, int]],
    own: bool,
    threads: int,
) -> int:
    """Offer the pairs of a tile to lists; return how many have too few jointly called sites.

    counts: int64 (n_outputs, rows, columns); sides: lists, whether they are those of the columns,
    and the numbers of the first sample of theirs and of the others; own: of a block with itself.
    """
    few = counts[1] < measure.least_called
    n_few = int(np.triu(few, 1).sum() if own else few.sum())
    sides = [side for side in sides if side[0].index.shape[1]]
    if not sides:
        return n_few
    values = np.empty(counts.shape[1:])
    form = measure.form, measure.times, measure.share, measure.least_called
    _in_tasks(threads, len(values), fill_distances, (counts, *form, values))
    for found, turned, mine, others in sides:
        lists = found.distance, found.index, found.called
        arguments = (values, counts[1], turned, own, mine, others, *lists)
        _in_tasks(threads, values.shape[int(turned)], improve_lists, arguments)
    return n_few


def _in_tasks(threads: int, n: int, kernel, arguments: tuple, size: int = ROWS_A_TASK) -> None:
    """Call ``kernel(*arguments, first, last)`` for runs of n rows."""
    bounds = [(first, min(first + size, n)) for first in range(0, n, size)]
    run_tasks(lambda first, last: kernel(*arguments, first, last), bounds, threads)


def nearest_of_points(points: np.ndarray, k: int, threads: int) -> Nearest:
    """`nearest_points`; `distance` holds roots of squared distances."""
    points = checked_points(points)
    found = Nearest.empty(len(points), k)
    if found.index.shape[1]:
        found.index, found.distance = nearest_others(points, None, found.index.shape[1], threads)
    return found
