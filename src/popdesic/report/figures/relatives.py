"""Figures of relatives, coloured by verdict: kinship, shared segments, families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.tables import read_table
from ...ibd.verdict import (
    CLOSER,
    DISTANT,
    PARENTS,
    SECOND_DEGREE,
    SIBLINGS_OF,
    THIRD_DEGREE,
    UNRELATED,
    UNTOLD,
    relation_by_pair,
)
from ...relatives.kinship import SAME
from ...relatives.resolution import DUPLICATE, FIRST, SECOND, THIRD
from .families import draw_families
from .style import ALARM, OTHER_COLOUR, PALETTE, Entry, new_figure, plain_ticks, save_figure, styled

#: Order and colour of the relations.
COLOURS = {
    SAME: ALARM,
    CLOSER: PALETTE[6],
    PARENTS: PALETTE[0],
    SIBLINGS_OF: PALETTE[2],
    SECOND_DEGREE: PALETTE[1],
    THIRD_DEGREE: PALETTE[4],
    DISTANT: PALETTE[5],
    UNRELATED: OTHER_COLOUR,
    UNTOLD: PALETTE[7],
}
#: Lower limits of kinship, and what pairs above them are.
LIMITS = (
    (THIRD, "third degree"),
    (SECOND, "second degree"),
    (FIRST, "first degree"),
    (DUPLICATE, "duplicates, identical twins"),
)
#: Bins of the histogram of totals, over their logarithms.
BINS = 40


def draw_relatives(
    names: Sequence[str], verdict: Path, files: Mapping[str, Path], out: Path
) -> None:
    """Draw figures by name (kinship, ibd, families), write {out}/NAME.svg and .png.

    Parameters
    ----------
    verdict : Path
        `compare/relatives.tsv`.
    files : dict
        ``king`` (`compare/kinship.tsv`) and ``segments`` (`ibd/pairs.tsv`), if a figure needs it.
    """
    table = read_table(verdict)
    relations = relation_by_pair(table)
    with styled():
        for name in names:
            if name == "families":
                figure = draw_families(table)
            elif name == "kinship":
                figure = draw_kinship(read_table(files["king"]), relations)
            else:
                figure = draw_sharing(read_table(files["segments"]), relations)
            save_figure(figure, out / name)


def _relations(one: pd.Series, other: pd.Series, relations: dict[frozenset[str], str]) -> list[str]:
    """The verdict on each pair; those that it does not list are distant, or as untold as others."""
    unlisted = UNTOLD if UNTOLD in relations.values() else DISTANT
    return [relations.get(frozenset(pair), unlisted) for pair in zip(one, other, strict=True)]


def draw_kinship(pairs: pd.DataFrame, relations: dict[frozenset[str], str]) -> Figure:
    """Kinship of each close pair against its share of opposite homozygotes."""
    pairs = pairs.assign(relation=_relations(pairs.sample_a, pairs.sample_b, relations))
    # Copies without a heterozygote have no kinship: the legend counts them, nothing is drawn.
    kinship = pd.to_numeric(pairs.kinship, errors="coerce").to_numpy(np.float64)
    share = (pairs.ibs0.astype(np.float64) / pairs.called.astype(np.float64)).to_numpy()
    counts = pairs.relation.value_counts()
    present = [name for name in COLOURS if counts.get(name, 0)]
    entries = [Entry("pairs")]
    entries += [Entry(f"{name} ({counts[name]})", COLOURS[name], "o") for name in present]
    figure, (axes,) = new_figure(1, entries)
    for limit, closer in LIMITS:
        axes.axhline(limit, color="#b0b0b0", linewidth=0.6, linestyle="--", zorder=0)
        axes.text(
            *(0.995, limit, closer),
            transform=axes.get_yaxis_transform(),
            fontsize=6,
            color="#606060",
            ha="right",
            va="bottom",
        )
    for name in reversed(present):
        rows = (pairs.relation == name).to_numpy()
        axes.scatter(
            share[rows],
            kinship[rows],
            s=14,
            c=COLOURS[name],
            linewidths=0.2,
            edgecolors="white",
            clip_on=False,  # parents and duplicates lie on the axis
            zorder=3,
        )
    if not len(pairs):
        axes.text(0.5, 0.5, "no close pair", transform=axes.transAxes, ha="center", color="#606060")
    axes.set_xlabel("share of opposite homozygotes (IBS0)")
    axes.set_ylabel("kinship (KING-robust)")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 0.55)
    return figure


def draw_sharing(pairs: pd.DataFrame, relations: dict[frozenset[str], str]) -> Figure:
    """Pairs by number of segments and total length, and a histogram of totals by relation."""
    pairs = pairs.assign(relation=_relations(pairs.sample1, pairs.sample2, relations))
    total = pairs.total_cM.astype(np.float64).to_numpy()
    number = pairs.segments.astype(np.float64).to_numpy()
    counts = pairs.relation.value_counts()
    names = [name for name in COLOURS if counts.get(name, 0)]
    entries = [Entry("pairs")]
    entries += [Entry(f"{name} ({counts[name]})", COLOURS[name], "o") for name in names]
    figure, (axes, bars) = new_figure(2, entries)
    for name in reversed(names):
        rows = (pairs.relation == name).to_numpy()
        axes.scatter(
            total[rows], number[rows], s=12, c=COLOURS[name], linewidths=0.2, edgecolors="white"
        )
    axes.set_ylabel("segments")
    axes.set_ylim(bottom=0)
    bars.set_ylabel("pairs")
    if len(pairs):
        edges = np.geomspace(max(total.min(), 1e-3) * 0.99, total.max() * 1.01, BINS + 1)
        parts = [total[(pairs.relation == name).to_numpy()] for name in names]
        bars.hist(parts, edges, stacked=True, color=[COLOURS[name] for name in names])
        for panel in (axes, bars):
            panel.set_xscale("log")
            plain_ticks(panel.xaxis)
        bars.set_yscale("symlog", linthresh=1)
        plain_ticks(bars.yaxis)
    else:
        axes.text(0.5, 0.5, "no shared segment", transform=axes.transAxes, ha="center")
    for panel in (axes, bars):
        panel.set_xlabel("total length of shared segments, cM")
    return figure
