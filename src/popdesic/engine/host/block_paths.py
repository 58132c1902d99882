"""Shortest paths from many nodes of a sparse graph, for a block of sources at a time.

Dijkstra's algorithm (`sparse_paths`) follows one source and waits for memory at every edge. Here a
node keeps its lengths from LANES sources side by side, so that an edge is one pass of a vector
unit. Nodes are gone through by their distance from the first source of a block, forth and back,
and only those with a neighbour that became nearer are looked at. Lengths only fall, and they end at
the smallest sums of edges from the source on: those of Dijkstra's algorithm, to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from ..threads import run_tasks
from .sparse_paths import kernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Sources of a block: their lengths to 4 000 nodes fit into the cache of a core.
LANES = 32


@numba.njit(nogil=True, cache=True)
def _fill(starts, ends, weights, sources, order, table, waiting):
    """Fill `table`, (n, LANES), with lengths from the sources of a block; `waiting`: bool (n,)."""
    n = len(order)
    lanes = table.shape[1]
    table[:] = np.inf
    waiting[:] = False
    left = 0
    for lane in range(len(sources)):
        source = sources[lane]
        table[source, lane] = 0.0
        for edge in range(starts[source], starts[source + 1]):
            left += not waiting[ends[edge]]
            waiting[ends[edge]] = True
    best = np.empty(LANES)
    forth = True
    while left:
        for at in range(n):
            node = order[at if forth else n - 1 - at]
            if not waiting[node]:
                continue
            waiting[node] = False
            left -= 1
            own = table[node]
            for lane in range(lanes):
                best[lane] = own[lane]
            for edge in range(starts[node], starts[node + 1]):
                other, weight = table[ends[edge]], weights[edge]
                for lane in range(lanes):
                    length = other[lane] + weight
                    best[lane] = length if length < best[lane] else best[lane]
            nearer = 0
            for lane in range(lanes):
                nearer += best[lane] < own[lane]
                own[lane] = best[lane]
            if nearer:
                for edge in range(starts[node], starts[node + 1]):
                    left += not waiting[ends[edge]]
                    waiting[ends[edge]] = True
        forth = not forth


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
    n = graph.shape[0]
    starts, ends = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    edges = starts, ends, np.ascontiguousarray(graph.data)
    lengths = np.full((len(sources), n), np.inf)

    def fill(rows: np.ndarray, order: np.ndarray) -> None:
        table = np.empty((n, LANES))
        _fill(*edges, sources[rows], order, table, np.empty(n, np.bool_))
        lengths[rows] = table[:, : len(rows)].T

    run_tasks(fill, _blocks(*edges, sources), threads)
    return lengths


def _blocks(starts, ends, weights, sources: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places in `sources` of blocks of LANES near each other, and all nodes from near to far."""
    n = len(starts) - 1
    free, far = np.zeros(n, bool), np.empty(n)
    heap, place, keys = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    left, found = np.arange(len(sources)), []
    while len(left):
        far[:] = np.inf
        first = sources[left[0]]
        kernel(far.dtype)(starts, ends, weights, free, first, far, heap, place, keys)
        left = left[np.argsort(far[sources[left]], kind="stable")]
        found.append((left[:LANES], np.argsort(far)))
        left = np.sort(left[LANES:])
    return found
