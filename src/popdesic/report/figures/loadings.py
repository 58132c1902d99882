"""Squared loadings of the leading axes of the PCA along the genome."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...population.blocks import MANY_CONTIGS, block_starts
from .style import ACCENT, WIDTH, new_figure, shorten_label

#: Base pairs of one bar; the windows in which regions are sought are as wide.
BAR = 5_000_000
#: Colour of the bars of every other contig.
OTHER = "#8fa8c4"
#: Axes that are shown.
MOST_AXES = 4
#: Contigs narrower than this share of the figure are not named.
SMALLEST_NAMED = 0.035


def draw_loadings(path: Path) -> Figure:
    """One panel an axis: share of the squared loadings in each window, and of the sites.

    `path` is `embedding/loadings.tsv`.
    """
    names = list(pd.read_csv(path, sep="\t", nrows=0).columns)
    shown = [f"PC{k}" for k in range(1, MOST_AXES + 1) if f"PC{k}" in names]
    table = pd.read_csv(
        path,
        sep="\t",
        usecols=["chrom", "pos", *shown],
        dtype={"chrom": str},
        keep_default_na=False,
    )
    chrom = table.chrom.to_numpy()
    scaffolds = table.chrom.nunique() > MANY_CONTIGS
    first = block_starts(table, f"{BAR} bp")[:-1] if scaffolds else _windows(table)
    sites = np.diff(np.append(first, len(table))) / len(table)
    edges = np.arange(len(first) + 1) - 0.5
    contig = chrom[first]
    bounds = np.flatnonzero(np.r_[True, contig[1:] != contig[:-1], True])
    of_contig = np.searchsorted(bounds, np.arange(len(first)), "right")
    figure, panels = new_figure(1, n_rows=len(shown), width=WIDTH, height=1.05 * len(shown) + 0.55)
    for axes, axis in zip(panels, shown, strict=True):
        squared = table[axis].to_numpy(np.float64) ** 2
        share = np.add.reduceat(squared, first) / squared.sum()
        for turn, colour in ((1, ACCENT), (0, OTHER)):  # one outline for all bars of a colour
            there = np.where(of_contig % 2 == turn, 100 * share, 0.0)
            axes.stairs(there, edges, fill=True, color=colour, linewidth=0)
        axes.stairs(100 * sites, edges, baseline=None, color="#606060", linewidth=0.7)
        axes.set(xlim=(-0.5, len(first) - 0.5), ylim=(0, None), ylabel=f"{axis} (%)", xticks=[])
        axes.locator_params(axis="y", nbins=3)
    middles, texts = [], []
    for left, right in itertools.pairwise(bounds):
        if right - left >= SMALLEST_NAMED * len(first):
            middles.append((left + right - 1) / 2)
            texts.append(shorten_label(str(contig[left]).removeprefix("chr"), 6))
    panels[-1].set_xticks(middles, texts)
    panels[-1].tick_params(axis="x", length=0)
    short = "; short ones share a bar" if scaffolds else ""
    panels[-1].set_xlabel(f"contig, in windows of 5 Mb{short}")
    return figure


def _windows(table: pd.DataFrame) -> np.ndarray:
    """First site of each bar: sites are in genome order, and a contig or a window begins one."""
    window, chrom = table.pos.to_numpy(np.int64) // BAR, table.chrom.to_numpy()
    begins = np.r_[True, (chrom[1:] != chrom[:-1]) | (window[1:] != window[:-1])]
    return np.flatnonzero(begins)
