"""Figures of segments of identity by descent: pairs by shared length and number, and families."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.tables import read_table
from ...ibd.degrees import DEGREES
from .families import draw_families
from .style import ALARM, OTHER_COLOUR, PALETTE, Entry, new_figure, plain_ticks, save_figure, styled

#: Colours of the degrees from 0 on.
COLOURS = (ALARM, *(PALETTE[k] for k in (0, 1, 2, 4, 5, 6, 7)), OTHER_COLOUR)
#: Bins of the histogram of totals, over their logarithms.
BINS = 40


def draw_ibd(pairs: Path, out: Path) -> list[str]:
    """Draw `ibd/pairs.tsv`, write {out}/NAME.svg and .png; return the names of the figures."""
    table, drawn = read_table(pairs), {"ibd": draw_sharing, "families": draw_families}
    with styled():
        for name, draw in drawn.items():
            save_figure(draw(table), out / name)
    return list(drawn)


def draw_sharing(pairs: pd.DataFrame) -> Figure:
    """Pairs by number of segments and total length, and a histogram of totals by degree."""
    total = pairs.total_cM.astype(np.float64).to_numpy()
    number = pairs.segments.astype(np.float64).to_numpy()
    counts = pairs.degree.value_counts()
    names = [name for name in DEGREES if counts.get(name, 0)]
    colours = dict(zip(DEGREES, COLOURS, strict=True))
    entries = [Entry("degree")]
    entries += [Entry(f"{name} ({counts[name]})", colours[name], "o") for name in names]
    figure, (axes, bars) = new_figure(2, entries)
    for name in reversed(names):
        rows = (pairs.degree == name).to_numpy()
        axes.scatter(
            total[rows], number[rows], s=12, c=colours[name], linewidths=0.2, edgecolors="white"
        )
    axes.set_ylabel("segments")
    axes.set_ylim(bottom=0)
    bars.set_ylabel("pairs")
    if len(pairs):
        edges = np.geomspace(max(total.min(), 1e-3) * 0.99, total.max() * 1.01, BINS + 1)
        parts = [total[(pairs.degree == name).to_numpy()] for name in names]
        bars.hist(parts, edges, stacked=True, color=[colours[name] for name in names])
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
