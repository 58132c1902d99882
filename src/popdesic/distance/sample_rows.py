"""Rows of the matrix of all pairs, computed from planes."""

from __future__ import annotations

import numpy as np

from ..engine.backend import Backend
from ..engine.terms import Planes
from ..io.sites import chunks
from .matrix import distances_of_counts
from .tiles import pairwise_counts, within_panel

#: Samples whose rows these are, and others, whose counts are in memory at a time: int64, 4 MB an
#: output.
OWN_BLOCK, OTHER_BLOCK = 256, 2_048


def rows_to_block(
    own: Planes,
    some: np.ndarray,
    others: Planes,
    backend: Backend,
    *,
    metric: str,
    missing: str,
    min_called: int,
    same: bool = False,
) -> np.ndarray:
    """Distances of some samples of one cohort to all of another one, float32 (len(some), n).

    Parameters
    ----------
    own : Planes
        Memory-mapped.
    some : int64 array
        Numbers of samples of `own`.
    others : Planes
        May be what `Backend.keep_planes` gave.
    metric, missing, min_called
        As in `neighbors.nearest_samples`.
    same : bool
        The others are the samples of `own`: zero to oneself.
    """
    rows = np.empty((len(some), others.n_samples), np.float32)
    least = max(1, within_panel(min_called, own.n_sites))
    about = {"metric": metric, "n_sites": own.n_sites, "min_called": least}
    for first, last in chunks(len(some), OWN_BLOCK):
        chosen = Planes(np.ascontiguousarray(own.words[some[first:last]]), own.n_sites)
        for start, end in chunks(others.n_samples, OTHER_BLOCK):
            block = Planes(others.words[start:end], others.n_sites)
            counts = pairwise_counts(chosen, block, backend, metric=metric, missing=missing)
            rows[first:last, start:end] = distances_of_counts(counts, **about)
    if same:
        rows[np.arange(len(some)), some] = 0.0
    return rows
