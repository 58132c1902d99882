"""One map of some samples: drawn, and compared with the distances that it shows."""

from __future__ import annotations

import numpy as np

from popdesic.maps.agreement import measure_agreement
from popdesic.maps.knn import Rows
from popdesic.maps.umap_layout import draw_maps, find_nearest


def umap_layout(
    rows: Rows,
    n: int,
    start: np.ndarray,
    *,
    neighbors: int,
    min_dist: float,
    seed: int,
    threads: int = 1,
) -> np.ndarray:
    """A UMAP, float64 (n, 2), of the distances of `rows`."""
    nearest = find_nearest(rows, n, neighbors, threads)
    return draw_maps(nearest, start, [(seed, neighbors)], min_dist=min_dist, threads=threads)[0]


def measure_map(points: np.ndarray, rows: Rows, anchors: np.ndarray) -> dict[str, float]:
    """`measure_agreement` of one map with one matrix."""
    return measure_agreement({0: points}, {0: rows}, {0: [0]}, anchors)[0, 0]
