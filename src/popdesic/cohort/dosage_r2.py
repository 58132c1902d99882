"""Squared correlations of sites by numbers of alleles, of polyploids and of several ploidies."""

from __future__ import annotations

import numpy as np


def dosage_r2(a: np.ndarray, b: np.ndarray, threads: int = 1) -> np.ndarray:
    """Squared Pearson correlation of the ALT alleles of sites, over jointly called samples.

    Sums are whole numbers below 2**53, so products of float64 matrices are exact in any order. Of
    diploids the result is that of `site_pairs.r2_block`, to the last bit.

    Parameters
    ----------
    a, b : int8 arrays, (m, n_samples), (k, n_samples)
        ALT alleles, in one unit; -1 where missing.
    threads : int
        Changes no byte.

    Returns
    -------
    float64 array, (m, k)
        NaN where one of the two sites does not vary over the jointly called samples.
    """
    from ..engine.site_pairs_cpu import r2_masked

    (called_a, sum_a, square_a), (called_b, sum_b, square_b) = _parts(a), _parts(b)
    first, squares = sum_a @ called_b.T, square_a @ called_b.T
    other, others = called_a @ sum_b.T, called_a @ square_b.T
    # As of diploids: carriers c and homozygotes h have the sum c + h and the squares c + 3 h.
    counts = [
        called_a @ called_b.T,
        (3 * first - squares) / 2,
        (squares - first) / 2,
        (3 * other - others) / 2,
        (others - other) / 2,
        sum_a @ sum_b.T,
    ]
    return r2_masked(np.stack(counts).astype(np.int64), threads)


def _parts(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is called, alleles and their squares, 0 where missing: float64."""
    called = genotypes >= 0
    alleles = np.where(called, genotypes, 0).astype(np.float64)
    return called.astype(np.float64), alleles, alleles**2
