"""Halves of a graph's nodes: beyond an edge of its spanning tree, and moved to most neighbours."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def beyond_edge(starts, ends, first, last):
    """Nodes of a tree on the side of `first` of the edge from it to `last`: bool (n,).

    `starts`, `ends`: the neighbours of every node, (n + 1,) and (n_edges,).
    """
    n = len(starts) - 1
    side = np.zeros(n, np.bool_)
    waiting = np.empty(n, np.int64)
    waiting[0], size = first, 1
    side[first] = True
    while size:
        size -= 1
        node = waiting[size]
        for edge in range(starts[node], starts[node + 1]):
            end = ends[edge]
            if not side[end] and not (node == first and end == last):
                side[end] = True
                waiting[size] = end
                size += 1
    return side


@numba.njit(nogil=True, cache=True)
def join_neighbors(starts, ends, side, rounds):
    """Halves in which every node is with most of its neighbours; ties stay where they are.

    All nodes move at once, `rounds` times at most.
    """
    n = len(side)
    for _ in range(rounds):
        moved, changes = np.empty(n, np.bool_), 0
        for node in range(n):
            degree, share = starts[node + 1] - starts[node], 0
            for edge in range(starts[node], starts[node + 1]):
                share += side[ends[edge]]
            moved[node] = side[node] if 2 * share == degree else 2 * share > degree
            changes += moved[node] != side[node]
        if not changes:
            break
        side = moved
    return side
