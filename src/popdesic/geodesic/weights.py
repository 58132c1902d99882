"""Weights of edges, d**alpha or corrected for density, and the number types of closures.

Addition in fixed point is associative: sums of weights do not depend on the order in which paths
are built, so a closure has the same bytes on every device, for any tile size, and whether its
cohorts arrived together or one by one (docs/geodesics.md).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from ..core.errors import UserError
from ..core.threads import run_tasks
from ..engine.minplus import infinity
from ..io.sites import chunks

log = logging.getLogger(__name__)

#: Rows in memory at a time.
BLOCK_ROWS = 512
#: Rows of one task: they fit into a core's cache.
FEW_ROWS = 32
#: Largest relative error of a length that `auto` allows fixed point: near that of float32 (6e-8),
#: as which lengths are exported.
FIXED_TOLERANCE = 1e-6 / 16
#: Weights below this have fewer digits than other float64, or none.
LEAST_WEIGHT = float(np.finfo(np.float64).tiny)
#: Headroom above the founders' largest weight, for later cohorts.
HEADROOM = 4
#: Exponent of two of the largest and, negative, of the smallest scale.
LARGEST_SCALE = 1000
#: Fixed-point number types, narrowest first.
FIXED = ("int32", "int64")


@dataclass(frozen=True)
class Number:
    """Number type of a closure: ``value = stored / scale``.

    Attributes
    ----------
    dtype : str
    scale : float
    error_bound : float
        No length differs from the one in exact numbers by more than this share of it. Lengths of
        zero are exact.
    rescaled : bool
        A later sample exceeded the founders' scale, so all samples determine it.
    """

    dtype: str
    scale: float
    error_bound: float
    rescaled: bool = False

    def store(self, weights: np.ndarray) -> np.ndarray:
        """Convert float64 weights to this type; infinite weights become its infinity.

        So do weights beyond its range: they are heavier than any shortest path (`choose_number`).
        """
        if self.dtype not in FIXED:
            with np.errstate(over="ignore"):
                return weights.astype(self.dtype)
        with np.errstate(invalid="ignore"):
            scaled = np.rint(weights * self.scale)
        reachable = scaled < float(infinity(self.dtype))
        stored = np.where(reachable, scaled, 0).astype(self.dtype)
        stored[~reachable] = infinity(self.dtype)
        return stored

    def value(self, stored: np.ndarray) -> np.ndarray:
        """Stored lengths as float64, infinite where there is no path."""
        if self.dtype not in FIXED:
            return stored.astype(np.float64)
        return np.where(stored >= infinity(self.dtype), np.inf, stored / self.scale)


def power_weights(distances: np.ndarray, alpha: float, threads: int = 1) -> np.ndarray:
    """``d**alpha`` in float64, (n, n); zero stays zero, infinity stays infinite.

    `threads` change no byte.

    Raises
    ------
    UserError
        The weight of a positive, finite distance is too large for float64, or too small.
    """
    weights = np.empty(distances.shape)

    def work(first: int, last: int) -> tuple[float, float]:
        """The largest distance without a weight, or -1; the smallest, or infinity."""
        far, rows = distances[first:last], weights[first:last]
        with np.errstate(over="ignore", under="ignore"):
            rows[:] = far**alpha
        overflown = np.isinf(rows) & np.isfinite(far)
        lost = (rows < LEAST_WEIGHT) & (far > 0)
        return float(far[overflown].max(initial=-1.0)), float(far[lost].min(initial=np.inf))

    found = run_tasks(work, chunks(len(distances), FEW_ROWS), threads)
    largest = max((far for far, _ in found), default=-1.0)
    smallest = min((near for _, near in found), default=np.inf)
    if largest >= 0:
        raise UserError(
            f"config/config.yaml: geodesic.alpha = {alpha:g} makes the weight of the distance "
            f"{largest:.6g} overflow; lower it."
        )
    if smallest < np.inf:
        raise UserError(
            f"config/config.yaml: geodesic.alpha = {alpha:g} makes the weight of the distance "
            f"{smallest:.6g} too small for float64; lower it."
        )
    return weights


def corrected_weights(distances: np.ndarray, radii: np.ndarray, alpha: float) -> np.ndarray:
    """Weights that do not depend on how densely a region was sampled, float64 (n, n).

    ``w_ij = d_ij * (d_ij / sqrt(r_i * r_j)) ** (alpha - 1)``, with r the distance to the k-th
    nearest founder. Why: where people lie in D dimensions with the density f, shortest paths under
    d**alpha approach ``c * integral of f**(-(alpha - 1) / D) ds`` (Hwang, Damelin and Hero 2016;
    Little, McKenzie and Murphy 2022): regions with more samples are shorter. There r is
    proportional to ``f**(-1 / D)``, so that dividing by ``r**(alpha - 1)`` cancels the density, and
    ``c' * integral of ds`` is left, for any D. The square root makes the weight symmetric, as in
    the continuous nearest-neighbour graph of Berry and Sauer (2019).

    The ratio d / sqrt(r r) has no unit. A weight thus has the unit of a distance, and so has a sum
    of weights: no root is taken of a length. Lengths are proportional to those in the
    landscape; the factor depends on alpha, k and D, but not on the place. All this holds where r is
    wider than a step to the next sample: k should exceed the number of people sampled at one place.

    Parameters
    ----------
    distances : float64 array, (n, n)
        Symmetric; zero stays zero, infinity stays infinite.
    radii : float64 array, (n,)
        `graph.founder_radii` among founders at a distance above zero. A sample whose radius is 0
        has no such founder: the edge's own length takes the place of its radius.
    alpha : float
        At 1 the weights are the distances.

    Raises
    ------
    UserError
        The weight of a positive, finite distance is too large for float64, or too small.
    """
    weights = np.empty_like(distances)
    roots = np.sqrt(radii)
    for first in range(0, len(distances), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        weights[rows] = _corrected(distances[rows], roots[rows, None], roots[None, :], alpha)
    require_weights(distances, weights, alpha)
    return weights


def corrected_edges(
    distances: np.ndarray, own: np.ndarray, others: np.ndarray, alpha: float
) -> np.ndarray:
    """`corrected_weights` of edges: float64 (n_edges,), from the radii of both ends."""
    weights = _corrected(distances, np.sqrt(own), np.sqrt(others), alpha)
    require_weights(distances, weights, alpha)
    return weights


def _corrected(d: np.ndarray, own: np.ndarray, others: np.ndarray, alpha: float) -> np.ndarray:
    """Weights from distances and the square roots of both radii."""
    if not (own.all() and others.all()):
        own, others = (np.where(one > 0, one, np.sqrt(d)) for one in (own, others))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        weights = d * (d / (own * others)) ** (alpha - 1)
    weights[d == 0] = 0.0
    weights[np.isinf(d)] = np.inf
    return weights


def require_weights(distances: np.ndarray, weights: np.ndarray, alpha: float) -> None:
    """Raise a `UserError` if the corrected weight of a finite distance is infinite or lost."""
    overflown = np.isinf(weights) & np.isfinite(distances)
    lost = (weights < LEAST_WEIGHT) & (distances > 0)
    for wrong, what in ((overflown, "overflow"), (lost, "too small for float64")):
        if wrong.any():
            raise UserError(
                f"config/config.yaml: geodesic.alpha = {alpha:g} makes the density-corrected "
                f"weight of the distance {distances[wrong].max():.6g} {what}; lower it or set "
                "geodesic.density to keep."
            )


def fermat_distances(lengths: np.ndarray, alpha: float) -> np.ndarray:
    """Sample Fermat distances ``lengths ** (1 / alpha)``, float64; infinity stays infinite.

    By square roots where alpha is a power of two: these are rounded exactly on every machine. Other
    roots may differ in the last bit of a float64 from one CPU to another.
    """
    halvings = np.log2(alpha)
    if halvings != int(halvings):
        return lengths ** (1 / alpha)
    for _ in range(int(halvings)):
        lengths = np.sqrt(lengths)
    return lengths


def choose_number(
    weights: np.ndarray,
    founders: np.ndarray,
    wanted: str,
    longest: tuple[float, float] | None = None,
    threads: int = 1,
) -> Number:
    """The number type for these weights.

    The fixed-point scale is the power of two that leaves room for HEADROOM times the founders'
    largest weight. Each weight is then off by up to half a unit, and no sum of weights is off by a
    larger share than the smallest of them: half a unit of the smallest positive weight bounds the
    relative error of every length, whatever the number of edges. ``auto`` selects int32 if this
    bound is at most FIXED_TOLERANCE, or if all weights are integers that fit; otherwise int64 by
    the same rule, or if the rounding of every single weight is as small; otherwise float64. If no
    weight is finite and positive, the type is float64, whatever is wanted.

    `longest` bounds the lengths of paths among founders and among everyone where paths can be
    longer than the largest weight (`graph.longest_paths`); the complete graph needs none.
    """
    if wanted in ("float32", "float64"):
        return floating(wanted, len(weights))
    parts = run_tasks(
        lambda first, last: _upper_weights(weights, first, last),
        chunks(len(weights), FEW_ROWS),
        threads,
    )
    if not any(map(len, parts)):
        return Number("float64", 1.0, 0.0)
    if longest is None:
        most = max(float(part.max(initial=0.0)) for part in parts)
        among = most if founders.all() else _largest(weights, founders, threads)
        longest = among, most
    return fitting_number(parts, *longest, wanted, len(weights), threads)


def floating(dtype: str, n: int) -> Number:
    """float32 or float64. A path among n samples has fewer than n edges and as many roundings."""
    return Number(dtype, 1.0, float(np.finfo(dtype).eps) * n)


def _upper_weights(weights: np.ndarray, first: int, last: int) -> np.ndarray:
    """The finite positive weights of some rows, right of the diagonal."""
    square = weights[first:last, first:last][np.triu_indices(last - first, 1)]
    found = []
    for part in (square, weights[first:last, last:]):
        if part.size and not (part.min() > 0 and part.max() < np.inf):
            part = part[np.isfinite(part) & (part > 0)]
        found.append(part.reshape(-1))
    return np.concatenate(found)


def _largest(weights: np.ndarray, founders: np.ndarray, threads: int) -> float:
    """The largest finite weight between founders, 0 without one."""
    who = np.flatnonzero(founders)

    def work(first: int, last: int) -> float:
        own = np.take(weights[who[first:last]], who, axis=1)
        return float(own[np.isfinite(own)].max(initial=0.0))

    return max(run_tasks(work, chunks(len(who), FEW_ROWS), threads), default=0.0)


def fitting_number(
    parts: list[np.ndarray],
    largest: float,
    top_length: float,
    wanted: str,
    n: int,
    threads: int = 1,
) -> Number:
    """`choose_number` for some positive finite weights.

    Parameters
    ----------
    parts : list of float64 arrays
        All weights, at least one, in any order.
    largest, top_length : float
        Upper bounds of lengths among founders, and among everyone.
    wanted : str
        ``auto`` or a fixed-point type.
    n : int
        Samples.
    """
    smallest = min(float(part.min(initial=np.inf)) for part in parts)
    # without founders at a distance above zero; or where edges of zero join everyone
    top_length = top_length or max(float(part.max(initial=0.0)) for part in parts)
    largest = largest or top_length
    for dtype in FIXED if wanted == "auto" else (wanted,):
        top = float(infinity(dtype))
        if dtype == "int32" and top_length < top and _are_whole(parts, threads):
            return Number("int32", 1.0, 0.0)
        scale = _power_below(top / (HEADROOM * largest))
        rescaled = bool(top_length * scale >= top)
        if rescaled:
            scale = _power_below(top / (2 * top_length))
        # a stored value becomes a float64 again; a weight that is rounded to zero is off by all
        eps = float(np.finfo(np.float64).eps)
        bound = min(1.0, 0.5 / (scale * smallest) + eps)
        if bound > FIXED_TOLERANCE and dtype in (wanted, FIXED[-1]):
            bound = min(bound, _rounding(parts, scale, threads) + eps)
        if bound <= FIXED_TOLERANCE:
            return Number(dtype, scale, bound, rescaled)
        if dtype == wanted:
            log.warning("closure in %s: relative error of lengths up to %.1e", dtype, bound)
            return Number(dtype, scale, bound, rescaled)
        log.info("%s: relative error of lengths up to %.1e: trying a wider type", dtype, bound)
    return floating("float64", n)


def _rounding(parts: list[np.ndarray], scale: float, threads: int) -> float:
    """The largest share by which a weight is rounded: next to none if all are about whole."""

    def work(part: np.ndarray) -> float:
        units = part * scale
        return float((np.abs(np.rint(units) - units) / units).max(initial=0.0))

    return max(run_tasks(work, zip(parts), threads))


def _power_below(ratio: float) -> float:
    """The largest power of two up to this, within what float64 multiplies without loss."""
    with np.errstate(divide="ignore"):
        return float(2.0 ** np.clip(np.floor(np.log2(ratio)), -LARGEST_SCALE, LARGEST_SCALE))


def _are_whole(parts: list[np.ndarray], threads: int) -> bool:
    """Whether all values are whole numbers; the first part often shows that they are not."""
    order = sorted(parts, key=len, reverse=True)
    first, rest = order[0], order[1:]
    if not (first == np.rint(first)).all():
        return False
    return all(run_tasks(lambda part: bool((part == np.rint(part)).all()), zip(rest), threads))


def fits_float32(values: np.ndarray) -> bool:
    """Whether no positive finite value becomes infinite or loses digits near zero in float32."""
    positive = values[np.isfinite(values) & (values > 0)]
    limits = np.finfo(np.float32)
    return not positive.size or bool(positive.max() <= limits.max and positive.min() >= limits.tiny)
