"""Scans of permuted phenotypes, in units of equal work: the null distribution of the best cost.

Permutation k is drawn from (seed, k), so that any unit can draw it. A unit writes the best cost of
its first sites; the best of all units is the best of the scan.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import write_npz, write_table
from ..engine.backend import Backend
from .relatedness import Relatives, kin_warnings, permutation_groups
from .reorder import read_reordered
from .scan import permuted
from .scan_sites import scanner
from .scores import load_scan
from .structure import strata_warnings
from .units import check_spans, read_work, unit_spans

#: Cost of a part of a scan in which no combination is permitted.
NONE = np.iinfo(np.int64).max


def permute_unit(
    folder: Path,
    backend: Backend,
    out: Path,
    *,
    order: int,
    permutations: int,
    seed: int,
    score: str,
    min_distance_bp: int,
    max_r2: float,
    part: tuple[int, int] = (0, 1),
    device: str = "auto",
    relatives: Relatives | None = None,
) -> list[str]:
    """Scan one unit of all permuted scans; return warnings for the log.

    `part`: number of the unit, and of units.
    Phenotypes are permuted within strata and, within these, within families of `relatives`.
    `device` is as in `scan.scan_unit`. The npz has, for each part of a permuted scan, `scan` (its
    number, from 0), `first` (where its first sites start and stop) and `cost` (the best).
    """
    words, _, _ = read_reordered(folder)
    data, _, samples = load_scan(folder, score, min_distance_bp, max_r2)
    warnings = strata_warnings(samples)
    if relatives is not None:
        warnings += kin_warnings(relatives, len(samples), permutations=True)
        samples = samples.assign(stratum=permutation_groups(samples["stratum"], relatives))
    spans = unit_spans(read_work(folder, order, device), permutations, *part)
    cost = np.full(len(spans), NONE, np.int64)
    for k, span in enumerate(spans):
        drawn = permuted(words, samples, data, seed, span.scan)
        hits = scanner(backend, order)(drawn, span.first, 1)
        if len(hits.cost):
            cost[k] = hits.cost[0]
    scan = np.array([span.scan for span in spans], np.int64)
    first = np.array([(span.first.start, span.first.stop) for span in spans], np.int64)
    write_npz(out, scan=scan, first=first.reshape(-1, 2), cost=cost)
    return warnings


def merge_permutations(units: list[Path], out: Path, *, permutations: int) -> None:
    """Write the best cost of each permuted scan, one row each; 0 where nothing is permitted."""
    parts = []
    for path in units:
        with np.load(path) as file:
            start, stop = file["first"].T
            parts.append(pd.DataFrame({"scan": file["scan"], "start": start, "stop": stop}))
            parts[-1]["cost"] = file["cost"]
    table = pd.concat(parts)
    n_sites, best = int(table.stop.max()), np.zeros(permutations, np.int64)
    for scan in range(permutations):
        part = table[table.scan == scan]
        spans = list(part[["start", "stop"]].itertuples(index=False, name=None))
        check_spans(spans, n_sites, units[0].parent)
        cost = part.cost.min()
        best[scan] = 0 if cost == NONE else cost
    numbers = np.arange(1, permutations + 1)
    write_table(out, pd.DataFrame({"permutation": numbers, "cost": best}, dtype=np.int64))
