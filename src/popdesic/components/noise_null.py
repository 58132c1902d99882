"""Largest eigenvalue of the relationship matrix where samples have nothing in common.

The law of Tracy and Widom is that of independent sites and of samples that all vary alike. Pruning
leaves weak LD, which counts for much on a short genome, and samples of a diverse population vary
more than others; both make components where there is no structure. Hong, Sheng and Dobriban (2020,
arXiv 2012.02985) measure the null on the data by flipping signs at random. Here each sample's
standardised genotypes keep or change their sign stretch by stretch: what is in LD stays together,
every sample varies as much as before, and nothing that samples have in common adds up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..core.random_numbers import lots_of, mix
from ..core.threads import one_blas_thread
from ..io.layers import Reader
from ..io.sites import chunks
from .eigen import leading_eigenpairs
from .pca import Axes, choose_components, decompose
from .relationship import CHUNK_SITES, add_block_products, block_pairs, standardize
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
#: Draws of signs; fewer, but at least one, where their matrices would take more than MOST_BYTES.
DRAWS = 10
MOST_BYTES = 1 << 30
#: Stretches whose products are in memory at once, in bytes and number.
GROUP_BYTES, GROUP = 1 << 27, 8
#: Times that the null is drawn at most.
ROUNDS = 3
#: From so many draws on, their own standard deviation counts as well.
ENOUGH_DRAWS = 5


@one_blas_thread
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
    most: int = 2,
    weights: np.ndarray | None = None,
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
    read, sizes, af, threads, most, weights
        As in `relationship_among`, of these.
    sites : DataFrame
        `chrom`, `pos`.
    names : sequence of str, optional
        Names of the samples, which draw their signs: their order plays no role. Without names,
        their numbers do.
    axes : Axes, optional
        Of `pca.decompose`, where they are known already.
    """
    lots = lots_of(range(sum(sizes)) if names is None else names)
    source = _Source(read, af, most, weights)
    if axes is None:
        axes = decompose(relationship)
    known = axes.vectors[:, :0]
    for _ in range(ROUNDS):
        draws = _draw(relationship, source, sizes, sites, known, lots, threads)
        largest, unit = np.array([row[0] for row in draws]), np.array([row[2] for row in draws])
        deviation = max(float(unit.mean()) * SPREAD, deviation_of(largest))
        limit = float(largest.mean())
        limit += deviation * (largest_without_structure(LEVEL) - MEAN) / SPREAD
        more = axes.vectors[:, axes.values > limit]
        if more.shape[1] <= known.shape[1]:
            break
        known = more
    statistic = np.array([(value - centre) / unit for value, centre, unit in draws])
    if not np.isfinite(statistic).all():
        return Noise(limit=limit)
    spread = max(1.0, deviation_of(statistic) / SPREAD)
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
    most: int = 2,
    weights: np.ndarray | None = None,
) -> tuple[Axes, Significance, Noise]:
    """`pca.axes_of` with noise as it is measured here, and that noise: one decomposition for both.

    Parameters
    ----------
    relationship, read, sizes, af, sites, threads, names, most, weights
        As in `measure_noise`.
    components : int or 'auto'
        As in `pca.axes_of`.
    """
    axes = decompose(relationship, *components)
    given = relationship, read, sizes, af, sites, threads
    noise = measure_noise(*given, names=names, axes=axes, most=most, weights=weights)
    squares = float((relationship**2).sum())
    n = len(relationship)
    return *choose_components(axes, squares, n, *components, noise=noise), noise


def stretches(sites: pd.DataFrame) -> np.ndarray:
    """Stretch of each site of `chrom`, `pos`: int64 (n_sites,), numbers from 0."""
    _, contig = np.unique(sites.chrom.to_numpy(), return_inverse=True)
    along = sites.pos.to_numpy(np.int64) // STRETCH
    place = contig.ravel() * (along.max(initial=0) + 1) + along
    return np.unique(place, return_inverse=True)[1].ravel()


def deviation_of(numbers: np.ndarray) -> float:
    """Standard deviation, 0 of fewer than ENOUGH_DRAWS."""
    return float(numbers.std(ddof=1)) if len(numbers) >= ENOUGH_DRAWS else 0.0


@dataclass(frozen=True)
class _Source:
    """Genotypes, frequencies, the largest genotype, and weights of the samples."""

    read: Reader
    af: np.ndarray
    most: int
    weights: np.ndarray | None


def _draw(
    relationship: np.ndarray,
    source: _Source,
    sizes: list[int],
    sites: pd.DataFrame,
    known: np.ndarray,
    lots: np.ndarray,
    threads: int,
) -> list[tuple[float, float, float]]:
    """Largest eigenvalue, its centre and unit in each draw of signs.

    `known` is float64 (n, k), orthonormal: components to take out of the genotypes first.
    """
    n = sum(sizes)
    draws = int(np.clip(MOST_BYTES // (8 * n * n), 1, DRAWS))
    stretch = stretches(sites)
    left = float(np.trace(relationship) - np.sum(known * (relationship @ known)))
    drawn = np.stack([mix(lots + np.uint64(draw)) for draw in range(draws)])
    found = []
    for among in _flipped_products(source, sizes, stretch, known, drawn, threads):
        # A mean over called sites, as the relationship is.
        among *= left / max(float(np.trace(among)), np.finfo(float).tiny)
        largest = float(leading_eigenpairs(among, 1)[0][0])
        found.append((largest, *centre_and_unit(left, float((among**2).sum()), n)))
    return found


def _flipped_products(
    source: _Source,
    sizes: list[int],
    stretch: np.ndarray,
    known: np.ndarray,
    lots: np.ndarray,
    threads: int,
) -> Iterator[np.ndarray]:
    """Products of the samples after signs were drawn, float64 (n, n), of each row of `lots`.

    Signs of one stretch turn its product with itself into signed rows and columns, so that the
    products are the same for all draws.
    """
    from .signed_sums_cpu import add_signed

    n, pairs, af = sum(sizes), block_pairs(sizes), source.af
    total = np.zeros((len(lots), n, n))
    group = int(np.clip(GROUP_BYTES // (8 * n * n), 1, GROUP))
    held, names = np.zeros((group, n, n)), []

    def flush() -> None:
        drawn = mix(lots[:, None] + np.array(names, np.uint64)[:, None]) & np.uint64(1)
        signs = np.where(drawn, 1.0, -1.0)
        add_signed(total, held[: len(names)], signs, threads)
        held[: len(names)] = 0
        names.clear()

    for first, last in chunks(len(af), CHUNK_SITES):
        genotypes = source.read(first, last)
        for one in np.unique(stretch[first:last]):
            rows = stretch[first:last] == one
            values, _ = standardize(genotypes[rows], af[first:last][rows], source.most)
            if source.weights is not None:
                values *= source.weights
            values -= (values @ known) @ known.T
            if len(names) == group and one != names[-1]:
                flush()
            if not names or one != names[-1]:
                names.append(one)
            add_block_products(held[len(names) - 1], values, values, pairs, threads)
    if names:
        flush()
    for among in total:
        yield np.triu(among) + np.triu(among, 1).T
