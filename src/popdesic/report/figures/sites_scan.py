"""Figures of the scan of single sites: p along the genome, and quantiles of p."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...epistasis.single_sites import genomic_control
from ..registry import site_scan_figures
from .style import (
    ACCENT,
    ALARM,
    MISSING_COLOUR,
    RASTER_POINTS,
    WIDTH,
    Entry,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)

#: Family-wise error rate of the line across both figures.
LEVEL = 0.05
#: Contigs narrower than this share of the figure are not named.
SMALLEST_NAMED = 0.035
#: Smallest p that is drawn; smaller ones are drawn there.
SMALLEST_P = 1e-300
#: Quantiles that a plot shows: all of the smallest p, then fewer and fewer.
MOST_QUANTILES = 4000


def draw_sites(path: Path, out: Path, phenotype: str = "") -> list[str]:
    """Draw epistasis/sites.tsv as {out}/manhattan and {out}/qq_sites (.svg, .png).

    `phenotype`: in the names of files, if there are several phenotypes.
    """
    table = pd.read_csv(
        path, sep="\t", usecols=["chrom", "pos", "chi2", "p"], dtype={"chrom": str}, na_values="NA"
    )
    with styled():
        drawn = [figure.name for figure in site_scan_figures([2], phenotype)]
        for name, figure in zip(drawn, (draw_manhattan(table), draw_quantiles(table)), strict=True):
            save_figure(figure, out / name)
    return drawn


def logs_of(p: np.ndarray) -> np.ndarray:
    """-log10 of p, NaN where there was no test."""
    return -np.log10(np.maximum(p, SMALLEST_P))


def draw_manhattan(
    table: pd.DataFrame, what: str = "p of the allele count", places: str = "sites"
) -> Figure:
    """-log10 p by place; `table` is in genome order. `what` and `places` name the axes."""
    chrom, heights = table.chrom.to_numpy(), logs_of(table.p.to_numpy(float))
    bounds = np.flatnonzero(np.r_[True, chrom[1:] != chrom[:-1], True])
    number = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    limit = -np.log10(LEVEL / max(int(table.p.notna().sum()), 1))
    colours = np.where(heights > limit, ALARM, np.where(number % 2, "#8fa8c4", ACCENT))
    figure, (axes,) = new_figure(1, width=WIDTH)
    axes.scatter(
        np.arange(len(table)),
        heights,
        s=5,
        c=list(colours),
        linewidths=0,
        rasterized=len(table) > RASTER_POINTS,
    )
    axes.axhline(limit, color=MISSING_COLOUR, linestyle="--", linewidth=0.9)
    shown = [
        ((left + right - 1) / 2, shorten_label(str(chrom[left]).removeprefix("chr"), 6))
        for left, right in itertools.pairwise(bounds)
        if right - left >= SMALLEST_NAMED * len(table)
    ]
    axes.set_xticks([place for place, _ in shown], [text for _, text in shown])
    axes.tick_params(axis="x", length=0)
    axes.set(xlim=(-0.5, len(table) - 0.5), ylim=(0, None), ylabel=f"−log10 {what}")
    axes.set_xlabel(f"contig, {places} in order")
    return figure


def draw_quantiles(table: pd.DataFrame, tested: str = "sites") -> Figure:
    """Observed against expected -log10 p, with a 95 % band of independent tests.

    `tested`: what a point is, in the legend.
    """
    from scipy.special import betaincinv

    p = np.sort(table.p.dropna().to_numpy(float))
    n = len(p)
    ranks = np.unique(np.geomspace(1, max(n, 1), MOST_QUANTILES).astype(int))[: max(n, 1)]
    expected = -np.log10((ranks - 0.5) / max(n, 1))
    low, high = (-np.log10(betaincinv(ranks, max(n, 1) - ranks + 1, q)) for q in (0.975, 0.025))
    lambda_gc = genomic_control(table.chi2.to_numpy(float))
    entries = [Entry(f"λ = {lambda_gc:.3f}"), Entry(tested, ACCENT, "o")]
    entries.append(Entry("95 % of independent tests", MISSING_COLOUR))
    figure, (axes,) = new_figure(1, entries, width=0.62 * WIDTH)
    axes.fill_between(expected, low, high, color=MISSING_COLOUR, linewidth=0)
    axes.plot([0, expected.max()], [0, expected.max()], color="#606060", linewidth=0.7)
    if n:
        axes.scatter(expected, logs_of(p[ranks - 1]), s=7, c=ACCENT, linewidths=0)
    axes.set(xlim=(0, None), ylim=(0, None), xlabel="expected −log10 p", ylabel="observed −log10 p")
    return figure
