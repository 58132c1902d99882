"""Geodesics to the founders through founders only, for maps that stay fixed when samples arrive."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.tables import write_npy
from ..engine.backend import Backend
from ..engine.minplus import infinity
from .graph import Graph
from .measure import close_weights


def founder_lengths(
    distances: np.ndarray,
    founders: np.ndarray,
    names: list[str],
    backend: Backend,
    *,
    alpha: float,
    ends: np.ndarray,
    graph: Graph,
    of_points: bool = False,
    out: Path,
) -> np.ndarray:
    """Write geodesics from everyone to the founders through founders only.

    Parameters
    ----------
    distances : float64 array, (n, n)
    founders, ends : bool arrays, (n,)
        Samples of the frame, and samples that no path may run through.
    alpha : float
    graph, of_points
        See `measure.close_weights`.
    out : Path
        float32 (n, n_founders), in the unit of the distances (`Graph.distances`). Rows of founders
        are their geodesics; for other samples, path lengths are the minimum, over
        founders, of the direct weight to that founder plus the founder's closure.
    """
    inner = distances[np.ix_(founders, founders)]
    found = close_weights(
        inner,
        np.ones(len(inner), bool),
        [name for name, is_founder in zip(names, founders, strict=True) if is_founder],
        backend,
        alpha=alpha,
        ends=ends[founders],
        graph=graph,
        of_points=of_points,
    )
    closure = np.ascontiguousarray(found.number.value(found.lengths))
    lengths = np.empty((len(distances), len(inner)))
    lengths[founders] = closure
    if not founders.all():
        top = infinity(np.dtype(np.float64))
        weights = graph.edge_weights(distances, founders, alpha)
        direct = weights[np.ix_(~founders, founders)]
        first = direct.copy()
        first[:, ends[founders]] = top  # an end-only sample cannot be the first step of a path
        # one addition and a minimum are exact in any order, so each row depends only on itself
        backend.minplus().multiply(direct, first, closure)
        lengths[~founders] = direct
    found_distances = graph.distances(lengths, alpha).astype(np.float32)
    write_npy(out, found_distances)
    return found_distances
