"""Approximate geodesics of very many samples in the complete graph.

Above a limit of 100 000 samples the exact closure's n**3 is replaced by shortest paths on the
k-nearest-neighbour graph (`geodesic.block_paths_cpu`); a pair keeps its direct weight if that is
shorter. Lengths are never too short. Their excess is measured on some rows.
"""

from __future__ import annotations

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks
from .edges import Edges
from .insertion import shortest_rows

#: Neighbours of every sample, see `neighbor_paths`.
APPROXIMATE_NEIGHBORS = 50
#: Rows whose neighbours are searched at a time, and rows compared with exact ones.
ROWS_A_TASK, CHECKED_ROWS = 64, 16


def neighbor_paths(weights: np.ndarray, k: int, threads: int = 1) -> tuple[np.ndarray, dict]:
    """Lengths of the shortest paths among nearest neighbours, and their error.

    Parameters
    ----------
    weights : float64 array, (n, n)
        Symmetric direct weights, zero diagonal, infinite where there is no edge.
    k : int
        Neighbours of every sample; an edge from either end counts for both.
    threads : int
        Changes no length.

    Returns
    -------
    lengths : float64 array, (n, n)
        At most the direct weights.
    error : dict
        Relative excess over exact lengths, median and largest, on CHECKED_ROWS rows (drawn with
        a seed that depends only on n).
    """
    from .block_paths_cpu import each_block  # numba starts slowly

    n = len(weights)
    k = min(k, n - 1)
    lengths = np.empty_like(weights)

    def use(rows: np.ndarray, found: np.ndarray) -> None:
        lengths[rows] = np.minimum(found, weights[rows])

    each_block(_near_edges(weights, k, threads), np.arange(n), use, threads)
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


def _near_edges(weights: np.ndarray, k: int, threads: int) -> Edges:
    """Edges between each node and its k nearest."""
    n = len(weights)

    def search(start: int, stop: int) -> np.ndarray:
        rows = weights[start:stop].copy()
        rows[np.arange(stop - start), np.arange(start, stop)] = np.inf
        near = np.argpartition(rows, k - 1, axis=1)[:, :k]
        at, place = np.nonzero(np.isfinite(np.take_along_axis(rows, near, axis=1)))
        return np.stack([at + start, near[at, place]], axis=1)

    found = np.concatenate(run_tasks(search, chunks(n, ROWS_A_TASK), threads))
    pairs = np.unique(np.sort(found, axis=1), axis=0)
    return Edges.of_pairs(n, pairs, weights[pairs[:, 0], pairs[:, 1]])
