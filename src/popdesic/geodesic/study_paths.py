"""Geodesics of a study by its store: of all pairs, or among nearest samples and to landmarks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.files import read_json, write_json
from ..distance.landmarks import read_landmarks, read_neighbors
from ..distance.matrix import leading_scores, study_distances
from ..engine.backend import Backend
from ..engine.needs import closure_bytes
from .graph import Graph
from .lengths import refer_to
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
    listed: Sequence[Path] = (),
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
    listed : list of Path
        Of the dense store: ``alpha{alpha}.json`` of further alphas. If one has the exponent and
        graph, its closure is not computed and stored again.
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
    if store == "near":
        lists = read_neighbors(source[0])
        rows = read_landmarks(source[1], lists.landmarks)
        return measure_near_geodesics(
            lists,
            rows,
            samples,
            founders,
            of_points=space == "pcs",
            **options,
            out=out,
            threads=threads,
        )
    for path in listed:
        about = read_json(path)
        if (about["value"], Graph(**about["graph"])) == (options["value"], options["graph"]):
            return _repeat(path, about, options["alpha"], out)
    device = backend(closure_bytes(len(samples)))
    log.info("device: %s", device.describe())
    distances = study_distances(source[0], space, **distance, threads=threads)
    if space == "pcs":
        pcs = leading_scores(source[0], distance["pcs"]).shape[1]
        options["points"] = {"file": source[0], "pcs": pcs}
    return measure_geodesics(distances, samples, founders, device, code=code, **options, out=out)


def _repeat(listed: Path, about: Mapping[str, Any], alpha: str, out: Mapping[str, Path]) -> dict:
    """Write that the geodesics at `alpha` are those of another one; return their statistics."""
    closure = listed.parent / about["closure"]
    refer_to(out["closure"], closure)
    write_json(out["about"], {"same_as": closure.name})
    record = {"continued": None, "same_as": listed.name}
    write_json(out["record"], record)
    write_json(out["statistics"], {**about, "alpha": alpha})
    return {**about, "alpha": alpha, **record}
