"""Haplotype statistics of the populations of a study's founders.

Haplotypes are those that imputation by copying phased and completed. Founders alone count, so
nothing changes when a cohort arrives, and of close relatives one, because they share long ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..cohort.paint_cohorts import founder_parts, thinned_founders
from ..cohort.panel import load_panel
from ..cohort.samples import read_samples
from ..core.files import write_json
from ..core.tables import open_text, write_rows, write_table
from .counts import labels_of
from .options import used_sites
from .sweep_tables import FEWEST_SAMPLES, sweep_tables

#: Most populations of which all pairs are compared.
MOST_COMPARED = 10
#: The population of all founders, if the sheet tells none.
EVERYONE = "all founders"


class SweepFiles(NamedTuple):
    """What `sweep_study` writes; `sites` and `pairs` are gzipped."""

    sites: Path
    pairs: Path
    windows: Path
    about: Path


def sweep_study(
    haplotypes: Mapping[str, Path],
    fams: Mapping[str, Path],
    out: SweepFiles,
    *,
    panel: Path,
    reference: Path,
    unrelated: Path | None,
    sheet: Path,
    column: str,
    x_contigs: list[str],
    threads: int,
) -> dict[str, Any]:
    """Score the haplotypes of founders by population.

    Parameters
    ----------
    haplotypes, fams : dict
        ``impute/{cohort}/haplotypes.npz`` and ``cohorts/{cohort}/genotypes.fam`` of each founder
        cohort.
    panel, reference
        As in `copy_cohort.copy_cohort`.
    unrelated
        As in `thinned_founders`.
    sheet, column
        The sample sheet, and its column with the populations.
    x_contigs : list of str
        Names of X, which does not count: males have one copy.

    Returns
    -------
    dict
        Also written as `about`: `populations` and `too_small` (samples of each), `sites`, `map_cm`,
        `compared` (whether pairs are), `scores` (sites with an iHS) and `windows`; `reason`, if
        there is no score.
    """
    table = thinned_founders(fams, unrelated)
    labels = labels_of(read_samples(sheet), table["sample"].tolist(), column)
    if not any(labels):
        labels = [EVERYONE] * len(labels)
    sizes = {name: labels.count(name) for name in sorted(set(labels) - {""})}
    names = [name for name, size in sizes.items() if size >= FEWEST_SAMPLES]
    listed, _ = load_panel(panel)
    used = used_sites(listed, x_contigs)
    parts, rows = founder_parts(table, haplotypes, listed, reference)
    parts = [part for part, own in zip(parts, rows, strict=True) if used[own].all()]
    number = {name: k for k, name in enumerate(names)}
    label_of = np.array([number.get(label, -1) for label in labels], np.int64)
    compare = 1 < len(names) <= MOST_COMPARED
    found = sweep_tables(parts if names else [], names, label_of, threads, compare=compare)
    about = {
        "populations": {name: sizes[name] for name in names},
        "too_small": {name: n for name, n in sizes.items() if name not in names},
        "fewest": FEWEST_SAMPLES,
        "sites": sum(len(part.pos) for part in parts),
        "map_cm": round(sum(float(part.cm[-1] - part.cm[0]) for part in parts), 3),
        "compared": compare,
        "scores": int(found.sites.ihs.notna().sum()),
        "windows": len(found.windows),
    }
    if not names:
        about["reason"] = f"no population has {FEWEST_SAMPLES} unrelated founders"
    elif not about["scores"]:
        about["reason"] = "no site has a score: contigs are too short, or sites too few"
    for path, one in ((out.sites, found.sites), (out.pairs, found.pairs)):
        with open_text(path) as file:
            write_rows(file, one, header=True)
    write_table(out.windows, found.windows)
    write_json(out.about, about)
    return about
