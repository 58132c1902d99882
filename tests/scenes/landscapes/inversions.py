"""Genomes with and without an inversion whose two arrangements have drifted apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class GenomeScene:
    """Genotypes int8 (n_sites, n) and their sites (`chrom`, `pos`)."""

    genotypes: np.ndarray
    sites: pd.DataFrame


def genome_with_inversion(
    seed: int,
    *,
    inverted: tuple[int, int] | None = None,
    f_st: float = 0.0,
    people: int = 100,
    sites: int = 4000,
    contigs: int = 4,
    apart: float = 0.2,
    share: float = 0.3,
) -> GenomeScene:
    """Unlinked sites of three populations; in the inversion, of two arrangements.

    Parameters
    ----------
    inverted : (first, end), optional
        Sites of the inversion. A chromosome has the rarer arrangement with chance `share`; the
        arrangements differ in their frequencies as populations of an F_ST of about `apart` do.
    f_st : float
        Of the three populations; 0: one.
    """
    rng = np.random.default_rng([seed, 24])
    root = rng.uniform(0.05, 0.95, sites)

    def drift(p: np.ndarray, count: int, amount: float) -> np.ndarray:
        spread = np.sqrt(amount * p * (1 - p))[:, None]
        return np.clip(p[:, None] + rng.normal(0, 1, (len(p), count)) * spread, 0, 1)

    own = drift(root, 3, f_st)[:, np.arange(people) % 3]
    genotypes = np.zeros(own.shape, np.int8)
    arrangements = drift(root[slice(*inverted)], 2, apart) if inverted else None
    for _ in range(2):
        p = own.copy()
        if arrangements is not None:
            p[slice(*inverted)] = arrangements[:, (rng.random(people) < share).astype(int)]
        genotypes += rng.random(p.shape) < p
    each = sites // contigs
    chrom = np.repeat(np.arange(1, contigs + 1).astype(str), each)
    pos = np.tile(1 + 10_000 * np.arange(each), contigs)
    return GenomeScene(genotypes, pd.DataFrame({"chrom": chrom, "pos": pos}))
