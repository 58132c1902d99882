"""Neighbours on principal components equal those sorted out of all distances."""

from __future__ import annotations

import numpy as np
from oracles.neighbor_checks import check_points

from popdesic.engine.select import cpu_backend
from popdesic.maps.knn import nearest_neighbors
from popdesic.maps.neighbors import nearest_on_components

BACKEND = cpu_backend(2)


def clusters(n: int, m: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    centres = 4 * rng.normal(size=(26, m))
    return centres[rng.integers(0, 26, n)] + rng.normal(size=(n, m))


def test_neighbors_equal_those_of_all_distances():
    from scipy.spatial.distance import pdist, squareform

    scores = clusters(1500, 20)
    index, distances = nearest_on_components(scores, 15, BACKEND)
    check_points(BACKEND, scores, 15)
    dense = squareform(pdist(scores))
    expected, near = nearest_neighbors(dense.__getitem__, len(dense), 15)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(distances, near, rtol=1e-12)  # SciPy adds in another order
