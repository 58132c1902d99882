"""Accuracy of imputation by minor allele frequency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.tables import read_table
from .style import MARKERS, PALETTE, Entry, new_figure, shorten_label

_PANELS = (
    ("nonref_error", "Non-reference discordance (%)"),
    ("dosage_r2", "Dosage r²"),
)


def draw_accuracy(path: Path) -> Figure:
    """Non-reference discordance and dosage r2 by MAF, one line per method and cohort.

    `path`: the table of `accuracy.summarize_evaluation`.
    """
    table = read_table(path)
    measured = ["nonref_concordance", "dosage_r2"]
    table[measured] = table[measured].apply(pd.to_numeric, errors="coerce")
    by_maf = table[table.by == "maf"].assign(
        nonref_error=lambda rows: 100 * (1 - rows.nonref_concordance)
    )
    methods = list(dict.fromkeys(by_maf.method))
    cohorts = list(dict.fromkeys(by_maf.cohort))
    entries = [Entry("method")]
    entries += [Entry(method, PALETTE[k], "") for k, method in enumerate(methods)]
    entries += [Entry("cohort")]
    entries += [
        Entry(shorten_label(cohort), "#404040", MARKERS[k % len(MARKERS)])
        for k, cohort in enumerate(cohorts)
    ]
    figure, panels = new_figure(2, entries)
    for axes, (column, title) in zip(panels, _PANELS, strict=True):
        for i, method in enumerate(methods):
            for k, cohort in enumerate(cohorts):
                rows = by_maf[(by_maf.method == method) & (by_maf.cohort == cohort)]
                axes.plot(
                    np.arange(len(rows)),
                    rows[column].to_numpy(float),
                    color=PALETTE[i],
                    marker=MARKERS[k % len(MARKERS)],
                    markersize=3.5,
                    linewidth=0.9,
                )
        labels = list(dict.fromkeys(by_maf.value))
        axes.set_xticks(np.arange(len(labels)), labels, rotation=35, ha="right")
        axes.set(title=title, xlabel="minor allele frequency in the panel")
        axes.set_ylim(0, 100 if column == "nonref_error" else 1)
    return figure
