"""Small graphs with blocked nodes, for tests of shortest paths."""

from __future__ import annotations

import numpy as np

from popdesic.engine.minplus import infinity
from popdesic.geodesic.edges import Edges


def draw_graph(
    seed: np.random.Generator | int, n: int, degree: float, dtype: str, blocked: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric weights with ties and zeros, `infinity` where there is no edge; blocked nodes."""
    rng = np.random.default_rng(seed)
    weights = np.full((n, n), infinity(dtype), dtype)
    i, j = np.triu_indices(n, 1)
    drawn = rng.random(len(i)) < degree / n
    weights[i[drawn], j[drawn]] = rng.integers(0, 6, drawn.sum())
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    return weights, rng.random(n) < blocked


def edges_of_weights(weights: np.ndarray, blocked: np.ndarray) -> Edges:
    """The edges of a matrix of weights."""
    joined = weights < infinity(weights.dtype)
    np.fill_diagonal(joined, False)
    starts = np.concatenate([[0], np.cumsum(joined.sum(axis=1))])
    ends = np.ascontiguousarray(np.nonzero(joined)[1])
    return Edges(starts, ends, np.ascontiguousarray(weights[joined]), blocked)
