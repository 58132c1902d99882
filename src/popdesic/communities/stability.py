"""How stable communities are when other samples are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .near import nearest_to
from .splits import LEAST_SUPPORT, Split

#: Share of the samples in a subsample, and most samples in one.
SHARE, MAX_SAMPLES = 0.8, 3_000
#: Share of the smaller half that groups of a subsample may mix with the other half.
MIXED = 0.05


def draw_subsamples(n: int, draws: int, seed: int) -> list[np.ndarray]:
    """Subsamples of n samples without replacement, ascending sample numbers."""
    rng = np.random.default_rng(seed)
    size = min(int(np.ceil(SHARE * n)), MAX_SAMPLES)
    return [np.sort(rng.permutation(n)[:size]) for _ in range(draws)]


def with_support(root: Split, drawn: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> Split:
    """The tree with the support of every split: the share of subsamples that part its halves.

    A subsample does if all but MIXED of its samples of the smaller half lie in groups that hold
    hardly any of the other. The tree as it is, if it has no split with LEAST_SUPPORT.

    Parameters
    ----------
    drawn : sequence of int64 arrays
        From `draw_subsamples`.
    found : sequence of int arrays
        The finest groups of each of them.
    """

    def measure(node: Split) -> Split:
        if not node.halves:
            return node
        side = np.full(len(root.members), -1)
        for number, half in enumerate(node.halves):
            side[half.members] = number
        parted = 0
        for own, groups in zip(drawn, found, strict=True):
            one, other = (
                np.bincount(groups[side[own] == number], minlength=groups.max() + 1)
                for number in range(2)
            )
            parted += np.minimum(one, other).sum() <= MIXED * min(one.sum(), other.sum())
        return replace(
            node, halves=tuple(map(measure, node.halves)), support=float(parted) / len(drawn)
        )

    measured = measure(root) if drawn else root
    stable = any(node.halves and node.support >= LEAST_SUPPORT for node in measured.walk())
    return measured if stable else root


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
