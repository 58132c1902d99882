"""Operands of the backends for tests: planes from genotypes, weights as float64."""

from __future__ import annotations

import numpy as np
from oracles.reference import make_planes

from popdesic.engine.minplus import infinity
from popdesic.engine.terms import Planes


def planes_of(genotypes: np.ndarray, **options) -> Planes:
    """Planes of genotypes (n_samples, n_sites); `options` as in `reference.make_planes`."""
    return Planes(make_planes(genotypes, **options), genotypes.shape[1])


def wide(weights: np.ndarray) -> np.ndarray:
    """The weights in float64, with a true infinity."""
    return np.where(weights == infinity(weights.dtype), np.inf, weights.astype(np.float64))


def draw_lengths(rng, shape, dtype: str, holes: float = 0.1) -> np.ndarray:
    """Lengths for min-plus products; a share of `holes` is infinite."""
    weights = np.exp(rng.uniform(0, 15, shape)).astype(dtype)
    weights[rng.random(shape) < holes] = infinity(dtype)
    return weights


def draw_weights(rng, n: int, dtype: str, holes: float = 0.1) -> np.ndarray:
    """Symmetric lengths with a diagonal of zeros."""
    weights = draw_lengths(rng, (n, n), dtype, holes)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    return weights
