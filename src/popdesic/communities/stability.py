"""How stable communities are when other samples are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

#: Share of the samples in a subsample, and most samples in one.
SHARE, MAX_SAMPLES = 0.8, 3_000


def measure_stability(
    points: np.ndarray,
    groups: np.ndarray,
    find: Callable[[np.ndarray], np.ndarray],
    draws: int,
    seed: int,
) -> np.ndarray:
    """Share of subsamples in which each sample falls into its group, float64 (n,).

    Communities are found anew in every subsample, without replacement. Samples that were not drawn
    go with their nearest drawn sample. A found group stands for the group that most of its samples
    belong to, if it also has most samples of that group (ties: the first), so that numbers need
    not be matched. It is no probability that a sample belongs to a population: a wrong partition
    can be stable. NaN without draws.

    Parameters
    ----------
    points : float64 array, (n, k)
    groups : int array, (n,)
    find : callable
        Groups of some points, int (m,).
    """
    n = len(points)
    if not draws:
        return np.full(n, np.nan)
    _, own = np.unique(groups, return_inverse=True)
    if points.shape[1] == 0:
        return np.ones(n)
    rng = np.random.default_rng(seed)
    agrees = np.zeros(n)
    size = min(int(np.ceil(SHARE * n)), MAX_SAMPLES)
    for _ in range(draws):
        drawn = np.sort(rng.permutation(n)[:size])
        _, nearest = cKDTree(points[drawn]).query(points)
        _, found = np.unique(find(points[drawn]), return_inverse=True)
        found = found[nearest]
        table = np.zeros((found.max() + 1, own.max() + 1), np.int64)
        np.add.at(table, (found, own), 1)
        mutual = (table.argmax(axis=1)[found] == own) & (table.argmax(axis=0)[own] == found)
        agrees += mutual
    return agrees / draws
