"""Populations whose samples are inbred, of known frequencies and inbreeding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def inbred_populations(
    rng: np.random.Generator,
    f: Sequence[float],
    n: Sequence[int],
    sites: int,
    *,
    drift: float = 0.05,
    segment: int = 20,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Populations that drifted from common frequencies (Balding and Nichols 1995).

    A sample has two copies of one haplotype along a share f of its segments of sites.

    Parameters
    ----------
    f, n : sequences
        Inbreeding and samples of each population, `A`, `B`, ...
    segment : int
        Sites of a segment; errors of blocks of whole segments are honest.

    Returns
    -------
    genotypes : int8 array, (n_sites, n_samples)
    labels : str array, (n_samples,)
    frequencies : float64 array, (n_sites, n_populations)
    """
    common = rng.uniform(0.05, 0.95, sites)
    scale = (1 - drift) / drift
    p = rng.beta(scale * common, scale * (1 - common), (len(f), sites)).T
    parts = []
    for k, size in enumerate(n):
        first, second = rng.random((2, sites, size)) < p[:, k, None]
        same = rng.random((-(-sites // segment), size)) < f[k]
        second = np.where(np.repeat(same, segment, axis=0)[:sites], first, second)
        parts.append(first.astype(np.int8) + second)
    labels = np.repeat(list("ABCDEFGH")[: len(f)], n)
    return np.concatenate(parts, axis=1), labels, p
