"""What linkage disequilibrium alone does to the largest eigenvalue of the relationship matrix.

Pruning leaves weak correlations between neighbours. On a whole genome they count for little, but on
one chromosome they make components where there is no structure. The samples of each stretch of the
genome are therefore shuffled, each stretch by itself: what is in LD stays together, and whatever
the samples had in common across the genome is gone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.linalg import eigvalsh
from threadpoolctl import threadpool_limits

from ..io.sites import chunks
from .pca import axes_of
from .relationship import CHUNK_SITES, Reader, add_products, block_pairs, standardize
from .significance import MEAN, SPREAD, scale_statistic

#: Base pairs that stay together.
STRETCH = 10_000_000
#: Shuffles, and below how many the null is not measured.
SHUFFLES, FEWEST_SHUFFLES = 10, 5
#: Multiplications that all shuffles of one null may take: about a minute of a CPU core. Beyond them
#: many samples have many sites, where LD after pruning matters least.
MOST_PRODUCTS = 1e12
SEED = 1


def assess_axes(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    threads: int = 1,
) -> tuple[float, float]:
    """Shift and spread of the Tracy-Widom statistic by LD, for `pca.axes_of`.

    Structure within a stretch looks like LD. The null is therefore measured twice, the second time
    without the components that stand out against the first. Not more often: on one chromosome the
    next rounds take LD for structure (chromosome 22 of 564 people ends at ten components and more,
    of which four tell populations apart).

    Parameters
    ----------
    relationship : float64 array, (n, n)
        Of the samples and sites that define the axes.
    read, sizes, af, threads
        As in `relationship_among`, of these.
    sites : DataFrame
        `chrom`, `pos`.
    """
    null = measure_null(read, sizes, af, sites, np.zeros((len(relationship), 0)), threads)
    axes, tests = axes_of(relationship, "auto", null=null)
    if not tests.count:
        return null
    return measure_null(read, sizes, af, sites, axes.vectors[:, : tests.count], threads)


def measure_null(
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    known: np.ndarray,
    threads: int = 1,
) -> tuple[float, float]:
    """Shift and spread of the Tracy-Widom statistic where there is LD but no structure.

    Parameters
    ----------
    known : float64 array, (n, k)
        Orthonormal components to take out of the genotypes first.
    read, sizes, af, sites, threads
        As in `assess_axes`.

    Returns
    -------
    shift : float
        At least 0: by how much the statistic exceeds that of Tracy and Widom.
    spread : float
        At least 1: its standard deviation over theirs. (0, 1) where there are too many samples and
        sites to measure it, or too few samples.
    """
    n = sum(sizes)
    shuffles = min(SHUFFLES, int(MOST_PRODUCTS / (n * n * max(len(af), 1))))
    if shuffles < FEWEST_SHUFFLES or n < 4:
        return 0.0, 1.0
    _, contig = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    place = np.stack([contig, sites.pos.to_numpy(np.int64) // STRETCH])
    _, stretch = np.unique(place, axis=1, return_inverse=True)
    found = []
    for draw in range(shuffles):
        among = _shuffled_products(read, sizes, af, stretch, known, draw, threads)
        with threadpool_limits(1, "blas"):
            largest = float(eigvalsh(among, subset_by_index=[n - 1, n - 1])[0])
        trace, squares = float(np.trace(among)), float((among**2).sum())
        found.append(scale_statistic(largest, trace, squares, n))
    spread = max(1.0, float(np.std(found, ddof=1)) / SPREAD)
    return max(0.0, float(np.mean(found)) - spread * MEAN), spread


def _shuffled_products(
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    stretch: np.ndarray,
    known: np.ndarray,
    draw: int,
    threads: int,
) -> np.ndarray:
    """Products of the samples after each stretch was shuffled, float64 (n, n)."""
    n = sum(sizes)
    total = np.zeros((n, n))
    for first, last in chunks(len(af), CHUNK_SITES):
        values, _ = standardize(read(first, last), af[first:last])
        with threadpool_limits(1, "blas"):
            values -= (values @ known) @ known.T
        for one in np.unique(stretch[first:last]):
            rows = stretch[first:last] == one
            order = np.random.default_rng([SEED, draw, one]).permutation(n)
            values[rows] = values[rows][:, order]
        add_products(total, values, values, block_pairs(sizes), threads)
    return np.triu(total) + np.triu(total, 1).T
