"""Figure of the haplotype statistics of populations along the genome."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from ...core.tables import read_table
from .along_genome import GenomeAxis, empty_figure, number_columns
from .style import RASTER_POINTS, new_figure, shorten_label

#: Height of a panel, in inches.
PANEL = 1.4
#: Most populations drawn, the first ones; the table has all.
MOST_DRAWN = 8


def draw_sweeps(path: Path) -> Figure:
    """Share of sites with an extreme iHS, and H12, of each window and population."""
    table = read_table(path)
    if not len(table):
        return empty_figure("No contig has enough sites for a window.")
    names = list(dict.fromkeys(table.population))[:MOST_DRAWN]
    figure, panels = new_figure(2, n_rows=len(names), height=PANEL * len(names) + 0.4)
    for row, name in enumerate(names):
        windows = table[table.population == name].reset_index(drop=True)
        genome = GenomeAxis(windows)
        look = {"s": 4, "linewidths": 0, "rasterized": len(windows) > RASTER_POINTS}
        pair = panels[2 * row : 2 * row + 2]
        for axes, values in zip(pair, number_columns(windows, "extreme_ihs", "h12"), strict=True):
            axes.scatter(genome.middle, values, c=genome.colours, **look)
            axes.set_ylim(bottom=0)
            genome.label(axes)
            axes.set_title(shorten_label(str(name), 20))
        pair[0].set_ylabel("share with |iHS| > 2")
        pair[1].set_ylabel("H12")
    return figure
