"""Shortest paths from many nodes of a graph with few edges, for a block of sources at a time.

Dijkstra's algorithm (`sparse_paths`) follows one source and waits for memory at every edge. Here a
node keeps its lengths from LANES sources side by side, so that an edge is one pass of a vector
unit. Nodes are gone through by their distance from the first source of a block, forth and back,
and only those with a neighbour that became nearer are looked at. Lengths only fall, and they end at
the smallest sums of edges from the source on: those of Dijkstra's algorithm, to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from ..engine.minplus import infinity
from .edges import Edges
from .sparse_paths_cpu import lengths_from, types_of

#: Sources of a block: their lengths to 4 000 nodes fit into the cache of a core.
LANES = 32
#: Sources of whose lengths to the others follows which are near each other.
PIVOTS = 16
#: Nodes from which on they are renumbered, so that neighbours are near each other in memory.
RENUMBERED = 4_000
#: Rows that `each_block` hands on at a time.
ROWS = 4


def _fill(starts, ends, weights, blocked, sources, order, table, waiting, top):
    """Fill `table`, (n, LANES), with lengths from the sources of a block; `waiting`: bool (n,).

    From a node that is blocked, only its own paths go on. `top`: the length without a path.
    """
    n = len(order)
    lanes = table.shape[1]
    table[:] = top
    waiting[:] = False
    left = 0
    for lane in range(len(sources)):
        source = sources[lane]
        table[source, lane] = 0
        for edge in range(starts[source], starts[source + 1]):
            left += not waiting[ends[edge]]
            waiting[ends[edge]] = True
    best = np.empty(LANES, table.dtype)
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
                if blocked[ends[edge]]:
                    for lane in range(len(sources)):
                        if sources[lane] == ends[edge]:
                            best[lane] = min(best[lane], weight)
                    continue
                for lane in range(lanes):
                    length = other[lane] + weight
                    best[lane] = length if length < best[lane] else best[lane]
            nearer = 0
            for lane in range(lanes):
                nearer += best[lane] < own[lane]
                own[lane] = best[lane]
            if nearer and not blocked[node]:
                for edge in range(starts[node], starts[node + 1]):
                    left += not waiting[ends[edge]]
                    waiting[ends[edge]] = True
        forth = not forth


@functools.cache
def fill_kernel(dtype: np.dtype):
    """`_fill` compiled for lengths of this dtype."""
    indices, row, flags, table = types_of(dtype)
    graph = indices, indices, row, flags
    signature = types.void(*graph, indices, indices, table, flags, row.dtype)
    return numba.njit([signature], nogil=True, cache=True)(_fill)


def each_block(
    edges: Edges,
    sources: np.ndarray,
    use: Callable[[np.ndarray, np.ndarray], None],
    threads: int = 1,
) -> None:
    """Find the lengths of the shortest paths from some nodes to all, some sources at a time.

    Parameters
    ----------
    edges : Edges
        Each from both ends with the same weight.
    sources : int64 array, (m,)
    use : callable
        Called with some places in `sources` and their lengths, (ROWS, n) at most, of the dtype of
        the weights: `infinity` of it where there is no path. Each source comes once, in no order,
        from several threads.
    threads : int
        Changes no length. Each has a table of n times LANES lengths.
    """
    n, dtype = len(edges), edges.weights.dtype
    place = np.arange(n)
    if n >= RENUMBERED and len(edges.ends) <= np.iinfo(np.int32).max:
        place = _near_in_memory(edges)
        edges = _renumbered(edges, place)
    inside = place[sources]
    compiled = fill_kernel(dtype)

    def fill(rows: np.ndarray) -> None:
        order = np.argsort(lengths_from(edges, inside[rows[:1]])[0], kind="stable")
        table, top = np.empty((n, LANES), dtype), infinity(dtype)
        compiled(*edges.parts, inside[rows], order, table, np.empty(n, np.bool_), top)
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            found = table[:, first : first + len(some)]
            use(some, np.ascontiguousarray((found if n < RENUMBERED else found[place]).T))

    run_tasks(fill, [(rows,) for rows in _blocks(edges, inside, threads)], threads)


def paths_from(edges: Edges, sources: np.ndarray, threads: int = 1) -> np.ndarray:
    """Lengths of the shortest paths from some nodes to all, (m, n), as `each_block` finds them."""
    lengths = np.empty((len(sources), len(edges)), edges.weights.dtype)
    each_block(edges, sources, lengths.__setitem__, threads)
    return lengths


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
    return paths_from(Edges(starts, ends, weights, np.zeros(n, bool)), np.arange(n), threads)


def _blocks(edges: Edges, sources: np.ndarray, threads: int) -> list[np.ndarray]:
    """Places in `sources` of blocks of at most LANES that are near each other.

    By their lengths from some of them, of which the one that differs most counts.
    """
    if len(sources) <= LANES:
        return [np.arange(len(sources))] if len(sources) else []
    pivots = np.unique(np.linspace(0, len(sources) - 1, PIVOTS).astype(np.int64))
    far = run_tasks(
        lambda k: lengths_from(edges, sources[k : k + 1])[0, sources], zip(pivots), threads
    )
    left, found = np.arange(len(sources)), []
    places = np.stack(far, axis=1).astype(np.float64)
    places[places >= infinity(edges.weights.dtype)] = 0
    while len(left):
        apart = np.abs(places[left] - places[left[0]]).max(axis=1)
        order = np.argsort(apart, kind="stable")
        found.append(left[order[:LANES]])
        left = np.sort(left[order[LANES:]])
    return found


def _near_in_memory(edges: Edges) -> np.ndarray:
    """New numbers of the nodes, by Cuthill and McKee: int64 (n,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = len(edges)
    ones = np.ones(len(edges.ends), np.int8)
    graph = csr_array((ones, edges.ends.astype(np.int32), edges.starts.astype(np.int32)), (n, n))
    place = np.empty(n, np.int64)
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(n)
    return place


def _renumbered(edges: Edges, place: np.ndarray) -> Edges:
    """The same graph with other numbers of its nodes."""
    old = np.argsort(place)
    degrees = np.diff(edges.starts)[old]
    starts = np.concatenate([[0], np.cumsum(degrees)])
    at = np.repeat(edges.starts[:-1][old] - starts[:-1], degrees) + np.arange(starts[-1])
    return Edges(starts, place[edges.ends[at]], edges.weights[at], edges.blocked[old])
