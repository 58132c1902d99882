"""Isolation by distance: do places far apart differ more?

The test permutes places, not people: people of one place move together, because they are not
independent (Mantel 1967; Smouse, Long and Sokal 1986).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..engine.ranks import average_ranks


def rank_mantel(
    strata: Sequence[tuple[np.ndarray, np.ndarray]],
    *,
    permutations: int,
    rng: np.random.Generator,
) -> dict[str, float | int | bool | None] | None:
    """Rank correlation of two distances between places, with a one-sided p by permutation.

    Several strata are one test: distances are ranked within each, places are exchanged within each
    by itself, and the correlation is that of all deviations from the means of their strata.

    Parameters
    ----------
    strata : list of pairs of float64 arrays (n, n)
        Genetic distances, and distances on the ground, of the places of each stratum; symmetric.
        Pairs whose genetic distance is NaN are left out, and strata of fewer than three pairs, or
        in which a distance is the same in all pairs.
    permutations : int
        If there are no more arrangements than this, all of them are counted. 0: no test.

    Returns
    -------
    dict or None
        `correlation`; `p`: share of arrangements, the observed one included, with at least this
        correlation (None without a test); `permutations`; `exact`: whether these are all
        arrangements; `pairs`; `strata`, how many count. None if none does.
    """
    counted = [found for found in map(_deviations, *zip(*strata, strict=True)) if found]
    if not counted:
        return None
    ranks = np.concatenate([ranks for ranks, *_ in counted])
    ranks /= np.sqrt((ranks**2).sum())

    def correlate(orders: Sequence[np.ndarray]) -> float:
        moved = []
        for order, (_, other, rows, columns) in zip(orders, counted, strict=True):
            values = other[order[rows], order[columns]]
            moved.append((values - values.mean()) / len(rows))
        joined = np.concatenate(moved)
        size = np.sqrt((joined**2).sum())
        return float(ranks @ joined / size) if size > 0 else 0.0

    sizes = [len(other) for _, other, *_ in counted]
    arrangements = math.prod(map(math.factorial, sizes))
    exact = arrangements <= permutations
    observed = correlate([np.arange(size) for size in sizes])
    orders = _all_orders(sizes) if exact else _orders(sizes, permutations, rng)
    as_high = sum(correlate(order) >= observed - 1e-12 for order in orders)
    p = as_high / arrangements if exact else (as_high + 1) / (permutations + 1)
    return {
        "correlation": observed,
        "p": p if permutations else None,
        "permutations": arrangements if exact else permutations,
        "exact": exact,
        "pairs": len(ranks),
        "strata": len(counted),
    }


def _deviations(
    genetic: np.ndarray, ground: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Ranks of genetic distances of a stratum about their mean; ranks on the ground; pairs."""
    n = len(genetic)
    rows, columns = np.nonzero(np.triu(np.isfinite(genetic), 1))
    if len(rows) < 3:
        return None
    ranks = average_ranks(genetic[rows, columns])
    upper = np.triu_indices(n, 1)
    other = np.zeros((n, n))
    # Equal distances on the ground tie despite rounding.
    other[upper] = average_ranks(np.round(ground[upper] / (ground.max() or 1.0), 9))
    other += other.T
    if np.ptp(ranks) == 0 or np.ptp(other[rows, columns]) == 0:
        return None
    return (ranks - ranks.mean()) / len(rows), other, rows, columns


def _all_orders(sizes: list[int]) -> Iterator[tuple[np.ndarray, ...]]:
    every = (map(np.array, itertools.permutations(range(size))) for size in sizes)
    return itertools.product(*every)


def _orders(sizes: list[int], count: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    for _ in range(count):
        yield [rng.permutation(size) for size in sizes]


def slope(genetic: np.ndarray, distance: np.ndarray) -> dict[str, float] | None:
    """Least-squares line of genetic distances, with a standard error by leaving out each place.

    Rousset (1997): ``F_ST / (1 - F_ST)`` grows in proportion to the logarithm of distance in a
    plane, and to distance itself along a line.

    Parameters
    ----------
    genetic, distance : float64 arrays, (n, n)
        Symmetric; pairs that are not finite in both are left out.

    Returns
    -------
    dict or None
        `slope`, `intercept`, `standard_error` (jackknife over places). None if the line is not
        determined, also without one of the places.
    """
    valid = np.isfinite(genetic) & np.isfinite(distance)
    np.fill_diagonal(valid, False)
    x = np.where(valid, distance, 0.0)
    middle = x.sum() / max(valid.sum(), 1)
    x = np.where(valid, x - middle, 0.0)
    y = np.where(valid, genetic, 0.0)
    # Sums over the pairs of each place; every pair is in those of two places.
    own = [part.sum(axis=1) for part in (valid.astype(float), x, y, x * x, x * y)]
    whole = np.array([part.sum() / 2 for part in own])
    without = whole[:, None] - np.array(own)
    slopes = [_line(*sums) for sums in (whole, without)]
    if not all(np.isfinite(found).all() for found in slopes):
        return None
    n = len(genetic)
    left_out = slopes[1]
    spread = (n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()
    return {
        "slope": float(slopes[0]),
        "intercept": float(whole[2] / whole[0] - slopes[0] * (whole[1] / whole[0] + middle)),
        "standard_error": float(np.sqrt(spread)),
    }


def _line(n, x, y, xx, xy):
    """Slope from the sums of a regression; NaN if all x are equal but for rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = xx - x * x / n
        return np.where((n > 1) & (spread > 1e-12 * np.abs(xx)), (xy - x * y / n) / spread, np.nan)
