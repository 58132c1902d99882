"""Approximate geodesics of very many individuals in the complete graph.

Above `geodesic.dense_limit` the exact closure's n**3 is replaced by Dijkstra's algorithm (SciPy)
on the k-nearest-neighbour graph; a pair keeps its direct weight if that is shorter. Lengths are
never too short. Their excess is measured on some rows.
"""

from __future__ import annotations

import numpy as np

from .insertion import shortest_rows

#: Neighbours of every individual, see `neighbor_paths`.
APPROXIMATE_NEIGHBORS = 50
#: Rows computed at a time, and rows compared with exact ones.
BLOCK_ROWS = 1024
CHECKED_ROWS = 16


def neighbor_paths(weights: np.ndarray, k: int) -> tuple[np.ndarray, dict]:
    """Lengths of the shortest paths among nearest neighbours, and their error.

    Parameters
    ----------
    weights : float64 array, (n, n)
        Symmetric direct weights, zero diagonal, infinite where there is no edge.
    k : int
        Neighbours of every individual; an edge from either end counts for both.

    Returns
    -------
    lengths : float64 array, (n, n)
        At most the direct weights.
    error : dict
        Relative excess over exact lengths, median and largest, on CHECKED_ROWS rows (drawn with
        a seed that depends only on n).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n = len(weights)
    k = min(k, n - 1)
    rows, columns, values = [], [], []
    for i in range(n):
        row = weights[i].copy()
        row[i] = np.inf
        nearest = np.argpartition(row, k - 1)[:k]
        nearest = nearest[np.isfinite(row[nearest])]
        rows.append(np.full(len(nearest), i))
        columns.append(nearest)
        # an explicit zero is also an edge; SciPy's sparse graphs keep it
        values.append(row[nearest])
    graph = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (n, n)
    )
    lengths = np.empty_like(weights)
    for first in range(0, n, BLOCK_ROWS):
        which = np.arange(first, min(n, first + BLOCK_ROWS))
        found = dijkstra(graph, directed=False, indices=which)
        np.minimum(found, weights[which], out=lengths[which[0] : which[-1] + 1])
    np.minimum(lengths, lengths.T, out=lengths)
    checked = np.sort(np.random.default_rng(n).permutation(n)[:CHECKED_ROWS])
    excess = []
    for row, exact in zip(checked, shortest_rows(weights, checked), strict=True):
        positive = np.isfinite(exact) & (exact > 0)
        excess.append(lengths[row][positive] / exact[positive] - 1)
    excess = np.concatenate(excess) if excess else np.zeros(1)
    return lengths, {
        "neighbors": k,
        "checked_rows": len(checked),
        "median_excess": float(np.median(excess)),
        "largest_excess": float(excess.max(initial=0.0)),
    }
