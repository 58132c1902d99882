"""Squared correlations of sites by numbers of alleles, of polyploids and of several ploidies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..io.sites import chunks

#: Sites of a block of correlations.
BLOCK_SITES = 256
#: Pairs of sites whose joint calls are counted at once.
PAIRS_AT_ONCE = 4_096


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


def dosage_blocks(
    alleles: np.ndarray, ends: np.ndarray, threads: int
) -> Iterator[tuple[int, np.ndarray]]:
    """First site of each block, and its r2 with the sites from the first one on: (n, width).

    `ends`, int64 (n_sites,): one past the last partner of each site.
    """
    for first, last in chunks(len(alleles), BLOCK_SITES):
        reach = max(last, int(ends[first:last].max()))
        yield first, dosage_r2(alleles[first:last], alleles[first:reach], threads)


def dosage_pairs(
    alleles: np.ndarray, ends: np.ndarray, threads: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, columns and r2 of all pairs of sites in their windows, in parts, by row and column."""
    for first, r2 in dosage_blocks(alleles, ends, threads):
        rows = np.arange(first, first + len(r2))[:, None]
        columns = np.arange(first, first + r2.shape[1])
        i, k = np.nonzero((columns > rows) & (columns < ends[rows]))
        yield i + first, k + first, r2[i, k]


def jointly_called(alleles: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Samples that are called at both sites of each pair: int64 (n_pairs,)."""
    called = alleles >= 0
    found = np.zeros(len(i), np.int64)
    for first, last in chunks(len(i), PAIRS_AT_ONCE):
        found[first:last] = (called[i[first:last]] & called[j[first:last]]).sum(axis=1)
    return found


def _parts(genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is called, alleles and their squares, 0 where missing: float64."""
    called = genotypes >= 0
    alleles = np.where(called, genotypes, 0).astype(np.float64)
    return called.astype(np.float64), alleles, alleles**2
