"""Operands of the backends for tests: planes from genotypes, weights as float64."""

from __future__ import annotations

import numpy as np
from reference import make_planes

from popdesic.engine.base import infinity
from popdesic.engine.terms import Planes


def planes_of(genotypes: np.ndarray, **options) -> Planes:
    """Planes of genotypes (n_samples, n_sites); `options` as in `reference.make_planes`."""
    return Planes(make_planes(genotypes, **options), genotypes.shape[1])


def wide(weights: np.ndarray) -> np.ndarray:
    """The weights in float64, with a true infinity."""
    return np.where(weights == infinity(weights.dtype), np.inf, weights.astype(np.float64))
