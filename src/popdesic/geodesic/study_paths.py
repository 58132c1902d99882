"""Geodesics of a study by its store: of all pairs, or among nearest samples and to landmarks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..distance.landmarks import read_landmarks, read_neighbors
from ..distance.matrix import study_distances
from ..engine.backend import Backend
from ..engine.needs import closure_bytes
from .measure import measure_geodesics
from .near_paths import measure_near_geodesics

log = logging.getLogger(__name__)


def measure_paths(
    store: str,
    source: Sequence[Path],
    space: str,
    samples: pd.DataFrame,
    founders: set[str],
    backend: Callable[[int], Backend],
    *,
    distance: Mapping[str, Any],
    code: str,
    out: Mapping[str, Path],
    threads: int = 1,
    **options: Any,
) -> dict:
    """Write the geodesics of a study in one space at one alpha.

    Parameters
    ----------
    store : {'dense', 'near'}
    source : list of Path
        What the space's plain distances are read from: of the near store lists of neighbours and
        rows of landmarks; otherwise as `matrix.study_distances` takes it, first.
    space : {'genotypes', 'pcs', 'ibd'}
    samples : DataFrame
        `sample` and `cohort`, in sample order.
    founders : set of str
        Names of the founder cohorts.
    backend : function
        Gives the backend of a closure for the bytes that it needs on a device.
    distance : dict
        Of the dense store: options of `matrix.study_distances`.
    code : str
        Of the dense store: see `measure.measure_geodesics`.
    out : dict
        ``statistics`` and ``record``, and ``closure`` and ``about`` or ``neighbors`` and
        ``landmarks``.
    options
        What both stores take: alpha, value, ends, graph (`measure.measure_geodesics`).

    Returns
    -------
    dict
        Statistics.
    """
    options |= {"of_points": space == "pcs"}
    options |= {"statistics_out": out["statistics"], "record_out": out["record"]}
    if store == "near":
        lists = read_neighbors(source[0])
        rows = read_landmarks(source[1], lists.landmarks)
        files = {"neighbors_out": out["neighbors"], "landmarks_out": out["landmarks"]}
        return measure_near_geodesics(
            lists, rows, samples, founders, **options, **files, threads=threads
        )
    device = backend(closure_bytes(len(samples)))
    log.info("device: %s", device.describe())
    distances = study_distances(source[0], space, **distance, threads=threads)
    files = {"closure_out": out["closure"], "closure_about_out": out["about"]}
    return measure_geodesics(distances, samples, founders, device, code=code, **options, **files)
