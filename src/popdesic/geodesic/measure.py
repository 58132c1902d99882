"""Fermat geodesics: weights d**alpha, all-pairs shortest paths by R-Kleene.

The sample Fermat distance of two samples is ``L ** (1 / alpha)``, with L the length of the
shortest path between them under edge weights d**alpha (Little, McKenzie and Murphy 2022). A large
alpha makes paths through many close samples shorter than one long step. The root brings the
lengths back to the unit of the distances; without it a few distant pairs would dominate every map.
The closure keeps L, in fixed point where possible. Weights corrected for density need no root
(`weights.corrected_weights`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import write_json
from ..core.limits import MOST_CLOSED
from ..core.threads import run_tasks
from ..core.triangle import write_triangle
from ..engine.backend import Backend
from ..engine.minplus import BASE, infinity
from ..engine.ranks import median_of
from ..io.sites import chunks
from .closure import Work, attach_paths, close_matrix, similar_order
from .graph import COMPLETE, Graph, longest_paths
from .insertion import continue_closure, describe_closure, find_earlier, leading_closure
from .lengths import APART, EXACT, Lengths, refer_to
from .neighbors import APPROXIMATE_NEIGHBORS, neighbor_paths
from .weights import FIXED, Number, choose_number, fits_float32

log = logging.getLogger(__name__)

#: Largest share of pairs with an edge at which paths along edges are found faster than by the dense
#: closure on a CPU, by number type (tests/bench/bench_sparse_paths.py).
SPARSE_SHARE = {"int32": 0.0075, "int64": 0.015}
#: Rows of the matrices that one task works on.
ROWS_A_TASK = 256


@dataclass(frozen=True)
class Statistics:
    """Comparison of a closure with its direct weights, over pairs with a finite geodesic."""

    pairs: int
    indirect_pairs: int
    indirect_share: float
    founder_indirect_share: float
    #: Distance divided by the sample Fermat distance; corrected for density, weight by length.
    median_stretch_of_indirect: float
    unreachable_pairs: int


@dataclass(frozen=True)
class StudyClosure:
    """Fermat distances of a study at one alpha, in their native number type."""

    lengths: np.ndarray
    direct: np.ndarray
    number: Number
    statistics: Statistics
    #: How it was computed: differs between a run from scratch and an insertion.
    record: dict
    #: Measured error of approximate geodesics; None if they are exact.
    approximate: dict | None = None
    #: Whether these are the distances that were given, see `of_points`.
    plain: bool = False


def close_weights(
    distances: np.ndarray,
    founders: np.ndarray,
    names: list[str],
    backend: Backend,
    *,
    alpha: float,
    number: str = "auto",
    graph: Graph = COMPLETE,
    ends: np.ndarray | None = None,
    of_points: bool = False,
    store: Path | None = None,
    code: str = "",
    known: StudyClosure | None = None,
) -> StudyClosure:
    """Fermat closure of a study at one alpha.

    Parameters
    ----------
    distances : float64 array, (n, n)
        Zero diagonal; infinite for pairs that cannot be compared.
    founders : bool array, (n,)
    names : list of str
    number : str
        See `weights.choose_number`; float64 where geodesics are approximate.
    graph : Graph
        The edges that paths may use, and their weights. With more samples than MOST_CLOSED,
        geodesics of the complete graph are approximate.
    ends : bool array, (n,), optional
        Samples that no path may run through.
    of_points : bool
        Whether these are Euclidean distances of points. Nothing shortens them in the complete graph
        at alpha = 1, so that nothing is closed.
    store : Path, optional
        Where the closure will be written; its folder is searched for earlier closures.
    code : str
        Digest of the code; closures made by different code are not continued.
    known : Closure, optional
        Closure of the leading samples; continued if its weights and fixed-point type are the same.

    Raises
    ------
    UserError
        A sample has no finite geodesic to any other (but in the graph ``shared``, where some may
        have none), or a weight exceeds the range of its type.
    """
    if of_points and graph.kind == "complete" and alpha == 1:
        given = founders, EXACT, distances, alpha, graph
        statistics = _statistics(distances, distances, *given, backend.threads)
        return StudyClosure(
            distances, distances, EXACT, statistics, {"continued": None}, plain=True
        )
    weights = graph.edge_weights(distances, founders, alpha, backend.threads)
    approximate = graph.kind == "complete" and len(names) > MOST_CLOSED
    chosen = choose_number(
        weights,
        founders,
        "float64" if approximate else number,
        None if graph.kind == "complete" else longest_paths(weights, founders),
        backend.threads,
    )
    direct = _stored(chosen, weights, backend.threads)
    if chosen.dtype == "float32" and not fits_float32(weights):
        raise UserError(
            f"float32 cannot hold the weights at alpha = {alpha:g}; take auto or float64."
        )
    del weights
    with_ends = ends is not None and ends.any()
    earlier = None
    if store and not with_ends:
        earlier = find_earlier(store, direct, names, chosen, code, graph, backend.threads)
    if known is not None and not with_ends:
        earlier = leading_closure(known.lengths, known.direct, known.number, direct, chosen)
    error = None
    if approximate:
        closure, error = neighbor_paths(direct, APPROXIMATE_NEIGHBORS, backend.threads)
        record = {"continued": None}
        log.warning("%d samples: geodesics are approximate (%s)", len(names), error)
    elif earlier:
        log.info("continuing %s: %d samples", earlier.path, len(earlier.positions))
        closure, record = continue_closure(earlier, direct, backend)
    else:
        closure, work = (
            _close_with_ends(direct, ends, backend) if with_ends else close_all(direct, backend)
        )
        record = {"continued": None, "work_skipped": round(work.skipped_share, 6)}
        log.info("pruning skipped %.1f %% of the operations", 100 * work.skipped_share)
    alone = _without_paths(closure, backend.threads)
    if len(names) > 1 and alone.size and graph.kind != "shared":
        raise UserError(
            f"results/geodesic: sample '{names[alone[0]]}' has no comparable other sample, so it "
            "has no geodesic; lower distance.min_called or set distance.on_uncomparable to drop."
        )
    given = founders, chosen, distances, alpha, graph
    statistics = _statistics(closure, direct, *given, backend.threads)
    return StudyClosure(closure, direct, chosen, statistics, record, error)


def _without_paths(closure: np.ndarray, threads: int) -> np.ndarray:
    """Rows without a path to any other."""

    def work(first: int, last: int) -> np.ndarray:
        return (closure[first:last] >= infinity(closure.dtype)).sum(axis=1)

    counts = run_tasks(work, chunks(len(closure), ROWS_A_TASK), threads)
    return np.flatnonzero(np.concatenate([np.empty(0, int), *counts]) == len(closure) - 1)


def _close_with_ends(
    direct: np.ndarray, ends: np.ndarray, backend: Backend
) -> tuple[np.ndarray, Work]:
    """Closure in which no path runs through the samples of `ends`, bool (n,)."""
    inner, outer = np.flatnonzero(~ends), np.flatnonzero(ends)
    closed, work = close_all(direct[np.ix_(inner, inner)], backend)
    gap = -len(inner) % BASE
    order = np.concatenate([inner, outer])
    place = np.concatenate([np.arange(len(inner)), len(inner) + gap + np.arange(len(outer))])
    w = np.full((len(direct) + gap,) * 2, infinity(direct.dtype), direct.dtype)
    np.fill_diagonal(w, 0)
    w[np.ix_(place, place)] = direct[np.ix_(order, order)]
    w[: len(inner), : len(inner)] = closed
    held = backend.minplus().hold(w)
    attach_paths(held, len(inner) + gap, backend)
    backend.minplus().fetch(held, w)
    closure = np.empty_like(direct)
    closure[np.ix_(order, order)] = w[np.ix_(place, place)]
    return closure, work


def close_all(direct: np.ndarray, backend: Backend) -> tuple[np.ndarray, Work]:
    """Closure of stored direct weights from scratch, by whichever exact algorithm is faster.

    On a CPU, paths from blocks of nodes are found faster than by the dense closure where few pairs
    have an edge; in fixed point both give the same bytes.
    """
    if backend.name == "cpu" and direct.dtype.name in SPARSE_SHARE:
        share = float((direct < infinity(direct.dtype)).mean())
        if share <= SPARSE_SHARE[direct.dtype.name]:
            from .block_paths_cpu import sparse_paths

            log.info("paths by edges: %.2f %% of the pairs have an edge", 100 * share)
            return sparse_paths(direct, backend.threads), Work()
    order = similar_order(direct, backend.threads)
    return close_matrix(direct, order, backend)


def _stored(number: Number, weights: np.ndarray, threads: int) -> np.ndarray:
    """`Number.store` by blocks of rows, on threads."""
    out = np.empty(weights.shape, number.dtype)

    def work(first: int, last: int) -> None:
        out[first:last] = number.store(weights[first:last])

    run_tasks(work, chunks(len(weights), ROWS_A_TASK), threads)
    return out


def _statistics(
    closure, direct, founders, number: Number, distances, alpha, graph: Graph, threads: int
) -> Statistics:
    n = len(closure)

    def count(first: int, last: int) -> tuple[list[int], np.ndarray]:
        """Pairs of some rows: reachable, indirect, both among founders; stretches of indirect."""
        rows = slice(first, last)
        upper = np.arange(n) > np.arange(first, last)[:, None]
        reachable = upper & (closure[rows] < infinity(closure.dtype))
        indirect = reachable & (closure[rows] < direct[rows])
        among = reachable & founders[rows, None] & founders[None, :]
        keep = graph.density == "keep"
        straight = distances[rows][indirect] if keep else number.value(direct[rows][indirect])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shortest = graph.distances(number.value(closure[rows][indirect]), alpha)
            stretch = straight / shortest
        pairs = reachable, indirect, among, indirect & among
        return [int(one.sum()) for one in pairs], stretch[np.isfinite(stretch)]

    found = run_tasks(count, chunks(n, ROWS_A_TASK), threads)
    counts = np.sum([pairs for pairs, _ in found] or [[0] * 4], axis=0).tolist()
    reachable, indirect, among, indirect_among = counts
    stretch = [part for _, part in found if part.size]  # of pairs with a direct edge
    pairs = n * (n - 1) // 2
    return Statistics(
        pairs=pairs,
        indirect_pairs=indirect,
        indirect_share=indirect / max(1, reachable),
        founder_indirect_share=indirect_among / max(1, among),
        median_stretch_of_indirect=median_of(stretch, threads) if stretch else 1.0,
        unreachable_pairs=pairs - reachable,
    )


def _lengths(found: Lengths, threads: int) -> np.ndarray:
    """All lengths, float32 (n, n), by blocks of rows."""
    out = np.empty(found.shape, np.float32)

    def work(first: int, last: int) -> None:
        out[first:last] = found[first:last]

    run_tasks(work, chunks(len(out), ROWS_A_TASK), threads)
    return out


def _longest(found: StudyClosure, graph: Graph, value: float) -> float:
    """The longest finite length, in the unit of a distance; 1 if there is none above zero."""
    finite = found.lengths[found.lengths < infinity(found.lengths.dtype)]
    top = finite.max(initial=finite.dtype.type(0))
    return float(graph.distances(found.number.value(np.array([top])), value)[0]) or 1.0


def measure_geodesics(
    distances: np.ndarray,
    samples: pd.DataFrame,
    founders: set[str],
    backend: Backend,
    *,
    alpha: str,
    value: float,
    ends: set[str],
    graph: Graph,
    points: Mapping[str, Any] | None = None,
    code: str,
    out: Mapping[str, Path],
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
        A number, or ``auto`` where `value` and `graph` are those of `geodesic/choice.json`.
    value : float
        The number.
    ends : set of str
        Samples that no path may run through (geodesic.bridges: unrelated).
    graph
        See `close_weights`.
    points : dict
        Where these are Euclidean distances of points: ``file`` of their coordinates, ``pcs``, the
        number of leading columns that count.
    code : str
        Digest of the code, see `close_weights`.
    out : dict
        ``closure`` and ``about``, JSON: what `lengths.open_lengths` reads, the closure (lengths
        before the root) in fixed point, with a description for later insertions; or the lengths,
        if it cannot be continued; or of plain distances of points a reference to these.
        ``statistics``, JSON: alpha, number type with its error bound, share of indirect pairs. Does
        not depend on how the closure was computed.
        ``record``, JSON: whether it was computed from scratch or from an earlier closure.

    Raises
    ------
    UserError
        As in `close_weights`.
    """
    among = samples.cohort.isin(founders).to_numpy()
    names = samples["sample"].tolist()
    is_end = samples["sample"].isin(ends).to_numpy()
    about: dict = {"alpha": alpha, "ends": int(is_end.sum())}
    closure = out["closure"]
    found = close_weights(
        distances,
        among,
        names,
        backend,
        alpha=value,
        ends=is_end,
        graph=graph,
        of_points=points is not None,
        store=closure,
        code=code,
    )
    about |= {
        "value": value,
        "closure": closure.relative_to(out["statistics"].parent).as_posix(),
        "graph": asdict(graph),
        "plain": found.plain,
        "number": asdict(found.number),
        **asdict(found.statistics),
        "approximate": found.approximate,
    }
    record = found.record | {"backend": backend.name}
    longest = 0.0
    if graph.kind == "shared":
        longest = _longest(found, graph, value)
        about["apart"] = APART * longest
        about["alone"] = int((np.isfinite(distances).sum(axis=1) == 1).sum())
    about_closure = {"alpha": value, "longest": longest}
    # A closure in which some samples can only be ends must not be continued.
    if found.number.dtype in FIXED and not is_end.any():
        given = found.direct, names, found.number, code, graph, backend.threads
        tasks = [(describe_closure, *given), (write_triangle, closure, found.lengths)]
        described, _ = run_tasks(lambda work, *rest: work(*rest), tasks, backend.threads)
        about_closure |= described
    elif found.plain:
        refer_to(closure, points["file"])
        named = os.path.relpath(points["file"], closure.parent)
        about_closure |= {"points": named, "pcs": points["pcs"], "graph": asdict(graph)}
    else:
        rows = found.lengths.__getitem__
        lengths = Lengths(rows, found.lengths.shape, found.number, graph, value, longest)
        write_triangle(closure, _lengths(lengths, backend.threads))
        about_closure |= {"samples": [], "dtype": "float32", "graph": asdict(graph)}
    write_json(out["about"], about_closure)
    write_json(out["record"], record)
    write_json(out["statistics"], about)
    return about | record
