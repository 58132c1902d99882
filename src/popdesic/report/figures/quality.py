"""Figures of the filters, and of the quality of samples and sites."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...cohort.sample_checks import FILTERS as SAMPLE_FILTERS
from ..outcome import Outcome
from ..words import describe_filter, number
from .style import (
    ACCENT,
    ALARM,
    HEIGHT,
    PALETTE,
    WIDTH,
    Colouring,
    Entry,
    add_scale,
    count_axis,
    draw_points,
    new_figure,
    shorten_label,
)

#: Most contigs with a bar of their own; further contigs are usually fragments.
MAX_CONTIGS = 40
#: Most samples with their name beside the point.
MAX_NAMES = 8
#: Height of a name as a share of the axis.
NAME_ROW = 0.055
#: Fewest rows of a bar chart, so that two bars do not fill the figure.
LEAST_ROWS = 6
#: Bins of the frequency spectrum.
SPECTRUM_BARS = 25


def draw_filters(outcome: Outcome) -> Figure:
    """Sites from the founders' records to the panel, and samples kept and left out."""
    decoded = outcome.summary[outcome.summary.step == "records"].set_index("cohort")["count"]
    files = [(f"records of founder {name}", "file", decoded[name]) for name in outcome.founders]
    steps = files + [
        (describe_filter(step), "left" if step.leaves else "source", step.sites)
        for step in outcome.steps
        if step.leaves or step.what == "founder"
    ]
    longest = max(len(steps), len(outcome.cohorts))
    figure, (left, right) = new_figure(2, height=max(HEIGHT, 0.21 * longest + 0.9))
    rows = np.arange(len(steps))
    counts = [n for _, _, n in steps]
    colours = [{"file": "#dadada", "source": "#b5b5b5"}.get(kind, ACCENT) for _, kind, _ in steps]
    left.barh(rows, counts, color=colours, height=0.7)
    left.set_yticks(rows, [shorten_label(words, 44) for words, _, _ in steps])
    _label_bars(left, counts)
    left.set(title="Sites of the panel", xlabel="sites")

    passed = outcome.qc.keep == "yes"
    kept = [int((passed & (outcome.qc.cohort == cohort)).sum()) for cohort in outcome.cohorts]
    out = [int((~passed & (outcome.qc.cohort == cohort)).sum()) for cohort in outcome.cohorts]
    rows = np.arange(len(kept))
    right.barh(rows, kept, color=ACCENT, height=0.7)
    ends = np.array(kept)
    for reason, colour in zip(SAMPLE_FILTERS, (ALARM, *PALETTE[4:]), strict=False):
        took = outcome.qc.left_out == reason
        lost = [int((took & (outcome.qc.cohort == cohort)).sum()) for cohort in outcome.cohorts]
        if any(lost):
            right.barh(rows, lost, left=ends, color=colour, height=0.7, label=reason)
            ends = ends + lost
    if len(right.get_legend_handles_labels()[0]) > 1:  # a single reason needs no legend
        right.legend(title="left out by", loc="lower right", fontsize=6.5)
    right.set_yticks(rows, [shorten_label(cohort) for cohort in outcome.cohorts])
    totals = [k + o for k, o in zip(kept, out, strict=True)]
    texts = [number(k) + (f", {o} left out" if o else "") for k, o in zip(kept, out, strict=True)]
    _label_bars(right, totals, texts)
    right.set(title="Samples", xlabel="samples")
    for axes in (left, right):  # bars of equal height on both sides
        axes.set_ylim(max(longest, LEAST_ROWS) - 0.4, -0.6)
    return figure


