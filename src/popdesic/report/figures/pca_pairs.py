"""All pairs of the significant principal components, as a grid with one legend."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..words import percent
from .style import INK, RASTER_POINTS, WIDTH, Colouring, add_legend, draw_points, new_figure

#: Components of the grid: as many as the test lets stand, within these limits.
LEAST, MOST = 2, 6
#: From so many components on, the legend has room in the empty corner of the grid.
ROOMY = 4
#: Width of the legend beside a smaller grid, and of the largest panel (inches).
BESIDE, LARGEST = 1.7, 1.9
#: Bars of a histogram on the diagonal.
BARS = 30


def draw_component_pairs(
    table: pd.DataFrame,
    variance: list[float],
    significant: int,
    values: pd.Series,
    colouring: Colouring,
) -> Figure:
    """Component i against j below the diagonal, and each label's distribution on it.

    Parameters
    ----------
    table : DataFrame
        `cohort` and coordinates PC1, PC2, …
    variance : list of float
        Share of the variance explained by each component, 0 to 1.
    significant : int
        Significant components of the PCA.
    values : Series
        Values that colour the points.
    """
    there = [name for name in table if name.startswith("PC") and name[2:].isdigit()]
    k = min(len(there), max(LEAST, min(MOST, significant)))
    entries = colouring.entries(values, table.cohort)
    beside = k < ROOMY
    cell = min(LARGEST, (WIDTH - BESIDE * beside) / k)
    size = {"width": cell * k + BESIDE * beside, "height": cell * k + 0.15}
    figure, panels = new_figure(k, entries if beside else (), n_rows=k, **size)
    if not beside:
        add_legend(figure, entries, "upper right")
    scores = [table[f"PC{i + 1}"].to_numpy(np.float64) for i in range(k)]
    shrink = min(1.0, 2.0 / k)
    for at, axes in enumerate(panels):
        row, column = divmod(at, k)
        if column > row:
            axes.set_axis_off()
            continue
        if column == row:
            _draw_shares(axes, scores[row], values, colouring)
            title = f"PC{row + 1}"
            title += f" ({percent(variance[row])})" if row < len(variance) else ""
            axes.set_title(title + ("" if row < significant else "\nno more than chance"))
        else:
            points = draw_points(axes, scores[column], scores[row], values, table.cohort, colouring)
            for drawn in points:
                drawn.set_sizes(drawn.get_sizes() * shrink)
                drawn.set_rasterized(len(table) * k > RASTER_POINTS)
            axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.tick_params(labelsize=6.5)
        if row < k - 1:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel(f"PC{column + 1}")
        if column:
            axes.tick_params(labelleft=False)
        elif row:
            axes.set_ylabel(f"PC{row + 1}")
    return figure


def _draw_shares(
    axes: mpl.axes.Axes, scores: np.ndarray, values: pd.Series, colouring: Colouring
) -> None:
    """Share of each label's samples in bins of a component; of all samples on a scale."""
    low, high = float(scores.min()), float(scores.max())
    edges = np.linspace(low, high if high > low else low + 1.0, BARS + 1)
    names = values.to_numpy()
    groups = [(names == label, label) for label in colouring.labels]
    if not groups:
        groups = [(np.ones(len(scores), bool), "")]
    for chosen, label in groups:
        counts = np.histogram(scores[chosen], edges)[0]
        if counts.sum():
            colour = colouring.colours(pd.Series([label]))[0] if label else INK
            axes.stairs(100 * counts / counts.sum(), edges, color=colour, linewidth=0.8)
    axes.set(ylim=(0, None), yticks=[])
    axes.spines.left.set_visible(False)
