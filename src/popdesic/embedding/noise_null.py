"""Largest eigenvalue of the relationship matrix where samples have nothing in common.

The law of Tracy and Widom is that of independent sites and of samples that all vary alike. Pruning
leaves weak LD, which counts for much on a short genome, and samples of a diverse population vary
more than others; both make components where there is no structure. Hong, Sheng and Dobriban (2020,
arXiv 2012.02985) measure the null on the data by flipping signs at random. Here each sample's
standardised genotypes keep or change their sign stretch by stretch: what is in LD stays together,
every sample varies as much as before, and nothing that samples have in common adds up.
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
#: Draws of signs, and below how many the null is not measured.
DRAWS, FEWEST_DRAWS = 10, 5
#: Multiplications that all draws of one null may take: about a minute of a CPU core. Beyond them
#: many samples have many sites, where LD after pruning matters least.
MOST_PRODUCTS = 1e12
SEED = 1


def noise_null(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    threads: int = 1,
) -> tuple[float, float]:
    """Shift and spread of the Tracy-Widom statistic without structure, for `pca.axes_of`.

    Structure within a stretch looks like LD. The null is therefore measured twice, the second time
    without the components that stand out against the first. Not more often: on one chromosome the
    next rounds take LD for structure (chromosome 22 of 564 people ends at ten components, of which
    four tell populations apart).

    Parameters
    ----------
    relationship : float64 array, (n, n)
        Of the samples and sites that define the axes.
    read, sizes, af, threads
        As in `relationship_among`, of these.
    sites : DataFrame
        `chrom`, `pos`.
    """
    null = _measure(read, sizes, af, sites, np.zeros((len(relationship), 0)), threads)
    axes, tests = axes_of(relationship, "auto", null=null)
    if not tests.count:
        return null
    return _measure(read, sizes, af, sites, axes.vectors[:, : tests.count], threads)


def _measure(
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    known: np.ndarray,
    threads: int = 1,
) -> tuple[float, float]:
    """Shift and spread of the Tracy-Widom statistic over draws of signs.

    Parameters
    ----------
    known : float64 array, (n, k)
        Orthonormal components to take out of the genotypes first.
    read, sizes, af, sites, threads
        As in `noise_null`.

    Returns
    -------
    shift : float
        At least 0: by how much the statistic exceeds that of Tracy and Widom.
    spread : float
        At least 1: its standard deviation over theirs. (0, 1) where there are too many samples and
        sites to measure it, or too few samples.
    """
    n = sum(sizes)
    draws = min(DRAWS, int(MOST_PRODUCTS / (n * n * max(len(af), 1))))
    if draws < FEWEST_DRAWS or n < 4:
        return 0.0, 1.0
    _, contig = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    place = np.stack([contig, sites.pos.to_numpy(np.int64) // STRETCH])
    _, stretch = np.unique(place, axis=1, return_inverse=True)
    found = []
    for draw in range(draws):
        among = _flipped_products(read, sizes, af, stretch, known, draw, threads)
        with threadpool_limits(1, "blas"):
            largest = float(eigvalsh(among, subset_by_index=[n - 1, n - 1])[0])
        trace, squares = float(np.trace(among)), float((among**2).sum())
        found.append(scale_statistic(largest, trace, squares, n))
    spread = max(1.0, float(np.std(found, ddof=1)) / SPREAD)
    return max(0.0, float(np.mean(found)) - spread * MEAN), spread


def _flipped_products(
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    stretch: np.ndarray,
    known: np.ndarray,
    draw: int,
    threads: int,
) -> np.ndarray:
    """Products of the samples after signs were drawn, float64 (n, n)."""
    n = sum(sizes)
    total = np.zeros((n, n))
    for first, last in chunks(len(af), CHUNK_SITES):
        values, _ = standardize(read(first, last), af[first:last])
        with threadpool_limits(1, "blas"):
            values -= (values @ known) @ known.T
        for one in np.unique(stretch[first:last]):
            rows = stretch[first:last] == one
            signs = np.random.default_rng([SEED, draw, one]).integers(0, 2, n) * 2 - 1
            values[rows] *= signs
        add_products(total, values, values, block_pairs(sizes), threads)
    return np.triu(total) + np.triu(total, 1).T
