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
def settle_sides(starts, ends, side, rounds):
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


@numba.njit(nogil=True, cache=True)
def sides_of_edges(tree_starts, tree_ends, starts, ends, firsts, lasts, rounds, fewest, most):
    """Halves beyond edges of a tree after `settle_sides`, those of at least `fewest` nodes.

    Parameters
    ----------
    tree_starts, tree_ends, starts, ends : int64 arrays
        Neighbours of every node in the tree and in the graph, as in `beyond_edge`.
    firsts, lasts : int64 arrays, (n_edges,)
        Nodes of the edges in the order in which they are tried.
    rounds, fewest, most : int
        Of `settle_sides`; fewest nodes of either half; most halves that are looked for.

    Returns
    -------
    bool array, (n_halves, n)
    """
    n = len(starts) - 1
    sides, found = np.empty((most, n), np.bool_), 0
    for edge in range(len(firsts)):
        if found == most:
            break
        side = beyond_edge(tree_starts, tree_ends, firsts[edge], lasts[edge])
        side = settle_sides(starts, ends, side, rounds)
        if fewest <= side.sum() <= n - fewest:
            sides[found] = side
            found += 1
    return sides[:found]
