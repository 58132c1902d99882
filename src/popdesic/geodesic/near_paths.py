"""Geodesics of a study without a matrix of all pairs: nearest samples, and lengths to landmarks.

Paths run in the graph of nearest neighbours (`near_graph`). For each sample the k nearest by path
are found by Dijkstra's algorithm, which ends there; from landmarks paths go on to everyone, from
some of them at a time (`block_paths`). Both are exact on the graph. Of the complete graph, the
graph has the edges of the lists: a pair keeps its direct weight where that is shorter, and lengths
are never too short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import write_json
from ..core.tables import write_npy, write_npz
from ..core.threads import run_tasks
from ..distance.landmarks import LandmarkRows, Neighbors
from .edges import Edges
from .graph import Graph
from .measure import EXACT
from .near_graph import NearGraph, build_near_graph
from .weights import Number, corrected_edges, power_weights

#: A path is indirect if it is shorter than the direct weight by more than this: rows of distances
#: are float32.
SHORTER = 1e-6


def measure_near_geodesics(
    lists: Neighbors,
    rows: LandmarkRows,
    samples: pd.DataFrame,
    founders: set[str],
    *,
    alpha: str,
    value: float,
    ends: set[str],
    graph: Graph,
    of_points: bool,
    out: Mapping[str, Path],
    threads: int = 1,
) -> dict:
    """Write the geodesics of a study at one alpha.

    Parameters
    ----------
    lists : Neighbors
        Nearest samples by distance: the edges.
    rows : LandmarkRows
        Distances of the landmarks to everyone.
    samples : DataFrame
        `sample` and `cohort`, in sample order.
    founders, alpha, value, ends, graph, of_points
        See `measure.measure_geodesics` and `measure.close_weights`.
    out : dict
        ``neighbors``: `index` int32 (n, k) and `distance` float64 (n, k), sample Fermat distances:
        the nearest by path of everyone, as many as `lists` has; -1 and infinite where fewer can be
        reached. `landmarks` int64 (L,).
        ``landmarks``: float32 (L, n), sample Fermat distances of the landmarks to everyone.
        ``statistics``, ``record``: as in `measure.measure_geodesics`; pairs are those of a landmark
        (`sampled_rows`) and another sample.
    threads : int
        Changes no byte.

    Raises
    ------
    UserError
        A sample has no edge, or a weight exceeds the range of its type.
    """
    among = samples.cohort.isin(founders).to_numpy()
    blocked = samples["sample"].isin(ends).to_numpy()
    about: dict = {"alpha": alpha, "ends": int(blocked.sum()), "value": value}
    about |= {"graph": asdict(graph), "approximate": None, "sampled_rows": len(lists.landmarks)}
    if of_points and graph.kind == "complete" and value == 1:
        near, far, lengths = lists.index, lists.distance, np.asarray(rows.matrix)
        about |= {"plain": True, "number": asdict(EXACT), "edges": 0, "short_lists": 0}
        about |= _statistics(lengths, lengths, lists.landmarks, among, rows, threads)
    else:
        found = build_near_graph(lists, among, graph, value)
        _require_edges(found, samples)
        chosen = found.number(among)
        edges = found.edges(chosen, blocked)
        near, far = _nearest(edges, chosen, lists.index.shape[1], threads)
        far = graph.distances(far, value)
        lengths, direct = _landmark_lengths(
            found, edges, chosen, lists.landmarks, rows, graph, value, threads
        )
        about |= {"plain": False, "number": asdict(chosen), "edges": len(found.ends)}
        about |= {"short_lists": found.short, "parts": int(found.parts().max()) + 1}
        about |= _statistics(lengths, direct, lists.landmarks, among, rows, threads)
    write_npz(out["neighbors"], index=near, distance=far, landmarks=lists.landmarks)
    write_npy(out["landmarks"], lengths.astype(np.float32))
    record = {"continued": None}
    write_json(out["record"], record)
    write_json(out["statistics"], about)
    return about | record


def _require_edges(found: NearGraph, samples: pd.DataFrame) -> None:
    alone = np.flatnonzero(np.bincount(found.ends.ravel(), minlength=found.n) == 0)
    if found.n > 1 and alone.size:
        raise UserError(
            f"results/geodesic: sample '{samples['sample'].iloc[alone[0]]}' has no comparable "
            "other sample, so it has no geodesic; lower distance.min_called."
        )


def _nearest(edges: Edges, number: Number, k: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Nearest by path, and the values of their lengths."""
    from .sparse_paths_cpu import nearest_by_paths

    near, far = nearest_by_paths(edges, k, threads)
    return near, number.value(far)