def _label_bars(axes, lengths, texts=None) -> None:
    """Write the number at the end of each bar, with room for the text; first bar on top."""
    for row, length in enumerate(lengths):
        text = texts[row] if texts else number(length)
        axes.annotate(
            text,
            (length, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    longest = max((len(text) for text in texts), default=0) if texts else 8
    axes.set_xlim(0, max([*lengths, 1]) * (1.12 + 0.03 * longest))
    count_axis(axes.xaxis)
    axes.tick_params(axis="y", length=0)


def draw_samples(outcome: Outcome, values: pd.Series, colouring: Colouring, least: float) -> Figure:
    """Call rate against heterozygosity of every sample read; those left out are named.

    Parameters
    ----------
    values : Series
        Values that colour the samples of `outcome.qc`.
    least : float
        `qc.min_sample_call_rate`.
    """
    table = outcome.qc
    entries = colouring.entries(values, table.cohort)
    lost = table[table.keep == "no"]
    if len(lost):
        entries.append(Entry("quality control"))
        entries.append(Entry(f"left out ({len(lost)})", "black", "x"))
    figure, (axes,) = new_figure(1, entries, width=WIDTH * 0.8)
    draw_points(
        axes,
        table.heterozygosity.to_numpy(),
        100 * table.call_rate.to_numpy(),
        values,
        table.cohort,
        colouring,
    )
    axes.scatter(lost.heterozygosity, 100 * lost.call_rate, s=30, c="black", marker="x", zorder=3)
    axes.axhline(100 * least, color="#606060", linewidth=0.7, linestyle="--", zorder=0)
    axes.annotate(
        f"qc.min_sample_call_rate = {least:g}",
        (0.995, 100 * least),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=7,
        color="#404040",
    )
    lowest = float(np.nanmin([*table.call_rate, least]))
    bottom = 100 * lowest - 1.5 - 0.05 * (100 - 100 * lowest)
    named = lost if len(lost) <= MAX_NAMES else lost.iloc[:0]
    gap = NAME_ROW * (100 - bottom)
    axes.set_ylim(bottom - gap * len(named), 100.4)
    _name_points(axes, named, NAME_ROW * (100.4 - bottom + gap * len(named)))
    axes.set(
        xlabel="heterozygosity (share of called genotypes)", ylabel="call rate (% of the sites)"
    )
    add_scale(figure, (axes,), colouring)
    return figure


def _name_points(axes, table: pd.DataFrame, gap: float) -> None:
    """Write names beside their points, at least `gap` apart vertically."""
    low, high = axes.get_xlim()
    middle = (low + high) / 2
    taken = np.inf
    for row in table.sort_values("call_rate", ascending=False).itertuples():
        height = min(100 * row.call_rate, taken - gap)
        taken = height
        right = row.heterozygosity > middle
        axes.annotate(
            shorten_label(row.sample),
            (row.heterozygosity, 100 * row.call_rate),
            xytext=(row.heterozygosity + (-0.02 if right else 0.02) * (high - low), height),
            ha="right" if right else "left",
            va="center",
            fontsize=7,
        )


def draw_panel_sites(panel: pd.DataFrame, least: float) -> Figure:
    """Minor allele frequencies of the panel's sites, and number of sites by contig.

    Parameters
    ----------
    panel : DataFrame
        `chrom` and `af`, in genome order.
    least : float
        `panel.min_maf`.
    """
    figure, (left, right) = new_figure(2)
    maf = np.minimum(panel.af, 1 - panel.af)
    left.hist(
        maf,
        bins=np.linspace(0, 0.5, SPECTRUM_BARS + 1),
        color=ACCENT,
        edgecolor="white",
        linewidth=0.4,
    )
    if least > 0:
        left.axvline(least, color="#606060", linewidth=0.7, linestyle="--")
    left.set(
        title="Frequency spectrum", xlabel="minor allele frequency in the founders", ylabel="sites"
    )
    left.set_xlim(0, 0.5)
    counts = panel.chrom.value_counts().reindex(pd.unique(panel.chrom))
    shown = counts.iloc[:MAX_CONTIGS]
    rest = counts.iloc[MAX_CONTIGS:]
    names = [shorten_label(str(name), 12) for name in shown.index]
    heights = [int(n) for n in shown]
    if len(rest):
        names.append(f"{len(rest)} more")
        heights.append(int(rest.sum()))
    right.bar(np.arange(len(heights)), heights, color=ACCENT, width=0.75)
    upright = len(names) <= 12 and max(map(len, names), default=0) <= 5
    right.set_xticks(
        np.arange(len(names)),
        names,
        rotation=0 if upright else 90,
        fontsize=8 if len(names) <= 24 else 6,
    )
    right.set(title="Sites by contig", xlabel="contig", ylabel="sites")
    for axes in (left, right):
        count_axis(axes.yaxis)
    return figure
