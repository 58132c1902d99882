"""Minimum spanning forest of a dense matrix, by Prim's algorithm (`geodesic/graph.py`)."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def _before(one, two, other, another):
    """Whether the pair (one, two) comes before another one, both as sorted pairs."""
    low, least = min(one, two), min(other, another)
    return low < least or (low == least and max(one, two) < max(other, another))


@numba.njit(nogil=True, cache=True)
def spanning_edges(distances):
    """Edges of the forest, int64 (n_edges, 2), as they are found; ties by the smaller number.

    `distances`: float64 (n, n), infinite where there is no edge. A node that no edge reaches
    begins a tree.
    """
    n = len(distances)
    nearest, origin = np.full(n, np.inf), np.full(n, -1)
    left = np.ones(n, np.bool_)
    edges, found = np.empty((n, 2), np.int64), 0
    for _ in range(n):
        node = -1
        for other in range(n):
            if not left[other]:
                continue
            if (
                node < 0
                or nearest[other] < nearest[node]
                or (
                    nearest[other] == nearest[node]
                    and np.isfinite(nearest[node])
                    and _before(origin[other], other, origin[node], node)
                )
            ):
                node = other
        if np.isfinite(nearest[node]):
            edges[found] = origin[node], node
            found += 1
        left[node] = False
        row = distances[node]
        for other in range(n):
            if left[other] and np.isfinite(row[other]):
                closer = row[other] < nearest[other]
                if not closer and row[other] == nearest[other]:
                    closer = _before(node, other, origin[other], other)
                if closer:
                    nearest[other], origin[other] = row[other], node
    return edges[:found].copy()
