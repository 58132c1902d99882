"""Shortest paths on a sparse graph on the CPU: Dijkstra's algorithm with a binary heap.

One source a task. In fixed point the lengths equal those of a dense closure to the last bit: sums
of integers do not depend on their order.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numba
import numpy as np
from numba import types

from ..base import infinity
from ..threads import run_tasks

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@numba.njit(nogil=True)
def _sift_down(heap, place, keys, size):
    """Restore the heap below its root."""
    at = 0
    node = heap[0]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[node]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = node
    place[node] = at


@numba.njit(nogil=True)
def _sift_up(heap, place, keys, at):
    """Restore the heap above an entry whose key became smaller."""
    node = heap[at]
    while at > 0:
        parent = (at - 1) // 2
        if keys[heap[parent]] <= keys[node]:
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = node
    place[node] = at


def _from_source(starts, ends, weights, source, lengths, heap, place):
    """Lengths from one source. `place`: position in the heap; -1 not reached, -2 settled."""
    place[:] = -1
    lengths[source] = 0
    heap[0] = source
    place[source] = 0
    size = 1
    while size:
        nearest = heap[0]
        place[nearest] = -2
        size -= 1
        if size:
            heap[0] = heap[size]
            _sift_down(heap, place, lengths, size)
        for edge in range(starts[nearest], starts[nearest + 1]):
            end = ends[edge]
            if place[end] == -2:
                continue
            length = lengths[nearest] + weights[edge]
            if place[end] == -1:
                lengths[end] = length
                heap[size] = end
                place[end] = size
                size += 1
                _sift_up(heap, place, lengths, place[end])
            elif length < lengths[end]:
                lengths[end] = length
                _sift_up(heap, place, lengths, place[end])


@functools.cache
def kernel(dtype: np.dtype):
    """`_from_source` compiled for lengths of this dtype."""
    scalar = numba.from_dtype(dtype)
    indices, row = types.Array(types.int64, 1, "C"), types.Array(scalar, 1, "C")
    signature = types.void(indices, indices, row, types.int64, row, indices, indices)
    return numba.njit([signature], nogil=True, cache=True)(_from_source)


def paths_from(graph: csr_array, sources: np.ndarray, threads: int = 1) -> np.ndarray:
    """Lengths of the shortest paths from some nodes of a graph.

    Parameters
    ----------
    graph : float64 sparse array, (n, n)
        Symmetric, with positive lengths of edges.
    sources : int64 array, (m,)

    Returns
    -------
    float64 array, (m, n)
        inf where there is no path. A length is the sum of its edges from the source on.
    """
    starts, ends = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    lengths = np.full((len(sources), graph.shape[0]), np.inf)
    _run(starts, ends, np.ascontiguousarray(graph.data), sources, lengths, threads)
    return lengths


def _run(starts, ends, weights, sources, lengths, threads: int) -> None:
    """Fill the row of each source in `lengths`, which is infinite before."""
    n_sources, n = lengths.shape
    compiled = kernel(lengths.dtype)

    def work(first: int, last: int) -> None:
        heap, place = np.empty(n, np.int64), np.empty(n, np.int64)
        for k in range(first, last):
            compiled(starts, ends, weights, sources[k], lengths[k], heap, place)

    step = max(1, n_sources // (8 * threads))
    bounds = range(0, n_sources, step)
    run_tasks(work, [(i, min(n_sources, i + step)) for i in bounds], threads)


def sparse_paths(direct: np.ndarray, threads: int) -> np.ndarray:
    """Lengths of the shortest paths between all pairs of a graph with few edges.

    Parameters
    ----------
    direct : int32 or int64 array, (n, n)
        Symmetric direct weights, zero diagonal, `infinity` of their dtype where there is no edge.
        No length may exceed that infinity.
    threads : int

    Returns
    -------
    array, (n, n), of the dtype of `direct`
        `infinity` where there is no path.
    """
    n, top = len(direct), infinity(direct.dtype)
    edges = direct < top
    np.fill_diagonal(edges, False)
    starts = np.concatenate([[0], np.cumsum(edges.sum(axis=1))]).astype(np.int64)
    ends = np.nonzero(edges)[1].astype(np.int64)
    weights = np.ascontiguousarray(direct[edges])
    lengths = np.full((n, n), top, direct.dtype)
    _run(starts, ends, weights, np.arange(n), lengths, threads)
    return lengths
