"""Figures of the statistics of populations along the genome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.files import read_json
from ...core.tables import read_table
from .style import ACCENT, ALARM, INK, RASTER_POINTS, Entry, new_figure, shorten_label

#: Colours of two neighbouring contigs.
CONTIG_COLOURS = (ACCENT, "#7fb2d6")
#: Most contigs named on the axis.
MOST_NAMED = 24


def number_columns(table: pd.DataFrame, *names: str) -> list[np.ndarray]:
    """Columns of a table as float64; NaN where there is no number."""
    return [pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64) for name in names]


def empty_figure(text: str) -> Figure:
    """A figure that says why there is nothing to see."""
    figure, (axes,) = new_figure(1, height=1.2)
    axes.axis("off")
    axes.text(0.5, 0.5, text, ha="center", va="center")
    return figure


class GenomeAxis:
    """Contigs one after the other.

    Attributes
    ----------
    middle : float64 array, (n_rows,)
        Place of each row of a table with `chrom`, `start`, `end`, in order.
    colours : list of str
        Of each row, alternating by contig.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        start, end = number_columns(table, "start", "end")
        chrom = table.chrom.to_numpy()
        offset, begin = np.zeros(len(table)), 0.0
        self.ticks: list[tuple[float, str]] = []
        shade = np.empty(len(table), dtype=object)
        for k, contig in enumerate(dict.fromkeys(chrom)):
            here = chrom == contig
            offset[here] = begin
            size = end[here].max()
            self.ticks.append((begin + size / 2, contig))
            shade[here] = CONTIG_COLOURS[k % 2]
            begin += size
        self.middle = offset + (start + end) / 2
        self.colours = list(shade)

    def label(self, axes: mpl.axes.Axes) -> None:
        """Name contigs on the x axis."""
        named = self.ticks[:: -(-len(self.ticks) // MOST_NAMED)]
        axes.set_xticks([x for x, _ in named], [shorten_label(name, 8) for _, name in named])
        axes.set_xlabel("chromosome")


def draw_tracks(folder: Path) -> Figure:
    """F_ST of each block over all pairs, and the highest one of a pair."""
    table = read_table(folder / "blocks.tsv")
    if not len(table) or "highest" not in table:
        return empty_figure("Differentiation along the genome needs two populations.")
    over_all, highest = number_columns(table, "fst", "highest")
    genome = GenomeAxis(table)
    figure, (axes,) = new_figure(1, [Entry("highest pair", ACCENT), Entry("all pairs", INK)])
    look = {"linewidths": 0, "rasterized": len(table) > RASTER_POINTS}
    axes.scatter(genome.middle, highest, s=7, c=genome.colours, **look)
    axes.scatter(genome.middle, over_all, s=4, c=INK, **look)
    for k in _highest(highest):
        text = (
            f"{shorten_label(table.population1[k], 12)} · {shorten_label(table.population2[k], 12)}"
        )
        place = {"xytext": (3, 2), "textcoords": "offset points"}
        axes.annotate(text, (genome.middle[k], highest[k]), fontsize=6, **place)
    genome.label(axes)
    axes.set_ylabel("Hudson's F_ST of a block")
    return figure


def _highest(values: np.ndarray) -> Iterator[int]:
    """Rows of the three highest known values."""
    known = np.flatnonzero(np.isfinite(values))
    yield from known[np.argsort(-values[known])][:3]


def draw_local_structure(folder: Path) -> Figure:
    """The two axes of the map of windows along the genome, outlying regions in colour."""
    about = read_json(folder / "local_pca.json")
    if "reason" in about:
        return empty_figure("Nothing can be said of local structure.")
    table = read_table(folder / "local_pca.tsv")
    genome = GenomeAxis(table)
    colours = [
        ALARM if mark == "yes" else colour
        for mark, colour in zip(table.outlier, genome.colours, strict=True)
    ]
    entries = [Entry("window", ACCENT), Entry("outlying region", ALARM)]
    figure, panels = new_figure(1, entries, n_rows=2, height=4)
    for axes, values, name in zip(
        panels, number_columns(table, "mds1", "mds2"), ("1", "2"), strict=True
    ):
        axes.scatter(genome.middle, values, s=6, c=colours, linewidths=0)
        genome.label(axes)
        axes.set_ylabel(f"axis {name} of windows")
    return figure
