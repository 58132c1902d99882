"""Isolation by distance: do places far apart differ more?

The test permutes places, not people: people of one place move together, because they are not
independent (Mantel 1967; Smouse, Long and Sokal 1986).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ..engine.ranks import average_ranks


def rank_mantel(
    genetic: np.ndarray,
    ground: np.ndarray,
    *,
    permutations: int,
    rng: np.random.Generator,
    among: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> dict[str, float | int | bool] | None:
    """Rank correlation of two distances between places, with a one-sided p by permutation.

    Parameters
    ----------
    genetic, ground : float64 arrays, (n, n)
        Symmetric. Pairs whose genetic distance is NaN are left out.
    permutations : int
        If there are no more arrangements than this, all of them are counted.
    among : bool array (n, n), optional
        Pairs that count; it must not change if places of one group are exchanged.
    groups : int array (n,), optional
        Places are exchanged within groups only.

    Returns
    -------
    dict or None
        `correlation`; `p`: share of arrangements, the observed one included, with at least this
        correlation; `permutations`; `exact`: whether these are all arrangements; `pairs`. None
        with fewer than three pairs, or if a distance is the same in all pairs.
    """
    n = len(genetic)
    counted = np.triu(np.isfinite(genetic), 1)
    if among is not None:
        counted &= among
    rows, columns = np.nonzero(counted)
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
    ranks = ranks - ranks.mean()
    ranks /= np.sqrt((ranks**2).sum())

    def correlate(order: np.ndarray) -> float:
        moved = other[order[rows], order[columns]]
        moved = moved - moved.mean()
        size = np.sqrt((moved**2).sum())
        return float(ranks @ moved / size) if size > 0 else 0.0

    groups = np.zeros(n, np.int64) if groups is None else groups
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    arrangements = math.prod(math.factorial(len(some)) for some in members)
    exact = arrangements <= permutations
    observed = correlate(np.arange(n))
    orders = _all_orders(members, n) if exact else _orders(members, n, permutations, rng)
    as_high = sum(correlate(order) >= observed - 1e-12 for order in orders)
    tried = arrangements if exact else permutations
    return {
        "correlation": observed,
        "p": as_high / arrangements if exact else (as_high + 1) / (permutations + 1),
        "permutations": tried,
        "exact": exact,
        "pairs": len(rows),
    }


def _all_orders(members: list[np.ndarray], n: int) -> Iterator[np.ndarray]:
    for chosen in itertools.product(*(itertools.permutations(some) for some in members)):
        order = np.empty(n, np.int64)
        for some, moved in zip(members, chosen, strict=True):
            order[some] = moved
        yield order


def _orders(
    members: list[np.ndarray], n: int, count: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    for _ in range(count):
        order = np.empty(n, np.int64)
        for some in members:
            order[some] = rng.permutation(some)
        yield order


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
