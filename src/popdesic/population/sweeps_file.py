"""Statistics of sweeps of the phased samples of a file, by a table of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cohort.haplotype_panel import frozen_for, reference_files
from ..cohort.label_table import read_labels
from ..core.errors import UserError
from ..core.files import beside, require_output
from ..core.tables import write_table
from ..io.frozen_haplotypes import HaplotypePanel
from .sweep_tables import FEWEST_SAMPLES, PLACE, sweep_tables


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
        found = sweep_tables(panel.parts, names, label_of, threads)
    scores = found.sites
    if not len(scores):
        raise UserError(
            f"{reference} has no site with a minor allele frequency of 5 % or more in a population."
        )
    write_table(out, scores)
    write_table(windows, found.windows)
    counts = {"sites": len(scores), "ihs": int(scores.ihs.notna().sum())}
    counts |= {"nsl": int(scores.nsl.notna().sum()), "windows": len(found.windows)}
    if len(names) > 1:
        write_table(pairs, found.pairs)
        counts["xp_ehh"] = int(found.pairs.iloc[:, len(PLACE) :].notna().sum().sum())
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
