"""The nearest samples of everyone by the chosen distance, without a matrix of all pairs.

For studies too large for `distance.npy`: the same integers, the same distances, the same order as
in the matrix of all pairs (`tiles.py`, `matrix.py`), of which only the k nearest are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.base import Backend
from ..engine.nearest import RATIO, ROOT, SHARES, Measure, Nearest, PlaneParts
from ..engine.terms import ALLELES, SQUARED, SQUARED_SUMS
from ..io.tables import write_npz, write_table
from .tiles import load_cohorts


def measure_of(metric: str, n_sites: int, min_called: int) -> Measure:
    """The distance of `matrix.metric_distances` as a backend computes it.

    Parameters
    ----------
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    n_sites : int
        Sites of the panel, which distances are scaled to.
    min_called : int
        Pairs with fewer jointly called sites have an infinite distance.
    """
    terms, form, times, share = {
        "euclidean": (SQUARED, ROOT, n_sites, 1),
        "manhattan": (ALLELES, RATIO, n_sites, 1),
        "ibs": (ALLELES, RATIO, 1, 2),
        "normalized": (SQUARED_SUMS, SHARES, 1, 1),
    }[metric]
    return Measure(terms, form, float(times), float(share), min_called)


def nearest_samples(
    planes: PlaneParts, backend: Backend, *, k: int, metric: str, missing: str, min_called: int
) -> Nearest:
    """The k nearest other samples of every sample.

    Parameters
    ----------
    planes : PlaneParts
        Planes of all cohorts, in sample order.
    k : int
        At most 256; all others where there are fewer.
    metric, min_called
        See `measure_of`.
    missing : {'pairwise', 'imputed'}
        ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.

    Returns
    -------
    Nearest
        Nearest first, ties in sample order: the first k of each row of the matrix of all pairs,
        sorted. Samples at an infinite distance are listed only where there are not enough others.
    """
    if missing == "imputed":
        planes = PlaneParts.of([part.without_mask() for part in planes.parts])
    return backend.nearest_samples(planes, measure_of(metric, planes.n_sites, min_called), k)


def write_neighbors(
    folders: Sequence[Path],
    out: Path,
    backend: Backend,
    *,
    k: int,
    metric: str,
    missing: str,
    min_called: int,
) -> dict[str, int]:
    """Write the nearest samples of everyone of a study.

    Parameters
    ----------
    folders : list of Path
        Folders of `planes.npy` of all cohorts, in sample order.
    out : Path
        `distance/neighbors.npz`: `index` int32 (n, k), rows of `samples.tsv`; `distance` float64
        (n, k); `called` int32 (n, k), jointly called sites; `n_sites`, `panel`. The sample order,
        `samples.tsv` (sample, cohort), is written beside it.
    k, metric, missing, min_called
        See `nearest_samples`.

    Returns
    -------
    dict
        Samples, neighbours of each, pairs with too few jointly called sites, neighbours at an
        infinite distance.

    Raises
    ------
    UserError
        Planes of different panels.
    """
    planes, people = load_cohorts(folders)
    options = {"k": k, "metric": metric, "missing": missing, "min_called": min_called}
    found = nearest_samples(planes, backend, **options)
    write_npz(
        out,
        index=found.index,
        distance=found.distance,
        called=found.called,
        n_sites=np.int64(planes.n_sites),
        panel=np.array(people.panel),
    )
    table = pd.DataFrame({"sample": people.samples, "cohort": people.cohorts})
    write_table(out.parent / "samples.tsv", table)
    return {
        "samples": planes.n_samples,
        "neighbours of each": found.index.shape[1],
        "pairs with too few jointly called sites": found.few,
        "neighbours at infinity": int(np.isinf(found.distance).sum()),
    }
