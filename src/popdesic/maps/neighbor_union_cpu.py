"""The union of all samples' neighbourhoods as a graph in rows, in time linear in its edges.

For a pair that is listed by either of its ends, with weights p and q (0 where it is not listed),
the weight is p + q - p q (McInnes, Healy and Melville 2018, section 3.1), and the edge is in the
rows of both.

Shapes: near int64 (n, k), weights float64 (n, k). Loops: threads take ranges of samples. Every row
is sorted by its ends, so that the result does not depend on the threads.
"""

from __future__ import annotations

import functools
from itertools import pairwise

import numba
import numpy as np

from ..core.threads import run_tasks

#: Samples of a task.
ROWS_OF_TASK = 1 << 15


@numba.njit(nogil=True, cache=True)
def unite_loop(near, weights, united, alone, first, last):
    """Weights of the union, and which pairs only this end lists: bool (n, k)."""
    k = near.shape[1]
    for i in range(first, last):
        for a in range(k):
            j = near[i, a]
            p, q = weights[i, a], 0.0
            alone[i, a] = True
            for b in range(k):
                if near[j, b] == i:
                    q = weights[j, b]
                    alone[i, a] = False
            united[i, a] = p + q - p * q


@numba.njit(nogil=True, cache=True)
def count_edges(near, united, alone, least, own, starts):
    """Edges of each sample's own list, and after them in starts[1:] those of its row."""
    n, k = near.shape
    for i in range(n):
        for a in range(k):
            if united[i, a] >= least:
                own[i] += 1
                starts[i + 1] += 1
                if alone[i, a]:
                    starts[near[i, a] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]


@numba.njit(nogil=True, cache=True)
def place_back(near, united, alone, least, own, starts, ends, found, first, last):
    """Edges in the rows of samples that do not list them, behind the samples' own.

    The rows of some samples, of which every thread looks through all edges.
    """
    n, k = near.shape
    place = starts[first:last] + own[first:last]
    for i in range(n):
        for a in range(k):
            j = near[i, a]
            if first <= j < last and alone[i, a] and united[i, a] >= least:
                ends[place[j - first]] = i
                found[place[j - first]] = united[i, a]
                place[j - first] += 1


@numba.njit(nogil=True, cache=True)
def sort_rows(near, united, least, starts, ends, found, first, last):
    """Each sample's own edges, then its whole row in the order of the ends."""
    k = near.shape[1]
    for i in range(first, last):
        place = starts[i]
        for a in range(k):
            if united[i, a] >= least:
                ends[place] = near[i, a]
                found[place] = united[i, a]
                place += 1
        # what was placed already is in order: each of it passes at most k others
        for place in range(starts[i] + 1, starts[i + 1]):
            end, weight = ends[place], found[place]
            while place > starts[i] and ends[place - 1] > end:
                ends[place], found[place] = ends[place - 1], found[place - 1]
                place -= 1
            ends[place], found[place] = end, weight


@numba.njit(nogil=True, cache=True)
def find_lengths(near, far, starts, ends, lengths, first, last):
    """Lengths of edges, the larger one where both ends list the other."""
    k = near.shape[1]
    for i in range(first, last):
        for edge in range(starts[i], starts[i + 1]):
            j = ends[edge]
            lengths[edge] = 0.0
            for a in range(k):
                if near[i, a] == j:
                    lengths[edge] = max(lengths[edge], far[i, a])
                if near[j, a] == i:
                    lengths[edge] = max(lengths[edge], far[j, a])


def edge_lengths(
    near: np.ndarray, far: np.ndarray, starts: np.ndarray, ends: np.ndarray, threads: int = 1
) -> np.ndarray:
    """Distances between the ends of the edges of `unite_neighbors`, float64 (n_edges,)."""
    near, far = map(np.ascontiguousarray, (near, far))
    lengths = np.empty(len(ends))
    find = functools.partial(find_lengths, near, far, starts, ends, lengths)
    run_tasks(find, _bounds(len(near)), threads)
    return lengths


def _bounds(n: int) -> list[tuple[int, int]]:
    return [(i, min(i + ROWS_OF_TASK, n)) for i in range(0, n, ROWS_OF_TASK)]


def unite_neighbors(
    near: np.ndarray, weights: np.ndarray, least: float, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the union without light edges.

    Parameters
    ----------
    near : int64 array, (n, k)
        Different others of each sample.
    weights : float64 array, (n, k)
        In [0, 1].
    least : float
        Edges of a smaller weight, relative to the largest, are left out.
    threads : int
        Changes no byte.

    Returns
    -------
    starts, ends, weights : int64 (n + 1,), int64 (n_edges,) and float64 (n_edges,)
    """
    n = len(near)
    bounds = _bounds(n)
    near, weights = map(np.ascontiguousarray, (near, weights))
    united, alone = np.empty(near.shape), np.empty(near.shape, bool)
    run_tasks(functools.partial(unite_loop, near, weights, united, alone), bounds, threads)
    least = least * united.max(initial=0.0)
    own, starts = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    count_edges(near, united, alone, least, own, starts)
    ends, found = np.empty(starts[-1], np.int64), np.empty(starts[-1])
    place = functools.partial(place_back, near, united, alone, least, own, starts, ends, found)
    edges = np.linspace(0, n, max(threads, 1) + 1).astype(np.int64)
    run_tasks(place, [(int(a), int(b)) for a, b in pairwise(edges)], threads)
    run_tasks(
        functools.partial(sort_rows, near, united, least, starts, ends, found), bounds, threads
    )
    return starts, ends, found
