"""Fermat geodesics: weights d**alpha, all-pairs shortest paths by R-Kleene.

The sample Fermat distance of two individuals is the length of the shortest path between them in
the complete graph whose edges weigh d**alpha (genome-distance work in shared terms: DESIGN
section 7). A large alpha makes paths through many close individuals cheaper than one long step.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.base import BASE, Backend, infinity
from ..io.errors import UserError
from ..io.files import write_json
from ..io.tables import write_npy
from .closure import Work, attach_paths, close_paths, similar_order
from .insertion import audit_rows, continue_closure, describe_closure, find_earlier, leading_closure
from .neighbors import neighbor_paths
from .weights import Number, choose_number, fermat_weights, fits_float32

log = logging.getLogger(__name__)

#: Exponents that `auto` tries, and the share of indirect founder pairs it looks for.
AUTO_ALPHAS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
AUTO_SHARE = 0.2
#: Rows that an audit computes again, and the differences that rounding explains.
AUDIT_ROWS = 8
AUDIT_TOLERANCE = {"int32": 0.0, "int64": 0.0, "float32": 1e-5, "float64": 1e-12}


@dataclass(frozen=True)
class Statistics:
    """What a closure did to the direct weights, over pairs with a finite geodesic."""

    pairs: int
    indirect_pairs: int
    indirect_share: float
    founder_indirect_share: float
    median_stretch_of_indirect: float
    unreachable_pairs: int


@dataclass(frozen=True)
class Closure:
    """Fermat distances of a study at one alpha, in their native number type."""

    lengths: np.ndarray
    direct: np.ndarray
    number: Number
    statistics: Statistics
    #: How it was computed this time: differs between a first run and an insertion.
    record: dict
    #: Measured error of approximate geodesics; None where they are exact.
    approximate: dict | None = None


def close_weights(
    distances: np.ndarray,
    founders: np.ndarray,
    names: list[str],
    backend: Backend,
    *,
    alpha: float,
    number: str,
    ends: np.ndarray | None = None,
    dense_limit: int | None = None,
    neighbors: int = 0,
    store: Path | None = None,
    code: str = "",
    known: Closure | None = None,
) -> Closure:
    """Fermat closure of a study at one alpha.

    Parameters
    ----------
    distances : float64 array, (n, n)
        Zero diagonal; infinite for pairs that cannot be compared.
    founders : bool array, (n,)
    names : list of str
    ends : bool array, (n,), optional
        Samples that no path may run through.
    dense_limit, neighbors : int
        Above so many samples, paths run through that many nearest neighbours alone.
    store : Path, optional
        Where the closure will be written: earlier ones are looked for beside it.
    code : str
        Digest of the code; closures that other code made are not continued.
    known : Closure, optional
        Of the leading samples: continued where it holds the same weights in the same fixed point.

    Raises
    ------
    UserError
        A sample has no finite geodesic to any other, or a weight leaves the range of its type.
    """
    weights = fermat_weights(distances, alpha)
    approximate = dense_limit is not None and len(names) > dense_limit
    chosen = choose_number(weights, founders, "float64" if approximate else number)
    direct = chosen.store(weights)
    if chosen.dtype == "float32" and not fits_float32(weights):
        raise UserError(
            f"config/config.yaml: geodesic.number is float32, which cannot hold the weights at "
            f"alpha = {alpha:g}; set it to auto or float64."
        )
    del weights
    among = ends is not None and ends.any()
    earlier = store and not among and find_earlier(store, direct, names, chosen, code)
    if known is not None and not among:
        earlier = leading_closure(known.lengths, known.direct, known.number, direct, chosen)
    error = None
    if approximate:
        closure, error = neighbor_paths(direct, neighbors)
        record = {"continued": None}
        log.warning("%d samples: geodesics are approximate (%s)", len(names), error)
    elif earlier:
        log.info("continuing %s: %d samples", earlier.path, len(earlier.positions))
        closure, record = continue_closure(earlier, direct, backend)
    else:
        closure, work = (
            _close_among(direct, ends, backend) if among else _close_from_scratch(direct, backend)
        )
        record = {"continued": None, "work_skipped": round(work.skipped_share, 6)}
        log.info("%.1f %% of the work was certified needless", 100 * work.skipped_share)
    unreachable = closure >= infinity(closure.dtype)
    alone = np.flatnonzero(unreachable.sum(axis=1) == len(names) - 1)
    if len(names) > 1 and alone.size:
        raise UserError(
            f"results/geodesic: sample '{names[alone[0]]}' has no comparable other sample, so it "
            "has no geodesic; lower distance.min_called or set distance.on_uncomparable to drop."
        )
    statistics = _statistics(closure, direct, founders, chosen)
    return Closure(closure, direct, chosen, statistics, record, error)


def _close_among(direct: np.ndarray, ends: np.ndarray, backend: Backend) -> tuple[np.ndarray, Work]:
    """Closure in which no path runs through the individuals of `ends`, bool (n,)."""
    inner, outer = np.flatnonzero(~ends), np.flatnonzero(ends)
    closed, work = _close_from_scratch(direct[np.ix_(inner, inner)], backend)
    gap = -len(inner) % BASE
    order = np.concatenate([inner, outer])
    place = np.concatenate([np.arange(len(inner)), len(inner) + gap + np.arange(len(outer))])
    w = np.full((len(direct) + gap,) * 2, infinity(direct.dtype), direct.dtype)
    np.fill_diagonal(w, 0)
    w[np.ix_(place, place)] = direct[np.ix_(order, order)]
    w[: len(inner), : len(inner)] = closed
    held = backend.hold(w)
    attach_paths(held, len(inner) + gap, backend)
    backend.fetch(held, w)
    closure = np.empty_like(direct)
    closure[np.ix_(order, order)] = w[np.ix_(place, place)]
    return closure, work


def _close_from_scratch(direct: np.ndarray, backend: Backend) -> tuple[np.ndarray, Work]:
    order = similar_order(direct)
    held = backend.hold(direct[np.ix_(order, order)])
    work = close_paths(held, backend)
    sorted_closure = np.empty_like(direct)
    backend.fetch(held, sorted_closure)
    closure = np.empty_like(direct)
    closure[np.ix_(order, order)] = sorted_closure
    return closure, work


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
        found = close_weights(
            among, np.ones(len(among), bool), named, backend, alpha=alpha, number=number
        ).statistics
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
    ends: set[str],
    dense_limit: int,
    neighbors: int,
    audit: bool,
    code: str,
    lengths_out: Path,
    statistics_out: Path,
    record_out: Path,
    closure_out: Path,
    closure_about_out: Path,
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
    ends : set of str
        Samples that no path may run through (geodesic.bridges: unrelated).
    dense_limit, neighbors : int
        See `close_weights`.
    audit : bool
        Check AUDIT_ROWS random rows against Dijkstra's algorithm before anything is written.
    code : str
        Digest of the code, see `close_weights`.
    lengths_out, closure_out : Path
        Fermat distances (n, n), float32 unless that cannot hold them (a large alpha), then
        float64; and the closure in its native type, with a description for later insertions in
        `closure_about_out`.
    statistics_out : Path
        JSON: alpha, number type with its error bound, share of indirect pairs. The same however
        the closure was computed.
    record_out : Path
        JSON: how it was computed this time: from scratch or from an earlier closure.

    Raises
    ------
    UserError
        As `close_weights`; or the audit found a difference.
    """
    among = samples.cohort.isin(founders).to_numpy()
    names = samples["sample"].tolist()
    is_end = samples["sample"].isin(ends).to_numpy()
    about: dict = {"alpha": alpha, "ends": int(is_end.sum())}
    if alpha == "auto":
        value, about["tried"] = find_alpha(distances, among, names, backend, number=number)
    else:
        value = float(alpha)
    found = close_weights(
        distances,
        among,
        names,
        backend,
        alpha=value,
        number=number,
        ends=is_end,
        dense_limit=dense_limit,
        neighbors=neighbors,
        store=closure_out,
        code=code,
    )
    about |= {
        "value": value,
        "number": asdict(found.number),
        **asdict(found.statistics),
        "approximate": found.approximate,
    }
    record = found.record | {"backend": backend.name}
    if audit and not found.approximate and not is_end.any():
        record["audit"] = _audit(found, names)
    lengths = found.number.value(found.lengths)
    if fits_float32(lengths):
        lengths = lengths.astype(np.float32)
    else:
        log.warning("lengths at alpha %g leave the range of float32: written as float64", value)
    write_npy(lengths_out, lengths)
    write_npy(closure_out, found.lengths)
    # a closure in which some are only ends is none that a later one may continue
    about_closure = describe_closure(found.direct, names, found.number, code)
    write_json(closure_about_out, about_closure | ({"samples": []} if is_end.any() else {}))
    write_json(record_out, record)
    write_json(statistics_out, about)
    return about | record


def _audit(found: Closure, names: list[str]) -> dict:
    rows = np.random.default_rng(len(names)).permutation(len(names))[:AUDIT_ROWS]
    difference = audit_rows(found.lengths, found.direct, rows)
    allowed = AUDIT_TOLERANCE[found.number.dtype]
    log.info("audit of %d rows: largest relative difference %.1e", len(rows), difference)
    if difference > allowed:
        raise UserError(
            f"results/geodesic: the audit found lengths that differ by {difference:.1e} from "
            f"Dijkstra's (allowed: {allowed:.0e}); nothing was written: remove the folder "
            f"results/geodesic/*/closure, run again, and report it if it comes back."
        )
    return {"rows": len(rows), "largest_relative_difference": difference}
