"""The nearest few by shortest paths equal those sorted out of all lengths (Floyd and Warshall)."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.graphs import draw_graph, edges_of_weights

from popdesic.engine.minplus import infinity
from popdesic.geodesic.sparse_paths_cpu import lengths_from, nearest_by_paths


def all_lengths(weights: np.ndarray, blocked: np.ndarray) -> np.ndarray:
    lengths = weights.astype(np.float64)
    lengths[lengths >= infinity(weights.dtype)] = np.inf
    for middle in np.flatnonzero(~blocked):
        lengths = np.minimum(lengths, lengths[:, middle, None] + lengths[middle])
    return lengths


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("n", "degree"), [(1, 1), (2, 2), (17, 3), (65, 2), (200, 6)])
@pytest.mark.parametrize("blocked", [0.0, 0.3])
@pytest.mark.parametrize("k", [1, 5, 300])
def test_the_nearest_are_the_first_of_all(n, degree, dtype, blocked, k):
    weights, flags = draw_graph(n + k, n, degree, dtype, blocked)
    expected = all_lengths(weights, flags)
    edges, top = edges_of_weights(weights, flags), infinity(dtype)
    whole = lengths_from(edges, np.arange(n), 2)
    np.testing.assert_array_equal(np.where(whole >= top, np.inf, whole), expected)
    for threads in (1, 3):
        near, far = nearest_by_paths(edges, k, threads)
        assert near.shape == (n, min(k, n - 1))
        for i in range(n):
            others = np.delete(np.arange(n), i)
            order = others[np.lexsort((others, expected[i, others]))]
            order = order[np.isfinite(expected[i, order])][: near.shape[1]]
            np.testing.assert_array_equal(near[i, : len(order)], order)
            np.testing.assert_array_equal(far[i, : len(order)], expected[i, order])
            assert (near[i, len(order) :] == -1).all()
            assert (far[i, len(order) :] == top).all()
