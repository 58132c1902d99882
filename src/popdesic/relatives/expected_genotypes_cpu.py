"""Genotypes beside what is expected of a person's ancestry, for PC-Relate, compiled.

The whole numbers of `kinship.expected`; every operation is rounded on its own, as on a GPU.
"""

from __future__ import annotations

import numba
import numpy as np

#: People whose products are added together: their sums stay in registers.
SIDE = 4
#: Sites of a square that is turned in the first level of cache.
TILE = 32


def padded_samples(n: int) -> int:
    """A number of people in whole runs of SIDE."""
    return -(-n // SIDE) * SIDE


def residuals(
    genotypes: np.ndarray,
    coefficients: np.ndarray,
    basis: np.ndarray,
    scales: tuple[float, float],
    limits: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Residual g - 2 mu and spread sqrt(mu (1 - mu)) of each genotype, times `scales`, rounded.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        -1 if missing.
    coefficients : float64 array, (n_sites, n_axes)
    basis : float64 array, (n, n_axes)
        mu is the sum over axes of coefficient times basis, added in their order.
    limits : (least, most)
        Both are 0 where mu is NaN or outside, and where the genotype is missing.

    Returns
    -------
    int16 arrays, (padded(n), n_sites)
        0 for people who are not there.
    """
    n_sites, n = genotypes.shape
    residual, spread = (np.zeros((padded_samples(n), n_sites), np.int16) for _ in range(2))
    genotypes, axes = np.ascontiguousarray(genotypes, np.int8), np.ascontiguousarray(basis.T)
    fill_loop(genotypes, coefficients, axes, *scales, *limits, residual, spread)
    return residual, spread


def add_pair_products(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
    """Add sums of products of two people over sites, in place.

    Parameters
    ----------
    left, right : int16 arrays, (m, depth) and (k, depth)
        Whole runs of SIDE people, row-major; sums of products must fit int32.
    out : int64 array, (m, k)
    """
    add_loop(left, right, out)


def subtract_products(block, of_rows, right, shares, of_columns) -> None:
    """Subtract ``sum over axes of of_rows right - shares of_columns`` from a block, in place.

    Parameters
    ----------
    block : float64 array, (m, k)
    of_rows, shares : float64 arrays, (n_axes, m)
    right, of_columns : float64 arrays, (n_axes, k)
    """
    arrays = (np.ascontiguousarray(one) for one in (of_rows, right, shares, of_columns))
    subtract_loop(block, *arrays)


@numba.njit(nogil=True, cache=True)
def fill_loop(
    genotypes, coefficients, basis, of_residual, of_spread, least, most, residual, spread
):
    n_sites, n = genotypes.shape
    frequency = np.empty(n)
    apart, wide = np.empty((TILE, n), np.int16), np.empty((TILE, n), np.int16)
    for first in range(0, n_sites, TILE):
        last = min(n_sites, first + TILE)
        for i in range(first, last):
            own, axis = coefficients[i, 0], basis[0]
            for j in range(n):
                frequency[j] = own * axis[j]
            for k in range(1, basis.shape[0]):
                own, axis = coefficients[i, k], basis[k]
                for j in range(n):
                    frequency[j] = frequency[j] + own * axis[j]
            to_apart, to_wide, given = apart[i - first], wide[i - first], genotypes[i]
            for j in range(n):
                mu = frequency[j]
                counts = mu >= least and mu <= most and given[j] >= 0
                mu = mu if counts else 0.5
                far = np.rint((np.float64(given[j]) - 2 * mu) * of_residual)
                to_apart[j] = np.int16(far) if counts else np.int16(0)
                broad = np.rint(np.sqrt(mu * (1 - mu)) * of_spread)
                to_wide[j] = np.int16(broad) if counts else np.int16(0)
        for j in range(n):
            for i in range(first, last):
                residual[j, i] = apart[i - first, j]
                spread[j, i] = wide[i - first, j]


@numba.njit(nogil=True, cache=True)
def add_loop(left, right, out):
    depth = left.shape[1]
    for i in range(0, left.shape[0], 4):
        a0, a1, a2, a3 = left[i], left[i + 1], left[i + 2], left[i + 3]
        for j in range(0, right.shape[0], 4):
            b0, b1, b2, b3 = right[j], right[j + 1], right[j + 2], right[j + 3]
            s00 = s01 = s02 = s03 = np.int32(0)
            s10 = s11 = s12 = s13 = np.int32(0)
            s20 = s21 = s22 = s23 = np.int32(0)
            s30 = s31 = s32 = s33 = np.int32(0)
            for k in range(depth):
                x0, x1 = np.int32(a0[k]), np.int32(a1[k])
                x2, x3 = np.int32(a2[k]), np.int32(a3[k])
                y0, y1 = np.int32(b0[k]), np.int32(b1[k])
                y2, y3 = np.int32(b2[k]), np.int32(b3[k])
                s00, s01 = np.int32(s00 + x0 * y0), np.int32(s01 + x0 * y1)
                s02, s03 = np.int32(s02 + x0 * y2), np.int32(s03 + x0 * y3)
                s10, s11 = np.int32(s10 + x1 * y0), np.int32(s11 + x1 * y1)
                s12, s13 = np.int32(s12 + x1 * y2), np.int32(s13 + x1 * y3)
                s20, s21 = np.int32(s20 + x2 * y0), np.int32(s21 + x2 * y1)
                s22, s23 = np.int32(s22 + x2 * y2), np.int32(s23 + x2 * y3)
                s30, s31 = np.int32(s30 + x3 * y0), np.int32(s31 + x3 * y1)
                s32, s33 = np.int32(s32 + x3 * y2), np.int32(s33 + x3 * y3)
            one, two, three, four = out[i], out[i + 1], out[i + 2], out[i + 3]
            one[j] += s00
            one[j + 1] += s01
            one[j + 2] += s02
            one[j + 3] += s03
            two[j] += s10
            two[j + 1] += s11
            two[j + 2] += s12
            two[j + 3] += s13
            three[j] += s20
            three[j + 1] += s21
            three[j + 2] += s22
            three[j + 3] += s23
            four[j] += s30
            four[j + 1] += s31
            four[j + 2] += s32
            four[j + 3] += s33


@numba.njit(nogil=True, cache=True)
def subtract_loop(block, of_rows, right, shares, of_columns):
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
