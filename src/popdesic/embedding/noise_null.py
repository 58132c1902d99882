"""Largest eigenvalue of the relationship matrix where samples have nothing in common.

The law of Tracy and Widom is that of independent sites and of samples that all vary alike. Pruning
leaves weak LD, which counts for much on a short genome, and samples of a diverse population vary
more than others; both make components where there is no structure. Hong, Sheng and Dobriban (2020,
arXiv 2012.02985) measure the null on the data by flipping signs at random. Here each sample's
standardised genotypes keep or change their sign stretch by stretch: what is in LD stays together,
every sample varies as much as before, and nothing that samples have in common adds up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ..io.sites import chunks
from .pca import Axes, choose_components, decompose
from .relationship import CHUNK_SITES, Reader, add_products, block_pairs, standardize
from .significance import (
    LEVEL,
    MEAN,
    SPREAD,
    Noise,
    Significance,
    centre_and_unit,
    largest_without_structure,
)

#: Base pairs that stay together.
STRETCH = 10_000_000
#: Draws of signs; fewer, but at least one, where all would take more than MOST_PRODUCTS
#: multiplications, about a minute of a CPU core.
DRAWS = 10
MOST_PRODUCTS = 1e12
#: Times that the null is drawn at most.
ROUNDS = 3
#: From so many draws on, their own standard deviation counts as well.
ENOUGH_DRAWS = 5
SEED = 1


def measure_noise(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    threads: int = 1,
    *,
    names: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Noise:
    """Noise of the samples and sites that define the axes, for `pca.axes_of`.

    Structure is in the genotypes whose signs are flipped, and makes the null larger. Components
    with larger eigenvalues than any that is left by flipping are therefore taken out, and the null
    is drawn again, in ROUNDS at most. What is measured in the end is the statistic, not the
    eigenvalue: flipping also parts what is in LD across two stretches, which widens all eigenvalues
    and so the scale of the statistic.

    Parameters
    ----------
    relationship : float64 array, (n, n)
        Of the samples and sites that define the axes.
    read, sizes, af, threads
        As in `relationship_among`, of these.
    sites : DataFrame
        `chrom`, `pos`.
    names : sequence of str, optional
        Names of the samples, which draw their signs: their order plays no role. Without names,
        their numbers do.
    axes : Axes, optional
        Of `pca.decompose`, where they are known already.
    """
    lots = _lots(range(sum(sizes)) if names is None else names)
    if axes is None:
        axes = decompose(relationship)
    known = axes.vectors[:, :0]
    for _ in range(ROUNDS):
        draws = _draw(relationship, read, sizes, af, sites, known, lots, threads)
        largest, unit = np.array([row[0] for row in draws]), np.array([row[2] for row in draws])
        deviation = max(float(unit.mean()) * SPREAD, _deviation(largest))
        limit = float(largest.mean())
        limit += deviation * (largest_without_structure(LEVEL) - MEAN) / SPREAD
        more = axes.vectors[:, axes.values > limit]
        if more.shape[1] <= known.shape[1]:
            break
        known = more
    statistic = np.array([(value - centre) / unit for value, centre, unit in draws])
    if not np.isfinite(statistic).all():
        return Noise(limit=limit)
    spread = max(1.0, _deviation(statistic) / SPREAD)
    return Noise(max(0.0, float(statistic.mean()) - spread * MEAN), spread, limit)


def significant_axes(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    *components: int | str,
    threads: int = 1,
    names: Sequence[str] | None = None,
) -> tuple[Axes, Significance, Noise]:
    """`pca.axes_of` with noise as it is measured here, and that noise: one decomposition for both.

    Parameters
    ----------
    relationship, read, sizes, af, sites, threads, names
        As in `measure_noise`.
    components : int or 'auto'
        As in `pca.axes_of`.
    """
    axes = decompose(relationship, *components)
    noise = measure_noise(relationship, read, sizes, af, sites, threads, names=names, axes=axes)
    return *choose_components(relationship, axes, *components, noise=noise), noise


def _lots(names: Sequence) -> np.ndarray:
    """A random number of each name, uint64 (n,)."""
    texts = (f"{SEED} {name}".encode() for name in names)
    return np.array(
        [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") for text in texts],
        np.uint64,
    )


def mix(numbers: np.ndarray) -> np.ndarray:
    """Random numbers of random numbers, uint64: the step of SplitMix64 (Steele et al. 2014)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _deviation(numbers: np.ndarray) -> float:
    return float(numbers.std(ddof=1)) if len(numbers) >= ENOUGH_DRAWS else 0.0


def _draw(
    relationship: np.ndarray,
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    sites: pd.DataFrame,
    known: np.ndarray,
    lots: np.ndarray,
    threads: int,
) -> list[tuple[float, float, float]]:
    """Largest eigenvalue, its centre and unit in each draw of signs.

    `known` is float64 (n, k), orthonormal: components to take out of the genotypes first.
    """
    from scipy.linalg import eigvalsh

    n = sum(sizes)
    draws = int(np.clip(MOST_PRODUCTS / (n * n * max(len(af), 1)), 1, DRAWS))
    _, contig = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    place = np.stack([contig, sites.pos.to_numpy(np.int64) // STRETCH])
    _, stretch = np.unique(place, axis=1, return_inverse=True)
    with threadpool_limits(1, "blas"):
        left = float(np.trace(relationship) - np.sum(known * (relationship @ known)))
    found = []
    for draw in range(draws):
        among = _flipped_products(
            read, sizes, af, stretch, known, mix(lots + np.uint64(draw)), threads
        )
        # A mean over called sites, as the relationship is.
        among *= left / max(float(np.trace(among)), np.finfo(float).tiny)
        with threadpool_limits(1, "blas"):
            largest = float(eigvalsh(among, subset_by_index=[n - 1, n - 1])[0])
        found.append((largest, *centre_and_unit(left, float((among**2).sum()), n)))
    return found


def _flipped_products(
    read: Reader,
    sizes: list[int],
    af: np.ndarray,
    stretch: np.ndarray,
    known: np.ndarray,
    lots: np.ndarray,
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
            values[rows] *= np.where(mix(lots + np.uint64(one)) & np.uint64(1), 1, -1)
        add_products(total, values, values, block_pairs(sizes), threads)
    return np.triu(total) + np.triu(total, 1).T
