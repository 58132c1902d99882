"""Statistics of sweeps of the phased samples of a file, by a table of labels."""

from __future__ import annotations

import logging
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.haplotype_panel import frozen_for, reference_files
from ..cohort.label_table import read_labels
from ..cohort.paint_batches import unpacked
from ..core.errors import UserError
from ..core.files import beside, require_output
from ..core.tables import write_table
from ..core.threads import run_tasks
from ..io.frozen_haplotypes import HaplotypePanel, HaplotypePart
from .sweeps import (
    WINDOW,
    compare_populations,
    score_sites,
    standardised,
    window_haplotypes,
)

log = logging.getLogger("popdesic")

#: Fewest samples of a population.
FEWEST_SAMPLES = 5
#: Absolute standardised scores from which a site counts as extreme (Voight et al. 2006).
EXTREME = 2.0


def sweeps_file(
    reference: Path, labels: Path | None, out: Path, genetic_map: str, threads: int
) -> dict[str, int]:
    """Write scores of sites, of pairs of populations and of windows.

    Parameters
    ----------
    reference : Path
        A file of `freeze_haplotypes`, or what that reads, which is frozen for this run.
    labels : Path, optional
        A table with the columns `sample` and `label`; samples that it leaves out do not count. By
        default all samples are one population.
    out : Path
        Scores of sites, `.tsv`; beside it `.windows.tsv` and, of two populations or more,
        `.pairs.tsv`.
    genetic_map : str
        As in `freeze_haplotypes`; '' if the reference is frozen.

    Returns
    -------
    dict
        Numbers of scores and windows.

    Raises
    ------
    UserError
        As `freeze_haplotypes` and `read_labels`; a population has too few samples, or no site has a
        score.
    """
    if out.suffix != ".tsv":
        raise UserError(f"the output {out} is a table; give it a name that ends in .tsv.")
    stem = str(out.with_suffix(""))
    windows, pairs = beside(stem, ".windows.tsv"), beside(stem, ".pairs.tsv")
    others = [windows, pairs, beside(stem, ".png"), beside(stem, ".svg")]
    inputs = [*reference_files(reference), *filter(None, [labels])]
    require_output(out, *inputs, others=others)
    with frozen_for(reference, genetic_map, out.parent, threads) as panel:
        names, label_of = _populations(labels, panel)
        sites, compared, of_windows = zip(
            *(_score_part(part, names, label_of, threads) for part in panel.parts), strict=True
        )
    scores = _standardise(pd.concat(sites, ignore_index=True), names)
    if not len(scores):
        raise UserError(
            f"{reference} has no site with a minor allele frequency of 5 % or more in a population."
        )
    found = pd.concat(of_windows, ignore_index=True)
    _count_extremes(found, scores)
    write_table(out, scores)
    write_table(windows, found)
    counts = {"sites": len(scores), "ihs": int(scores.ihs.notna().sum())}
    counts |= {"nsl": int(scores.nsl.notna().sum()), "windows": len(found)}
    if len(names) > 1:
        table = pd.concat(compared, ignore_index=True)
        for name in table.columns[4:]:
            table[name] = standardised(table[name].to_numpy(np.float64))
        write_table(pairs, table)
        counts["xp_ehh"] = int(table.iloc[:, 4:].notna().sum().sum())
    else:
        pairs.unlink(missing_ok=True)  # of an earlier run with labels
    return counts


def _populations(labels: Path | None, panel: HaplotypePanel) -> tuple[list[str], np.ndarray]:
    """Names of the populations, and the number of that of each sample; -1: none."""
    names, label_of = ["all"], np.zeros(len(panel.samples), np.int64)
    if labels is not None:
        names, label_of = read_labels(labels, panel, fewest=1)
    sizes = np.bincount(label_of[label_of >= 0], minlength=len(names))
    if (sizes < FEWEST_SAMPLES).any():
        small = int(np.argmin(sizes))
        raise UserError(
            f"population '{names[small]}' has {sizes[small]} samples in {panel.path}; haplotype "
            f"statistics need {FEWEST_SAMPLES} or more: leave it out of the labels, or join it to "
            "another."
        )
    return names, label_of


def _score_part(
    part: HaplotypePart, names: list[str], label_of: np.ndarray, threads: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Sites, pairs and windows of a part, not standardised."""
    log.info("%s: %d sites", part.contig, len(part.pos))
    pos, cm, of_row = np.array(part.pos), np.array(part.cm), label_of[part.owner]
    bits = np.asarray(part.haplotypes)
    alleles = [
        np.ascontiguousarray(unpacked(bits, np.flatnonzero(of_row == k)).T).view(np.uint8)
        for k in range(len(names))
    ]
    places = pd.DataFrame({"chrom": part.contig, "pos": pos})
    for name in ("ref", "alt"):
        places[name] = np.asarray(getattr(part, name)).view("S1").astype(str)
    tables, of_windows = [], []
    each = run_tasks(
        lambda one: (score_sites(one, cm, pos), window_haplotypes(one)),
        [(one,) for one in alleles],
        threads,
    )
    for name, (scores, windows) in zip(names, each, strict=True):
        table = places.iloc[scores.sites].reset_index(drop=True)
        table.insert(0, "population", name)
        tables.append(table.assign(frequency=scores.frequency, ihs=scores.ihs, nsl=scores.nsl))
        start, end = pos[windows.first], pos[windows.last]
        about = {"population": name, "chrom": part.contig, "start": start, "end": end}
        values = dict(zip(windows._fields[2:], windows[2:], strict=True))
        of_windows.append(pd.DataFrame(about | {"sites": WINDOW} | values))
    compared = places.iloc[:0]
    if len(names) > 1:
        rows, scores = compare_populations(alleles, cm, pos, threads)
        titles = [f"{first}/{second}" for first, second in combinations(names, 2)]
        compared = places.iloc[rows].reset_index(drop=True)
        compared = pd.concat([compared, pd.DataFrame(scores, columns=titles)], axis=1)
    return (
        pd.concat(tables, ignore_index=True),
        compared,
        pd.concat(of_windows, ignore_index=True),
    )


def _standardise(scores: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The table of sites by population, its scores standardised by ALT frequency."""
    tables = []
    for name in names:
        table = scores[scores.population == name].reset_index(drop=True)
        for column in ("ihs", "nsl"):
            values = table[column].to_numpy(np.float64)
            table[column] = standardised(values, table.frequency.to_numpy())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _count_extremes(windows: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Add the shares of sites with extreme scores to windows; NA where none has a score."""
    groups = dict(list(scores.groupby(["population", "chrom"], sort=False)))
    shares = np.full((len(windows), 2), np.nan)
    for row, window in enumerate(windows.itertuples()):
        if (table := groups.get((window.population, window.chrom))) is None:
            continue
        pos = table.pos.to_numpy()
        first, last = np.searchsorted(pos, [window.start, window.end + 1])
        for k, column in enumerate(("ihs", "nsl")):
            values = table[column].to_numpy()[first:last]
            known = values[np.isfinite(values)]
            if len(known):
                shares[row, k] = (np.abs(known) > EXTREME).mean()
    windows["extreme_ihs"], windows["extreme_nsl"] = shares.T
