"""Shortest paths on a sparse graph on the CPU: Dijkstra's algorithm with a binary heap.

To all nodes, or to the nearest few alone (`nearest_by_paths`). In fixed point the lengths equal
those of a dense closure to the last bit: sums of integers do not depend on their order.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from ..engine.minplus import infinity
from .edges import Edges


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


@numba.njit(nogil=True)
def _pop(heap, place, keys, size):
    """Take the nearest node off the heap."""
    node = heap[0]
    place[node] = -2
    size -= 1
    if size:
        heap[0] = heap[size]
        _sift_down(heap, place, keys, size)
    return node, size


@numba.njit(nogil=True)
def _offer(end, length, heap, place, lengths, size):
    """A path to a node that is not settled; the size of the heap with it."""
    if place[end] == -1:
        lengths[end] = length
        heap[size] = end
        place[end] = size
        size += 1
        _sift_up(heap, place, lengths, place[end])
    elif length < lengths[end]:
        lengths[end] = length
        _sift_up(heap, place, lengths, place[end])
    return size


def _from_source(starts, ends, weights, blocked, source, lengths, heap, place, keys):
    """Lengths from one source. `place`: position in the heap; -1 not reached, -2 settled.

    No path runs through nodes that are `blocked`. The heap has four children a node and its keys
    beside it, so that a step down reads one line of the cache. Its order plays no role: a length is
    the least of sums that are the same whatever comes first.
    """
    place[:] = -1
    lengths[source] = 0
    heap[0], keys[0], place[source] = source, 0, 0
    size = 1
    while size:
        nearest, length = heap[0], keys[0]
        place[nearest] = -2
        size -= 1
        if size:
            node, key, at = heap[size], keys[size], 0
            while True:
                first = 4 * at + 1
                if first >= size:
                    break
                child = first
                for other in range(first + 1, min(first + 4, size)):
                    if keys[other] < keys[child]:
                        child = other
                if keys[child] >= key:
                    break
                heap[at], keys[at] = heap[child], keys[child]
                place[heap[at]] = at
                at = child
            heap[at], keys[at], place[node] = node, key, at
        if blocked[nearest] and nearest != source:
            continue
        for edge in range(starts[nearest], starts[nearest + 1]):
            end = ends[edge]
            at = place[end]
            if at == -2:
                continue
            key = length + weights[edge]
            if at == -1:
                at = size
                size += 1
            elif key >= lengths[end]:
                continue
            lengths[end] = key
            while at > 0:
                parent = (at - 1) // 4
                if keys[parent] <= key:
                    break
                heap[at], keys[at] = heap[parent], keys[parent]
                place[heap[at]] = at
                at = parent
            heap[at], keys[at], place[end] = end, key, at


def _nearest_from(
    starts, ends, weights, blocked, first, last, near, far, lengths, heap, place, reached
):
    """The nearest others of the sources first ... last - 1, by length and then by number.

    `place` is -1 everywhere before and after. Nodes leave the heap in order of their lengths: the
    search ends behind the last that is as near as the k-th. It is no farther than the end of the
    k-th shortest edge of the source, so that longer paths need not be followed.
    """
    k = near.shape[1]
    for source in range(first, last):
        bound = far[source, 0] if k else 0  # infinite
        if 0 < k <= starts[source + 1] - starts[source]:
            bound = np.partition(weights[starts[source] : starts[source + 1]], k - 1)[k - 1]
        lengths[source] = 0
        heap[0] = source
        place[source] = 0
        reached[0] = source
        size, n_reached, found = 1, 1, 0
        while size:
            node = heap[0]
            if found == k and (k == 0 or lengths[node] > far[source, k - 1]):
                break
            node, size = _pop(heap, place, lengths, size)
            if node != source:
                at = found
                if found == k:
                    at = k - 1 if node < near[source, k - 1] else -1
                else:
                    found += 1
                if at >= 0:
                    while (
                        at > 0
                        and far[source, at - 1] == lengths[node]
                        and near[source, at - 1] > node
                    ):
                        near[source, at] = near[source, at - 1]
                        far[source, at] = far[source, at - 1]
                        at -= 1
                    near[source, at] = node
                    far[source, at] = lengths[node]
                if blocked[node]:
                    continue
            for edge in range(starts[node], starts[node + 1]):
                length = lengths[node] + weights[edge]
                if length > bound:
                    continue
                end = ends[edge]
                if place[end] == -2:
                    continue
                if place[end] == -1:
                    reached[n_reached] = end
                    n_reached += 1
                size = _offer(end, length, heap, place, lengths, size)
        for i in range(n_reached):
            place[reached[i]] = -1


@functools.cache
def path_kernel(dtype: np.dtype):
    """`_from_source` compiled for lengths of this dtype."""
    indices, row, flags, _ = types_of(dtype)
    signature = types.void(indices, indices, row, flags, types.int64, row, indices, indices, row)
    return numba.njit([signature], nogil=True, cache=True)(_from_source)


@functools.cache
def nearest_kernel(dtype: np.dtype):
    """`_nearest_from` compiled for lengths of this dtype."""
    indices, row, flags, table = types_of(dtype)
    graph = indices, indices, row, flags
    lists = types.Array(types.int32, 2, "C"), table
    buffers = row, indices, indices, indices
    signature = types.void(*graph, types.int64, types.int64, *lists, *buffers)
    return numba.njit([signature], nogil=True, cache=True)(_nearest_from)


def types_of(dtype: np.dtype):
    """Types of indices, of a row of lengths, of flags, and of a table of lengths."""
    scalar = numba.from_dtype(dtype)
    rows = (types.Array(kind, 1, "C") for kind in (types.int64, scalar, types.boolean))
    return *rows, types.Array(scalar, 2, "C")


def lengths_from(edges: Edges, sources: np.ndarray, threads: int = 1) -> np.ndarray:
    """Lengths of the shortest paths from some nodes to all: (m, n), of the dtype of the weights.

    `infinity` of that dtype where there is no path.
    """
    n_sources, n, dtype = len(sources), len(edges), edges.weights.dtype
    lengths = np.full((n_sources, n), infinity(dtype), dtype)
    compiled = path_kernel(dtype)

    def work(first: int, last: int) -> None:
        heap, place = np.empty(n, np.int64), np.empty(n, np.int64)
        buffers = heap, place, np.empty(n, dtype)
        for k in range(first, last):
            compiled(*edges.parts, sources[k], lengths[k], *buffers)

    step = max(1, n_sources // (8 * threads))
    bounds = range(0, n_sources, step)
    run_tasks(work, [(i, min(n_sources, i + step)) for i in bounds], threads)
    return lengths


def nearest_by_paths(edges: Edges, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest others of every node by shortest paths, which are not followed any farther.

    Parameters
    ----------
    edges : Edges
    k : int
        At most n - 1 counts.
    threads : int
        Changes no byte.

    Returns
    -------
    near : int32 array, (n, k)
        Nearest first, ties by number; -1 where fewer can be reached.
    far : array, (n, k), of the dtype of the weights
        Lengths; `infinity` where fewer can be reached.
    """
    n, dtype = len(edges), edges.weights.dtype
    k = min(k, n - 1)
    near, far = np.full((n, k), -1, np.int32), np.full((n, k), infinity(dtype), dtype)
    compiled = nearest_kernel(dtype)

    def work(first: int, last: int) -> None:
        lengths, (heap, reached) = np.empty(n, dtype), np.empty((2, n), np.int64)
        place = np.full(n, -1, np.int64)
        compiled(*edges.parts, first, last, near, far, lengths, heap, place, reached)

    step = max(1, -(-n // (8 * threads)))
    run_tasks(work, [(i, min(n, i + step)) for i in range(0, n, step)], threads)
    return near, far
