"""How stable communities are when other samples are drawn."""

from __future__ import annotations

import numpy as np

from .near import nearest_to

#: Share of the samples in a subsample, and most samples in one.
SHARE, MAX_SAMPLES = 0.8, 3_000


def draw_subsamples(n: int, draws: int, seed: int) -> list[np.ndarray]:
    """Subsamples of n samples without replacement, ascending sample numbers."""
    rng = np.random.default_rng(seed)
    size = min(int(np.ceil(SHARE * n)), MAX_SAMPLES)
    return [np.sort(rng.permutation(n)[:size]) for _ in range(draws)]


def measure_stability(
    points: np.ndarray,
    groups: np.ndarray,
    drawn: list[np.ndarray],
    found: list[np.ndarray],
    threads: int = 1,
    founders: np.ndarray | None = None,
) -> np.ndarray:
    """Share of subsamples in which each sample falls into its group, float64 (n,).

    Samples that were not drawn go with their nearest drawn sample. A found group stands for the
    group that most of its samples belong to, if it also has most samples of that group (ties: the
    first), so that numbers need not be matched. It is no probability that a sample belongs to a
    population: a wrong partition can be stable. NaN without draws, and in a group of none of whose
    samples could be drawn.

    Parameters
    ----------
    points : float64 array, (n, k)
    groups : int array, (n,)
    drawn : list of int64 arrays, (m,)
        From `draw_subsamples`.
    found : list of int arrays, (m,)
        The groups that were found in each of them.
    founders : bool array, (n,), optional
        Samples that could be drawn, by default all; they alone tell which groups are the same.
    """
    n = len(points)
    if not drawn:
        return np.full(n, np.nan)
    _, own = np.unique(groups, return_inverse=True)
    if points.shape[1] == 0:
        return np.ones(n)
    founders = np.ones(n, bool) if founders is None else founders
    agrees = np.zeros(n)
    for which, labels in zip(drawn, found, strict=True):
        nearest, _ = nearest_to(points, points[which], threads)
        _, other = np.unique(labels, return_inverse=True)
        other = other[nearest]
        table = np.zeros((other.max() + 1, own.max() + 1), np.int64)
        np.add.at(table, (other[founders], own[founders]), 1)
        mutual = (table.argmax(axis=1)[other] == own) & (table.argmax(axis=0)[own] == other)
        agrees += mutual
    agrees[~np.isin(own, own[founders])] = np.nan
    return agrees / len(drawn)