def _landmark_lengths(
    found: NearGraph,
    edges: Edges,
    number: Number,
    landmarks: np.ndarray,
    rows: LandmarkRows,
    graph: Graph,
    alpha: float,
    threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Distances by path from the landmarks to everyone, and direct ones: float32 (L, n) each.

    Direct ones are infinite where the graph has no edge.
    """
    from .block_paths_cpu import each_block

    lengths = np.empty((len(landmarks), found.n), np.float32)
    direct = np.full(lengths.shape, np.inf, np.float32)

    def measure(some: np.ndarray, stored: np.ndarray) -> None:
        which, values = landmarks[some], number.value(stored)
        if graph.kind == "complete":
            own = _direct_weights(found, rows.rows(which), which, graph, alpha)
            direct[some] = graph.distances(own, alpha)
            values = np.minimum(values, own)
        else:
            for row, i in zip(some, which, strict=True):
                mine = slice(edges.starts[i], edges.starts[i + 1])
                weights = number.value(edges.weights[mine])
                direct[row, edges.ends[mine]] = graph.distances(weights, alpha)
        lengths[some] = graph.distances(values, alpha)

    each_block(edges, landmarks, measure, threads)
    return lengths, direct


def _direct_weights(
    found: NearGraph, distances: np.ndarray, which: np.ndarray, graph: Graph, alpha: float
) -> np.ndarray:
    """Weights of the pairs of some samples and everyone, float64 (len(which), n)."""
    if graph.density == "keep":
        return power_weights(distances, alpha)
    radii = np.broadcast_to(found.radii, distances.shape)
    return corrected_edges(distances, found.radii[which][:, None], radii, alpha)


def _statistics(
    lengths: np.ndarray,
    direct: np.ndarray,
    landmarks: np.ndarray,
    founders: np.ndarray,
    rows: LandmarkRows,
    threads: int,
) -> dict:
    """Statistics of `measure.Statistics`, over pairs of a landmark and another sample."""

    def measure(row: int) -> tuple[list[int], int, np.ndarray]:
        other = np.arange(lengths.shape[1]) != landmarks[row]
        reachable = other & np.isfinite(lengths[row])
        indirect = reachable & (lengths[row] < (1 - SHORTER) * direct[row])
        inner = founders & reachable
        counts = [indirect.sum(), reachable.sum(), (indirect & inner).sum(), inner.sum()]
        straight = np.asarray(rows.matrix[row], np.float64)[indirect]
        with np.errstate(divide="ignore", invalid="ignore"):
            stretch = straight / lengths[row][indirect]
        return counts, int((other & ~reachable).sum()), stretch[np.isfinite(stretch)]

    found = run_tasks(measure, ((row,) for row in range(len(landmarks))), threads)
    # indirect, reachable, both of founders
    counts = np.array([own for own, _, _ in found], np.int64).reshape(-1, 4).sum(axis=0)
    unreachable = sum(left for _, left, _ in found)
    stretch = np.concatenate([np.empty(0), *(own for _, _, own in found)])
    return {
        "pairs": int(counts[1]) + unreachable,
        "indirect_pairs": int(counts[0]),
        "indirect_share": float(counts[0] / max(1, counts[1])),
        "founder_indirect_share": float(counts[2] / max(1, counts[3])),
        "median_stretch_of_indirect": float(np.median(stretch)) if stretch.size else 1.0,
        "unreachable_pairs": unreachable,
    }
