"""Fermat geodesics: weights d**alpha, all-pairs shortest paths by R-Kleene.

The sample Fermat distance of two individuals is the length of the shortest path between them in
the complete graph whose edges weigh d**alpha (genome-distance work in shared terms: DESIGN
section 7). A large alpha makes paths through many close individuals cheaper than one long step.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from .backend import Backend
from .backend.cpu import INFINITY_INT32, infinity
from .errors import UserError
from .results import write_npy
from .store import write_json

log = logging.getLogger(__name__)

#: Exponents that `auto` tries, and the share of indirect founder pairs it looks for.
AUTO_ALPHAS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
AUTO_SHARE = 0.2
#: Blocks up to this size are closed by Floyd-Warshall in cache.
BASE_SIZE = 64
#: Error allowed to fixed point, relative to every weight above MEDIAN_FRACTION of the median.
FIXED_TOLERANCE = 1e-6
MEDIAN_FRACTION = 1e-3
#: Hops that the error bound of fixed point allows for (each weight is off by half a unit).
BOUND_HOPS = 16
#: Room above the founders' largest weight, for later cohorts.
HEADROOM = 4


class MinplusBackend(Protocol):
    """What the recursion needs of a backend."""

    def minplus(self, c, a, b, *, symmetric: bool = False): ...

    def close_block(self, w): ...


@dataclass(frozen=True)
class Number:
    """Number type of a closure: ``value = stored / scale``.

    `rescaled` says that a later sample exceeded the founders' scale, so that all samples set it.
    """

    dtype: str
    scale: float
    error_bound: float
    rescaled: bool = False

    def store(self, weights: np.ndarray) -> np.ndarray:
        """float64 weights in this type; infinite ones become its infinity."""
        if self.dtype != "int32":
            with np.errstate(over="ignore"):
                return weights.astype(self.dtype)
        with np.errstate(invalid="ignore"):
            scaled = np.rint(weights * self.scale)
        return np.where(np.isfinite(scaled), scaled, INFINITY_INT32).astype(np.int32)

    def value(self, stored: np.ndarray) -> np.ndarray:
        """Stored lengths as float64, infinite where there is no path."""
        if self.dtype != "int32":
            return stored.astype(np.float64)
        return np.where(stored >= INFINITY_INT32, np.inf, stored / self.scale)


@dataclass(frozen=True)
class Statistics:
    """What a closure did to the direct weights, over pairs with a finite geodesic."""

    pairs: int
    indirect_pairs: int
    indirect_share: float
    founder_indirect_share: float
    median_stretch_of_indirect: float
    unreachable_pairs: int


def fermat_weights(distances: np.ndarray, alpha: float) -> np.ndarray:
    """``d**alpha`` in float64, (n, n); zero stays zero, infinity stays infinite.

    Raises
    ------
    UserError
        A finite distance has no finite weight.
    """
    with np.errstate(over="ignore"):
        weights = distances**alpha
    overflown = np.isinf(weights) & np.isfinite(distances)
    if overflown.any():
        raise UserError(
            f"config/config.yaml: geodesic.alpha = {alpha:g} makes a weight too large for a "
            f"number of the distance {distances[overflown].max():.6g}; lower it."
        )
    return weights


def choose_number(weights: np.ndarray, founders: np.ndarray, wanted: str) -> Number:
    """The number type for these weights.

    Fixed-point int32 is associative, so its results depend on no order; its scale is the power of
    two that gives the founders' largest weight HEADROOM below overflow. ``auto`` takes it where
    half a unit on each of BOUND_HOPS hops is at most FIXED_TOLERANCE of the smallest weight above
    a thousandth of the median, or where all weights are integers that fit; else float64. So is
    float64 where no weight is finite and positive, whatever is wanted.
    """
    if wanted in ("float32", "float64"):
        return Number(wanted, 1.0, float(np.finfo(wanted).eps) * BOUND_HOPS)
    upper = weights[np.triu_indices(len(weights), 1)]
    finite = upper[np.isfinite(upper) & (upper > 0)]
    if not finite.size:
        return Number("float64", 1.0, 0.0)
    among = weights[np.ix_(founders, founders)]
    largest = among[np.isfinite(among)].max(initial=0.0) or finite.max()
    scale = 2.0 ** np.floor(np.log2(float(INFINITY_INT32) / (HEADROOM * largest)))
    rescaled = bool(finite.max() * scale >= INFINITY_INT32)
    if rescaled:
        scale = 2.0 ** np.floor(np.log2(float(INFINITY_INT32) / (2 * finite.max())))
    if finite.max() < 2**30 - 1 and (finite == np.rint(finite)).all():
        return Number("int32", 1.0, 0.0)
    matters = finite[finite >= MEDIAN_FRACTION * np.median(finite)]
    bound = BOUND_HOPS * 0.5 / (scale * matters.min())
    if wanted == "int32" or bound <= FIXED_TOLERANCE:
        return Number("int32", float(scale), float(bound), rescaled)
    log.info("fixed point could be off by %.1e of a weight: float64 instead", bound)
    return Number("float64", 1.0, float(np.finfo(np.float64).eps) * BOUND_HOPS)


def close_paths(w: np.ndarray, backend: MinplusBackend) -> None:
    """All-pairs shortest path lengths, in place, by R-Kleene on the symmetric matrix.

    With W = [A B'; B D]: close A; B = B*A; D = min(D, B*B'); close D; B = D*B; A = min(A, B'*B).
    A and D products compute one triangle and only B is worked on, n**3 / 2 operations in all
    (the genome-distance work's symmetric form of D'Alberto and Nicolau's recursion). B*A and D*B
    read a copy of B, so that floats come out the same for any number of threads.

    Parameters
    ----------
    w : array, (n, n), int32, float32 or float64
        Symmetric, zero diagonal, non-negative; `infinity` of the dtype where there is no edge.
    """
    n = len(w)
    if n <= BASE_SIZE:
        backend.close_block(w)
        return
    half = n // 2
    close_paths(w[:half, :half], backend)
    insert_paths(w, half, backend)
    w[:half, half:] = w[half:, :half].T


def insert_paths(w: np.ndarray, closed: int, backend: MinplusBackend) -> None:
    """R-Kleene's steps after A (the leading `closed` samples) is closed: O(m n**2) for m new ones.

    The upper right block is not read and not written.
    """
    a, b, d = w[:closed, :closed], w[closed:, :closed], w[closed:, closed:]
    backend.minplus(b, b.copy(), a)
    backend.minplus(d, b, b.T, symmetric=True)
    close_paths(d, backend)
    backend.minplus(b, d, b.copy())
    backend.minplus(a, b.T, b, symmetric=True)


def close_weights(
    distances: np.ndarray,
    founders: np.ndarray,
    names: list[str],
    backend: Backend,
    *,
    alpha: float,
    number: str,
) -> tuple[np.ndarray, Number, Statistics]:
    """Fermat closure of a study at one alpha.

    Parameters
    ----------
    distances : float64 array, (n, n)
        Zero diagonal; infinite for pairs that cannot be compared.
    founders : bool array, (n,)
    names : list of str
        For messages.

    Returns
    -------
    closure : array, (n, n), in the chosen number type
    number : Number
    statistics : Statistics

    Raises
    ------
    UserError
        A sample has no finite geodesic to any other, or a weight leaves the range of its type.
    """
    weights = fermat_weights(distances, alpha)
    chosen = choose_number(weights, founders, number)
    direct = chosen.store(weights)
    if chosen.dtype == "float32" and not _fits_float32(weights):
        raise UserError(
            f"config/config.yaml: geodesic.number is float32, which cannot hold the weights at "
            f"alpha = {alpha:g}; set it to auto or float64."
        )
    del weights
    closure = direct.copy()
    close_paths(closure, backend)
    unreachable = closure >= infinity(closure.dtype)
    alone = np.flatnonzero(unreachable.sum(axis=1) == len(names) - 1)
    if len(names) > 1 and alone.size:
        raise UserError(
            f"results/geodesic: sample '{names[alone[0]]}' has no comparable other sample, so it "
            "has no geodesic; lower distance.min_called or set distance.on_uncomparable to drop."
        )
    return closure, chosen, _statistics(closure, direct, founders, chosen)


def _fits_float32(values: np.ndarray) -> bool:
    """False when a positive finite value would become infinite or lose digits near zero."""
    positive = values[np.isfinite(values) & (values > 0)]
    limits = np.finfo(np.float32)
    return not positive.size or bool(positive.max() <= limits.max and positive.min() >= limits.tiny)


def _statistics(closure, direct, founders, number: Number) -> Statistics:
    upper = np.triu(np.ones(closure.shape, bool), 1)
    reachable = upper & (closure < infinity(closure.dtype))
    indirect = reachable & (closure < direct)
    among_founders = reachable & founders[:, None] & founders[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = number.value(direct[indirect]) / number.value(closure[indirect])
    return Statistics(
        pairs=int(upper.sum()),
        indirect_pairs=int(indirect.sum()),
        indirect_share=_share(indirect, reachable),
        founder_indirect_share=_share(indirect & among_founders, among_founders),
        median_stretch_of_indirect=float(np.median(stretch)) if stretch.size else 1.0,
        unreachable_pairs=int((upper & ~reachable).sum()),
    )


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / max(1, whole.sum()))


def find_alpha(distances: np.ndarray, founders: np.ndarray, names, backend, *, number: str):
    """The smallest of AUTO_ALPHAS at which AUTO_SHARE of the founder pairs are indirect.

    Only the founders' own distances count, so that a new cohort never changes the choice.

    Returns
    -------
    alpha : float
        The largest one tried when none reaches the share.
    tried : dict
        Share of indirect founder pairs by alpha.
    """
    among = distances[np.ix_(founders, founders)]
    named = [name for name, founder in zip(names, founders, strict=True) if founder]
    tried = {}
    for alpha in AUTO_ALPHAS:
        _, _, found = close_weights(
            among, np.ones(len(among), bool), named, backend, alpha=alpha, number=number
        )
        tried[f"{alpha:g}"] = found.indirect_share
        log.info("alpha %g: %.2f %% of founder pairs indirect", alpha, 100 * found.indirect_share)
        if found.indirect_share >= AUTO_SHARE:
            break
    return alpha, tried


def measure_geodesics(
    distances: np.ndarray,
    samples: pd.DataFrame,
    founders: set[str],
    backend: Backend,
    *,
    alpha: str,
    number: str,
    lengths_out: Path,
    statistics_out: Path,
    closure_out: Path,
) -> dict:
    """Close a study's distances at one alpha and write what later stages read.

    Parameters
    ----------
    distances : float64 array, (n, n)
    samples : DataFrame
        `sample` and `cohort` of the rows.
    founders : set of str
        Names of the founder cohorts.
    alpha : str
        A number, or ``auto``.
    lengths_out, closure_out : Path
        Fermat distances (n, n), float32 unless that cannot hold them (a large alpha), then
        float64; and the closure in its native type.
    statistics_out : Path
        JSON: alpha, number type with its error bound, share of indirect pairs.
    """
    among = samples.cohort.isin(founders).to_numpy()
    names = samples["sample"].tolist()
    about: dict = {"alpha": alpha}
    if alpha == "auto":
        value, about["tried"] = find_alpha(distances, among, names, backend, number=number)
    else:
        value = float(alpha)
    closure, chosen, statistics = close_weights(
        distances, among, names, backend, alpha=value, number=number
    )
    about |= {"value": value, "number": asdict(chosen), **asdict(statistics)}
    lengths = chosen.value(closure)
    if _fits_float32(lengths):
        lengths = lengths.astype(np.float32)
    else:
        log.warning("lengths at alpha %g leave the range of float32: written as float64", value)
    write_npy(lengths_out, lengths)
    write_npy(closure_out, closure)
    write_json(statistics_out, about)
    return about
