"""Figure of ancestry components."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.files import read_json
from ...core.tables import read_table
from .along_genome import empty_figure, number_columns
from .style import ACCENT, ALARM, PALETTE, RASTER_POINTS, Entry, new_figure, shorten_label

#: Most populations named below the bars.
MOST_NAMED = 40


def draw_ancestry(folder: Path) -> Figure:
    """Bars of all samples, the same samples on the PCA, and the cross-validation."""
    about = read_json(folder / "ancestry.json")
    table = read_table(folder / "ancestry.tsv")
    if "reason" in about or not about["k"]:
        return empty_figure("There are no ancestry proportions.")
    names = [f"K{j + 1}" for j in range(about["k"])]
    table = table[table.estimate != "NA"]
    proportions = np.column_stack(number_columns(table, *names))
    order = order_of_bars(table.population.to_numpy(), proportions)
    colours = [PALETTE[j % len(PALETTE)] for j in range(about["k"])]
    entries = [Entry("component")]
    entries += [Entry(name, colour) for name, colour in zip(names, colours, strict=True)]
    validation = read_table(folder / "ancestry_validation.tsv")
    figure, (bars, *others) = new_figure(3 if len(validation) else 2, entries, height=3.4)
    _draw_bars(bars, table.population.to_numpy()[order], proportions[order], colours)
    _draw_places(
        others[0], folder.parent / "embedding/coordinates/pca.tsv", table, proportions, colours
    )
    if len(validation):
        k, error, spread = number_columns(validation, "k", "error", "standard_deviation")
        others[1].errorbar(k, error, yerr=spread, color=ACCENT, marker="o", markersize=3)
        chosen = (validation.chosen == "yes").to_numpy()
        others[1].plot(k[chosen], error[chosen], "o", color=ALARM, markersize=5)
        others[1].set_xlabel("number of components K")
        others[1].set_ylabel("error of hidden genotypes")
        others[1].xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
    return figure


def order_of_bars(populations: np.ndarray, proportions: np.ndarray) -> np.ndarray:
    """Rows by population, within it by falling proportion of its largest component."""
    order = []
    for name in sorted(set(populations.tolist())):
        rows = np.flatnonzero(populations == name)
        largest = int(proportions[rows].mean(axis=0).argmax())
        order.append(rows[np.argsort(-proportions[rows, largest], kind="stable")])
    return np.concatenate(order) if order else np.empty(0, np.int64)


def _draw_bars(
    axes: mpl.axes.Axes, populations: np.ndarray, proportions: np.ndarray, colours: list[str]
) -> None:
    """Stacked bars from left to right, one sample a row, as one image."""
    ends = np.round(np.cumsum(proportions, axis=1) * 400).astype(int)
    image = np.zeros((len(proportions), 400, 3))
    for j in range(len(colours) - 1, -1, -1):
        image[np.arange(400) < ends[:, j, None]] = mpl.colors.to_rgb(colours[j])
    n = len(proportions)
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, 1, n - 0.5, -0.5))
    edges = np.flatnonzero(populations[1:] != populations[:-1]) + 0.5
    axes.hlines(edges, 0, 1, color="white", linewidth=0.6)
    bounds = np.concatenate([[-0.5], edges, [n - 0.5]])
    labels = list(dict.fromkeys(populations.tolist()))
    if len(labels) <= MOST_NAMED:
        axes.set_yticks(
            (bounds[1:] + bounds[:-1]) / 2, [shorten_label(name, 16) for name in labels]
        )
    else:
        axes.set_yticks([])
    axes.tick_params(length=0, axis="y")
    axes.set_xlabel("proportion")


def _draw_places(
    axes: mpl.axes.Axes,
    path: Path,
    table: pd.DataFrame,
    proportions: np.ndarray,
    colours: list[str],
) -> None:
    """Samples on the first two axes of the PCA, in the colour of their largest component."""
    places = read_table(path).set_index("sample").reindex(table["sample"])
    shown = [name for name in ("PC1", "PC2") if name in places]
    points = [*number_columns(places, *shown), *[np.zeros(len(table))] * (2 - len(shown))]
    largest = np.array(colours, dtype=object)[proportions.argmax(axis=1)]
    raster = len(table) > RASTER_POINTS
    axes.scatter(*points, c=list(largest), s=6, linewidths=0, alpha=0.7, rasterized=raster)
    axes.set_xlabel("PC1")
    axes.set_ylabel("PC2")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(mpl.ticker.MaxNLocator(4))
