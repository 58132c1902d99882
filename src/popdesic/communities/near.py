"""Nearest points among the principal components of many samples."""

from __future__ import annotations

import numpy as np

#: Most coordinates for which trees of points are searched. They visit most points where there are
#: more, and all pairs are compared faster: of 200 000 points, 15 neighbours took 1.4 s by trees in
#: 4 coordinates, 15 s in 8 and 246 s in 15; 11, 14 and 30 s by pairs.
TREE_COORDINATES = 8


def near_others(points: np.ndarray, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest others of each point: int64 and float64 (n, k), nearest first."""
    if points.shape[1] > TREE_COORDINATES:
        return _by_pairs(points, None, k, threads)
    from scipy.spatial import cKDTree

    far, near = cKDTree(points).query(points, k + 1, workers=threads)
    far, near = far.reshape(len(points), -1), near.reshape(len(points), -1)
    # A point comes first, but for others at the same place.
    own = near == np.arange(len(points))[:, None]
    own[:, k] |= ~own.any(axis=1)
    return near[~own].reshape(-1, k), far[~own].reshape(-1, k)


def nearest_to(
    points: np.ndarray, others: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of some others of each point, int64 (n,), and its distance, float64 (n,)."""
    if points.shape[1] > TREE_COORDINATES:
        near, far = _by_pairs(points, others, 1, threads)
        return near[:, 0], far[:, 0]
    from scipy.spatial import cKDTree

    far, near = cKDTree(others).query(points, workers=threads)
    return near, far


def _by_pairs(points, others, k: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    from ..distance.near_points_cpu import nearest_others  # numba starts slowly

    near, far = nearest_others(points, others, k, threads)
    return near.astype(np.int64), far
