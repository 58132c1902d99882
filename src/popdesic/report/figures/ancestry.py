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
#: Pixels between the bars of two K, which are 100 wide.
GAP = 12


def draw_ancestry(folder: Path) -> Figure:
    """Bars of all samples, the same samples on the PCA, the cross-validation, and bars over K."""
    about = read_json(folder / "ancestry.json")
    table = read_table(folder / "ancestry.tsv")
    if "reason" in about or not about["k"]:
        return empty_figure("There are no ancestry proportions.")
    table = table[table.estimate != "NA"]
    proportions = np.column_stack(number_columns(table, *_components(about["k"])))
    populations = table.population.to_numpy()
    order = order_of_bars(populations, proportions)
    validation = read_table(folder / "ancestry_validation.tsv")
    over_k = read_table(folder / "ancestry_over_k.tsv")
    over_k = over_k[over_k.k != "1"]
    largest = max([about["k"], *over_k.k.astype(int)])
    colours = [PALETTE[j % len(PALETTE)] for j in range(largest)]
    entries = [Entry("component")]
    entries += [Entry(n, colour) for n, colour in zip(_components(largest), colours, strict=True)]
    panels = 2 + bool(len(validation)) + bool(len(over_k))
    figure, (bars, *others) = new_figure(panels, entries, height=3.4)
    _draw_bars(bars, populations[order], proportions[order], colours)
    _draw_places(
        others[0], folder.parent / "embedding/coordinates/pca.tsv", table, proportions, colours
    )
    if len(over_k):
        _draw_over_k(others[1], over_k, table.iloc[order], colours, about["k"])
    if len(validation):
        k, error, spread = number_columns(validation, "k", "error", "standard_deviation")
        others[-1].errorbar(k, error, yerr=spread, color=ACCENT, marker="o", markersize=3)
        chosen = (validation.chosen == "yes").to_numpy()
        others[-1].plot(k[chosen], error[chosen], "o", color=ALARM, markersize=5)
        others[-1].set_xlabel("number of components K")
        others[-1].set_ylabel("error of hidden genotypes")
        others[-1].xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
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
    image = _bars(proportions, colours, 400)
    n = len(proportions)
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, 1, n - 0.5, -0.5))
    _name_populations(axes, populations, 1)
    axes.set_xlabel("proportion")


def _components(k: int) -> list[str]:
    return [f"K{j + 1}" for j in range(k)]


def _bars(proportions: np.ndarray, colours: list[str], width: int) -> np.ndarray:
    """Pixels of stacked bars from left to right, one row for each sample: (n, width, 3)."""
    ends = np.round(np.cumsum(np.nan_to_num(proportions), axis=1) * width).astype(int)
    image = np.ones((len(proportions), width, 3))
    for j in range(proportions.shape[1] - 1, -1, -1):
        image[np.arange(width) < ends[:, j, None]] = mpl.colors.to_rgb(colours[j])
    return image


def _name_populations(axes: mpl.axes.Axes, populations: np.ndarray, width: float) -> None:
    """White lines between populations of consecutive rows, and their names if they are few."""
    edges = np.flatnonzero(populations[1:] != populations[:-1]) + 0.5
    axes.hlines(edges, 0, width, color="white", linewidth=0.6)
    bounds = np.concatenate([[-0.5], edges, [len(populations) - 0.5]])
    labels = list(dict.fromkeys(populations.tolist()))
    axes.tick_params(length=0, axis="y")
    if len(labels) > MOST_NAMED:
        axes.set_yticks([])
        return
    axes.set_yticks((bounds[1:] + bounds[:-1]) / 2, [shorten_label(name, 16) for name in labels])


def _draw_over_k(
    axes: mpl.axes.Axes, over_k: pd.DataFrame, table: pd.DataFrame, colours: list[str], chosen: int
) -> None:
    """Bars of the fitted founders for each K side by side, in the order of `table`."""
    fitted = table[table.estimate == "fitted"]
    each = {int(k): part.set_index("sample") for k, part in over_k.groupby("k", sort=False)}
    strips: list[np.ndarray] = []
    for part in each.values():
        found = number_columns(part.reindex(fitted["sample"]), *_components(len(colours)))
        strips += [_bars(np.column_stack(found), colours, 100)]
        strips += [np.ones((len(fitted), GAP, 3))]
    image = np.concatenate(strips[:-1], axis=1)
    n, width = image.shape[:2]
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, width, n - 0.5, -0.5))
    _name_populations(axes, fitted.population.to_numpy(), width)
    axes.set_xticks([50 + (100 + GAP) * i for i in range(len(each))], [str(k) for k in each])
    for k, label in zip(each, axes.get_xticklabels(), strict=True):
        if k == chosen:
            label.set(color=ALARM, fontweight="bold")
    axes.tick_params(length=0)
    axes.set_xlabel("founders, by K")


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
    for axis, most in ((axes.xaxis, 2), (axes.yaxis, 4)):
        axis.set_major_locator(mpl.ticker.MaxNLocator(most))
