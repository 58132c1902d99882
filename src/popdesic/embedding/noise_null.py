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
from .significance import expected_largest

#: Base pairs that stay together.
STRETCH = 10_000_000
#: Draws of signs; fewer, but at least one, where all would take more than MOST_PRODUCTS
#: multiplications, about a minute of a CPU core.
DRAWS = 10
MOST_PRODUCTS = 1e12
#: From so many draws on, their own standard deviation counts as well.
ENOUGH_DRAWS = 5
SEED = 1


def noise_null(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    threads: int = 1,
) -> tuple[float, float]:
    """Mean and standard deviation of the largest eigenvalue without structure, for `axes_of`.

    Structure within a stretch looks like LD. The null is therefore measured twice, the second time
    without the components that stand out against the first. Not more often: on one chromosome the
    next rounds take LD for structure.

    Parameters
    ----------
    relationship : float64 array, (n, n)
        Of the samples and sites that define the axes.
    read, sizes, af, threads
        As in `relationship_among`, of these.
    sites : DataFrame
        `chrom`, `pos`.
    """
    null = _measure(relationship, read, sizes, af, sites, np.zeros((len(relationship), 0)), threads)
    axes, tests = axes_of(relationship, "auto", null=null)
    if not tests.count:
        return null
    known = axes.vectors[:, : tests.count]
    return _measure(relationship, read, sizes, af, sites, known, threads)


def _measure(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    known: np.ndarray,
    threads: int,
) -> tuple[float, float]:
    """Mean and standard deviation over draws of signs, after `known` components are taken out.

    `known` is float64 (n, k), orthonormal.
    """
    n = sum(sizes)
    draws = int(np.clip(MOST_PRODUCTS / (n * n * max(len(af), 1)), 1, DRAWS))
    _, contig = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    place = np.stack([contig, sites.pos.to_numpy(np.int64) // STRETCH])
    _, stretch = np.unique(place, axis=1, return_inverse=True)
    with threadpool_limits(1, "blas"):
        left = float(np.trace(relationship) - np.sum(known * (relationship @ known)))
    found = []
    for draw in range(draws):
        among = _flipped_products(read, sizes, af, stretch, known, draw, threads)
        trace = float(np.trace(among))
        if trace <= 0:
            return np.nan, np.nan
        among *= left / trace  # a mean over called sites, as the relationship is
        with threadpool_limits(1, "blas"):
            largest = float(eigvalsh(among, subset_by_index=[n - 1, n - 1])[0])
        found.append((largest, *expected_largest(left, float((among**2).sum()), n)))
    mean, _, deviation = np.nanmean(found, axis=0)
    if draws >= ENOUGH_DRAWS:
        deviation = max(deviation, float(np.std([row[0] for row in found], ddof=1)))
    return float(mean), float(deviation)


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
