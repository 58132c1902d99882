"""Shortest path trees on the CPU: Dijkstra on a dense matrix, one source a task."""

from __future__ import annotations

import functools

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from ..engine.minplus import infinity


@numba.njit(nogil=True)
def _tree(direct, top, source, ends, parents, hops, settled):
    """Dijkstra from `source`: parents and hops of all, and the order in which they are settled.

    A path counts as shorter only if it is strictly so: direct edges win ties, then whichever
    was settled first, lower index first. No path runs through `ends`. Returns how many were
    settled; the others have parent -1.
    """
    n = direct.shape[0]
    lengths = direct[source].copy()
    done = np.zeros(n, types.boolean)
    for j in range(n):
        parents[j] = source
        hops[j] = 1
    hops[source] = 0
    count = 0
    for _ in range(n):
        nearest = -1
        for j in range(n):
            if not done[j] and (nearest < 0 or lengths[j] < lengths[nearest]):
                nearest = j
        if lengths[nearest] >= top:
            break
        done[nearest] = True
        settled[count] = nearest
        count += 1
        if ends[nearest] and nearest != source:
            continue
        for j in range(n):
            candidate = lengths[nearest] + direct[nearest, j]
            if candidate < lengths[j]:
                lengths[j] = candidate
                parents[j] = nearest
                hops[j] = hops[nearest] + 1
    for j in range(n):
        if not done[j]:
            parents[j] = -1
            hops[j] = 0
    return count


@numba.njit(nogil=True)
def _count_between(source, labels, parents, settled, count, between):
    """Add to `between` the paths from `source` to other populations that run through each."""
    through = np.zeros(parents.shape[0], np.int64)
    for at in range(count - 1, 0, -1):
        j = settled[at]
        if through[j]:
            between[j] += through[j]
        through[parents[j]] += through[j] + (labels[j] != labels[source])


def _from_source(direct, top, source, ends, labels, parents, hops, settled, passing):
    count = _tree(direct, top, source, ends, parents, hops, settled)
    _count_between(source, labels, parents, settled, count, passing)


@functools.cache
def tree_kernel(dtype: np.dtype):
    """The tree of one source and its counts, compiled for weights of this dtype."""
    scalar = numba.from_dtype(dtype)
    matrix = types.Array(scalar, 2, "C", readonly=True)
    whole, counts = types.Array(types.int32, 1, "C"), types.Array(types.int64, 1, "C")
    flags = types.Array(types.boolean, 1, "C")
    signature = types.void(matrix, scalar, types.int64, flags, counts, whole, whole, whole, counts)
    return numba.njit([signature], nogil=True, cache=True)(_from_source)


def shortest_trees(
    direct: np.ndarray, labels: np.ndarray, threads: int, ends: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shortest path trees from every sample.

    Parameters
    ----------
    direct : array, (n, n), C order
        Direct weights in the number type of the closure.
    labels : int64 array, (n,)
        Population of each sample.
    ends : bool array, (n,), optional
        Samples that no path runs through.

    Returns
    -------
    parents : int32 array, (n, n)
        The sample before j on the path from i; i itself where the path is direct, -1 where
        there is none.
    hops : int64 array
        Number of ordered pairs by edges of their path, from 0 (a sample and itself).
    between : int64 array, (n,)
        Paths between samples of different populations that run through each, unordered.
    """
    n = len(direct)
    parents = np.empty((n, n), np.int32)
    compiled = tree_kernel(direct.dtype)
    ends = np.zeros(n, bool) if ends is None else np.array(ends)

    def work(first: int, last: int):
        hops, settled = np.empty(n, np.int32), np.empty(n, np.int32)
        counted, between = np.zeros(1, np.int64), np.zeros(n, np.int64)
        for source in range(first, last):
            compiled(
                direct,
                infinity(direct.dtype),
                source,
                ends,
                labels,
                parents[source],
                hops,
                settled,
                between,
            )
            found = np.bincount(hops[parents[source] >= 0])
            counted = _add(counted, found)
        return counted, between

    step = max(1, n // (8 * threads))
    results = run_tasks(work, [(i, min(n, i + step)) for i in range(0, n, step)], threads)
    hops, between = np.zeros(1, np.int64), np.zeros(n, np.int64)
    for counted, passing in results:
        hops = _add(hops, counted)
        between += passing
    # every unordered pair was seen from both ends
    return parents, hops, between // 2


def _add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros(max(len(a), len(b)), np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total
