"""The k nearest samples of every sample: what is asked of a backend, and what comes back.

No array of all pairs exists. Pairs are computed tile by tile, each unordered pair once, and every
sample keeps the k nearest that it has met. "Nearest" is a total order, by distance and then by
sample number, so that neither tiles nor threads nor devices change a byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.terms import Terms

#: Most neighbours of a sample.
MOST_NEIGHBORS = 256
#: How a distance follows from counts (`Measure`): square root of a ratio, a ratio, or the distance
#: of genotypes divided by their sums.
ROOT, RATIO, SHARES = 0, 1, 2
#: Number of an entry of a list that holds nobody yet: it comes after everybody at any distance.
NOBODY = int(np.iinfo(np.int32).max)
#: Mismatch shares are compared as whole numbers of 2**-20: no rounding decides an order.
SHARE_BITS = 20
#: Squared distances are judged in float32 first. Coordinates have norms of at most 1 (`Scaled`), so
#: two of them, rounded, are SLACK off at most; sums of m squares ROUNDING * (m + 4) of their value.
SLACK, ROUNDING = 2.0**-21, 2.0**-23


@dataclass(frozen=True)
class Measure:
    """A distance between samples that follows from integer counts over jointly called sites.

    Attributes
    ----------
    terms : Terms
        Outputs: ``difference``, ``called``; with SHARES also ``sums_a``, ``squares_a``,
        ``sums_b``, ``squares_b``.
    form : int
        ROOT: ``sqrt(difference * times / (share * called))``; RATIO: the same without the root;
        SHARES: see `distance.matrix.metric_distances`, ``normalized``.
    times, share : float
    min_called : int
        Pairs with fewer jointly called sites, and pairs without any, have an infinite distance.
    """

    terms: Terms
    form: int
    times: float
    share: float
    min_called: int

    @property
    def least_called(self) -> int:
        return max(1, self.min_called)


@dataclass
class Nearest:
    """The nearest other samples of every sample, nearest first, ties in sample order.

    Attributes
    ----------
    index : int32 array, (n, k)
    distance : float64 array, (n, k)
        Infinite distances come last.
    called : int32 array, (n, k)
        Jointly called sites; zeros where distances are not of genotypes.
    few : int
        Pairs of samples with fewer jointly called sites than are asked for.
    """

    index: np.ndarray
    distance: np.ndarray
    called: np.ndarray
    few: int = 0

    @classmethod
    def empty(cls, n: int, k: int, n_others: int | None = None) -> Nearest:
        """Lists of n samples that hold nobody yet.

        `n_others`: how many others there are, by default all but the sample itself. ValueError: k
        is more than MOST_NEIGHBORS.
        """
        k = number_of_neighbors(max(0, n - 1) if n_others is None else n_others, k)
        return cls(
            np.full((n, k), NOBODY, np.int32), np.full((n, k), np.inf), np.zeros((n, k), np.int32)
        )


def number_of_neighbors(n_others: int, k: int) -> int:
    """k, or all others where there are fewer. ValueError: k is more than MOST_NEIGHBORS."""
    if not 0 <= k <= MOST_NEIGHBORS:
        raise ValueError(f"{k} neighbours; give 0 to {MOST_NEIGHBORS}.")
    return min(k, n_others)


def tiles_of_pairs(n: int, side: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Bounds of rows and columns of tiles that hold each unordered pair of n samples once.

    Tiles of a block with itself come first: lists are then full before the others.
    """
    blocks = [(first, min(first + side, n)) for first in range(0, n, side)]
    yield from ((block, block) for block in blocks)
    for number, rows in enumerate(blocks):
        yield from ((rows, columns) for columns in blocks[number + 1 :])


@dataclass(frozen=True)
class Scaled:
    """Points in float32 by which candidates are judged, and by what they were multiplied.

    Attributes
    ----------
    points : float32 array, (m, n)
        Around their mean, times `scale`, a power of two: no norm is above 1.
    scale : float
    rounding : float
        Relative error of a squared distance in float32.
    """

    points: np.ndarray
    scale: float
    rounding: float

    @classmethod
    def of(cls, points: Any, xp: Any = np) -> Scaled:
        """Points of `xp`, numpy or CuPy, float64 (n, m)."""
        centred = points - points.mean(axis=0)
        largest = float(xp.sqrt((centred * centred).sum(axis=1).max()))
        scale = 2.0 ** -(np.frexp(largest)[1] + 1) if largest > 0 else 1.0
        turned = xp.ascontiguousarray((centred * scale).T.astype(np.float32))
        return cls(turned, scale, ROUNDING * (points.shape[1] + 4))


def checked_points(points: np.ndarray) -> np.ndarray:
    """Points as float64 (n, m), contiguous. ValueError: a shape or a number that is no point."""
    points = np.ascontiguousarray(points, np.float64)
    if points.ndim != 2 or not np.isfinite(points).all() or (np.abs(points) > 1e100).any():
        raise ValueError(
            f"points have the shape {points.shape}; give finite coordinates, (n_samples, m), of "
            "at most 1e100."
        )
    return points
