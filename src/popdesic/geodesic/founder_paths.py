"""Geodesics to the founders through founders only, for maps that stay fixed when samples arrive."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..engine.base import Backend, infinity
from ..io.tables import write_npy
from .measure import close_weights
from .weights import fermat_weights, fits_float32


def founder_lengths(
    distances: np.ndarray,
    founders: np.ndarray,
    names: list[str],
    backend: Backend,
    *,
    alpha: float,
    number: str,
    ends: np.ndarray,
    dense_limit: int,
    neighbors: int,
    out: Path,
) -> np.ndarray:
    """Write geodesics from everyone to the founders through founders only.

    Parameters
    ----------
    distances : float64 array, (n, n)
    founders, ends : bool arrays, (n,)
        Samples of the frame, and samples that no path may run through.
    alpha : float
    number, dense_limit, neighbors
        See `measure.close_weights`.
    out : Path
        float32 (n, n_founders), or float64 if the founders' closure needs it. Rows of founders are
        their closure; rows of other samples are the minimum, over founders, of the direct weight
        to that founder plus the founder's closure.
    """
    inner = distances[np.ix_(founders, founders)]
    found = close_weights(
        inner,
        np.ones(len(inner), bool),
        [name for name, is_founder in zip(names, founders, strict=True) if is_founder],
        backend,
        alpha=alpha,
        number=number,
        ends=ends[founders],
        dense_limit=dense_limit,
        neighbors=neighbors,
    )
    closure = np.ascontiguousarray(found.number.value(found.lengths))
    lengths = np.empty((len(distances), len(inner)))
    lengths[founders] = closure
    if not founders.all():
        top = infinity(np.dtype(np.float64))
        direct = fermat_weights(distances[np.ix_(~founders, founders)], alpha)
        first = direct.copy()
        first[:, ends[founders]] = top  # an end-only sample cannot be the first step of a path
        # one addition and a minimum are exact in any order, so each row depends only on itself
        backend.minplus(direct, first, closure)
        lengths[~founders] = direct
    if fits_float32(closure):  # as geodesics are written: with founders only, both maps are equal
        lengths = lengths.astype(np.float32)
    write_npy(out, lengths)
    return lengths
