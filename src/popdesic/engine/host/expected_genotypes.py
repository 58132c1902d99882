"""Genotypes beside what is expected of a person's ancestry, for PC-Relate, compiled.

The whole numbers of `engine.expected`; every operation is rounded on its own, as on a GPU.
"""

from __future__ import annotations

import numba
import numpy as np


def residuals(
    genotypes: np.ndarray,
    coefficients: np.ndarray,
    basis: np.ndarray,
    scales: tuple[float, float, float],
    limits: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Residual g - 2 mu and spread sqrt(mu (1 - mu)) of each genotype, scaled and rounded.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        -1 if missing.
    coefficients : float64 array, (n_sites, n_axes)
    basis : float64 array, (n, n_axes)
        mu is the sum over axes of coefficient times basis, added in their order.
    scales : of residuals, of spreads, and of mu where its digits round a spread
    limits : (least, most)
        Both are 0 where mu is NaN or outside, and where the genotype is missing.

    Returns
    -------
    residual : float64 array, (n_sites, n)
    spread : float32 array, (n_sites, n)
        Whole numbers.
    """
    shape = genotypes.shape
    residual, spread = np.empty(shape, np.float64), np.empty(shape, np.float32)
    genotypes, axes = np.ascontiguousarray(genotypes, np.int8), np.ascontiguousarray(basis.T)
    _fill(genotypes, coefficients, axes, *scales, *limits, residual, spread)
    return residual, spread


def subtract_products(block, of_rows, right, shares, of_columns) -> None:
    """Subtract ``sum over axes of of_rows right - shares of_columns`` from a block, in place.

    Parameters
    ----------
    block : float64 array, (m, k)
    of_rows, shares : float64 arrays, (n_axes, m)
    right, of_columns : float64 arrays, (n_axes, k)
    """
    arrays = (np.ascontiguousarray(one) for one in (of_rows, right, shares, of_columns))
    _subtract(block, *arrays)


@numba.njit(nogil=True, cache=True)
def _fill(
    genotypes, coefficients, basis, of_residual, of_spread, shake, least, most, residual, spread
):
    n = genotypes.shape[1]
    frequency = np.empty(n)
    for i in range(genotypes.shape[0]):
        first, axis = coefficients[i, 0], basis[0]
        for j in range(n):
            frequency[j] = first * axis[j]
        for k in range(1, basis.shape[0]):
            own, axis = coefficients[i, k], basis[k]
            for j in range(n):
                frequency[j] = frequency[j] + own * axis[j]
        for j in range(n):
            mu = frequency[j]
            counts = mu >= least and mu <= most and genotypes[i, j] >= 0
            mu = mu if counts else 0.5
            apart = np.rint((np.float64(genotypes[i, j]) - 2 * mu) * of_residual)
            residual[i, j] = apart if counts else 0.0
            digits = mu * shake
            wide = np.floor(np.sqrt(mu * (1 - mu)) * of_spread + (digits - np.floor(digits)))
            spread[i, j] = np.float32(wide) if counts else np.float32(0)


@numba.njit(nogil=True, cache=True)
def _subtract(block, of_rows, right, shares, of_columns):
    n_axes, width = right.shape
    less = np.empty(width)
    for i in range(block.shape[0]):
        less[:] = 0.0
        for k in range(n_axes):
            own, share = of_rows[k, i], shares[k, i]
            for j in range(width):
                less[j] = less[j] + own * right[k, j]
                less[j] = less[j] - share * of_columns[k, j]
        for j in range(width):
            block[i, j] = block[i, j] - less[j]
