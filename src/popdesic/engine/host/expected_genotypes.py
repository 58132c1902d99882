"""Genotypes beside what is expected of a person's ancestry, for PC-Relate, compiled."""

from __future__ import annotations

import numba
import numpy as np


def residuals(
    genotypes: np.ndarray, frequency: np.ndarray, least: float, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Residual g - 2 mu and spread sqrt(mu (1 - mu)) of each genotype, rounded to float32.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        -1 if missing.
    frequency : float64 array, (n_sites, n)
        Individual ALT frequencies mu, row-major.
    least, most : float
        Both are 0 where mu is NaN or outside, and where the genotype is missing.

    Returns
    -------
    float32 arrays, (n_sites, n), row-major
    """
    shape = frequency.shape
    residual, spread = np.empty(shape, np.float32), np.empty(shape, np.float32)
    _fill(np.ascontiguousarray(genotypes, np.int8), frequency, least, most, residual, spread)
    return residual, spread


@numba.njit(nogil=True, cache=True)
def _fill(genotypes, frequency, least, most, residual, spread):
    for i in range(genotypes.shape[0]):
        for j in range(genotypes.shape[1]):
            mu = frequency[i, j]
            counts = mu >= least and mu <= most and genotypes[i, j] >= 0
            mu = mu if counts else 0.5
            apart = np.float64(genotypes[i, j]) - 2 * mu
            residual[i, j] = np.float32(apart) if counts else np.float32(0)
            spread[i, j] = np.float32(np.sqrt(mu * (1 - mu))) if counts else np.float32(0)
