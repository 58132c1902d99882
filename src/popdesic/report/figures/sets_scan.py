"""Figures of the scan of sets: p along the genome, and quantiles of p."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.tables import read_table
from ...epistasis.set_results import quantiles_of_sets, read_set_table
from ...io.sites import canonical_contig
from ..registry import set_figures
from .sites_scan import draw_manhattan, draw_quantiles
from .style import (
    ACCENT,
    ALARM,
    MISSING_COLOUR,
    WIDTH,
    Entry,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)

#: Where sets stand that are on several contigs.
SEVERAL = "several"
#: Sets in the forest plot.
BEST = 10


def draw_sets(path: Path, sites: Path, out: Path, phenotype: str = "") -> list[str]:
    """Draw epistasis/sets.tsv as {out}/sets_manhattan and {out}/sets_qq (.svg, .png).

    Parameters
    ----------
    sites : Path
        reorder/sites.tsv, which has the order of the contigs.
    phenotype : str
        In the names of files, if there are several phenotypes.
    """
    table = read_set_table(path)
    order = read_table(sites).astype({"rank": np.int64}).sort_values("rank")["chrom"]
    with styled():
        figures = (
            draw_manhattan(in_genome_order(table, order), "p of the set", "sets"),
            draw_quantiles(quantiles_of_sets(table), "sets, p_quadratic"),
        )
        drawn = [figure.name for figure in set_figures(str(path), phenotype)][:2]
        for name, figure in zip(drawn, figures, strict=True):
            save_figure(figure, out / name)
    return drawn


def draw_forest(sets: Path, by_cohort: Path, out: Path, phenotype: str = "") -> list[str]:
    """Draw epistasis/sets_replication.tsv and sets_by_cohort.tsv as {out}/sets_forest."""
    name = set_figures(str(sets), phenotype)[2].name
    with styled():
        save_figure(forest(*map(read_set_table, (sets, by_cohort))), out / name)
    return [name]


def forest(table: pd.DataFrame, by_cohort: pd.DataFrame) -> Figure:
    """Effects with 95 % intervals of the sets of the smallest p in the discovery, by cohort.

    Effects are of one standard deviation of the direction, over all cohorts of a set.
    """
    best = table[table.p_discovery.notna()].sort_values("p_discovery", kind="stable").head(BEST)
    rows: list[tuple[str, float, float, str]] = []
    for _, row in best.iterrows():
        own = by_cohort[(by_cohort.set == row.set) & by_cohort.se.notna()]
        unit = np.sqrt((own.se**-2.0).sum() / max(own.n.sum(), 1))
        for one in own.itertuples():
            shade = MISSING_COLOUR if one.role == "discovery" else ACCENT
            label = f"{shorten_label(row.set, 16)}, {shorten_label(one.cohort, 12)}"
            rows.append((label, unit * one.effect, unit * one.se, shade))
        if row.cohorts > 1:
            label = f"{shorten_label(row.set, 16)}, replication"
            rows.append((label, unit * row.effect, unit * row.se, ALARM))
    entries = [
        Entry("discovery", MISSING_COLOUR, "o"),
        Entry("replication", ACCENT, "o"),
        Entry("replication, together", ALARM, "o"),
    ]
    figure, (axes,) = new_figure(1, entries, width=WIDTH, height=1 + 0.17 * max(len(rows), 4))
    for place, (_, effect, se, colour) in enumerate(rows):
        axes.plot([effect - 1.96 * se, effect + 1.96 * se], [place] * 2, color=colour, linewidth=1)
        axes.plot([effect], [place], "o", color=colour, markersize=3.5)
    axes.axvline(0, color="#606060", linewidth=0.7)
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
    axes.set(ylim=(max(len(rows), 1) - 0.5, -0.5))
    axes.set_xlabel("effect of one standard deviation of the direction, with 95 % interval")
    return figure


def in_genome_order(table: pd.DataFrame, contigs: pd.Series) -> pd.DataFrame:
    """The sets by place: in the order of `contigs` and by the start of the first set.

    Those on several contigs come last, and those on contigs without sites are left out.
    """
    names = dict.fromkeys(canonical_contig(name) for name in contigs.tolist())
    number = {name: k for k, name in enumerate([*names, SEVERAL])}
    chrom = table.chrom.map(lambda name: SEVERAL if name == "NA" else canonical_contig(name))
    place = chrom.map(number)
    found = table.assign(chrom=chrom, place=place)[place.notna()]
    return found.sort_values(["place", "start", "end"], kind="stable").reset_index(drop=True)
