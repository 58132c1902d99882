"""Maps of the samples, and the variance explained by their axes."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...components.tables import FEWEST, FEWEST_COMPONENTS
from ..outcome import Outcome
from ..words import describe_way, percent
from .labels import name_groups
from .style import (
    ACCENT,
    ALARM,
    MARKERS,
    PALETTE,
    WIDTH,
    Colouring,
    add_scale,
    draw_marks,
    draw_points,
    new_figure,
)

#: Most components in the scree plot.
SCREE_COMPONENTS = 20
#: Most maps side by side.
MAPS_IN_A_ROW = 3


def draw_components(
    table: pd.DataFrame, stem: str, variance: list[float], values: pd.Series, colouring: Colouring
) -> Figure:
    """Component 2 against 1, and 4 against 3 if there are as many.

    Parameters
    ----------
    table : DataFrame
        `cohort` and coordinates `{stem}1`, `{stem}2`, …
    stem : str
        ``PC`` or ``PCo``.
    variance : list of float
        Share of the variance explained by each component, 0 to 1.
    values : Series
        Values that colour the points.
    """
    pairs = [(a, b) for a, b in ((1, 2), (3, 4)) if f"{stem}{b}" in table] or [(1, 1)]
    entries = colouring.entries(values, table.cohort)
    figure, panels = new_figure(len(pairs), entries)
    for place, (axes, (a, b)) in enumerate(zip(panels, pairs, strict=True)):
        x = table[f"{stem}{a}"].to_numpy(np.float64)
        y = table[f"{stem}{b}"].to_numpy(np.float64) if b != a else np.zeros(len(x))
        draw_points(axes, x, y, values, table.cohort, colouring)
        axes.set_xlabel(_axis(stem, a, variance))
        axes.set_ylabel(_axis(stem, b, variance) if b != a else "")
        _few_ticks(axes)
        if not place and b != a:
            name_groups(axes, x, y, values, colouring)
    add_scale(figure, panels, colouring)
    return figure


def draw_beside(
    pca: pd.DataFrame,
    drawn: pd.DataFrame,
    stem: str,
    variance: list[float],
    values: pd.Series,
    colouring: Colouring,
    title: str,
) -> Figure:
    """A map of geodesics with axes `{stem}1`, `{stem}2`, beside the PCA of the same samples."""
    figure, (left, right) = new_figure(2, colouring.entries(values, drawn.cohort))
    second = "PC2" if "PC2" in pca else "PC1"
    for axes, table, x, y in ((left, pca, "PC1", second), (right, drawn, f"{stem}1", f"{stem}2")):
        place = table[x].to_numpy(), table[y].to_numpy()
        if np.isnan(place[0]).all():
            _say_undrawn(axes)
            continue
        draw_points(axes, *place, values, table.cohort, colouring)
        name_groups(axes, *place, values, colouring)
    left.set(title="PCA", xlabel=_axis("PC", 1, variance), ylabel=_axis("PC", 2, variance))
    _few_ticks(left)
    words = "t-SNE" if stem == "tSNE" else stem
    right.set(title=title, xlabel=f"{words} 1 (no unit)", ylabel=f"{words} 2 (no unit)")
    right.set(xticks=[], yticks=[])
    add_scale(figure, (left, right), colouring)
    return figure


def draw_instability(outcome: Outcome, colouring: Colouring) -> Figure:
    """The UMAP of each geodesic, once, with samples coloured by instability (0 to 1)."""
    shown = [key for key in outcome.maps() if not outcome.is_repeated(*key)]
    # one row per space if all its maps fit
    columns = max(sum(space == own for own, _ in shown) for space, _ in shown)
    columns = min(columns, MAPS_IN_A_ROW)
    rows = -(-len(shown) // columns)
    figure, panels = new_figure(
        columns, n_rows=rows, width=WIDTH * (columns + 0.5) / 3.5, height=(WIDTH / 3 + 0.2) * rows
    )
    scale = Colouring(pd.Series([str(k / 100) for k in range(101)]), [""], [""], "instability")
    for axes, (space, alpha) in zip(panels, shown, strict=False):
        table = outcome.embedding(f"umap.{space}.alpha{alpha}")
        found = outcome.instability[f"umap.{space}.alpha{alpha}"].reindex(table["sample"])
        x, y = table.UMAP1.to_numpy(np.float64), table.UMAP2.to_numpy(np.float64)
        if np.isnan(x).all():
            _say_undrawn(axes)
            continue
        markers = colouring.markers(table[_shaped_by(table, colouring)], table.cohort)
        draw_marks(axes, x, y, scale.colours(found.astype(str)), markers)
        way = describe_way(outcome.geodesics[space, alpha])
        axes.set_title(f"{space}, {way}\nmean {found.mean():.2f}")
        axes.set(xticks=[], yticks=[])
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    add_scale(figure, panels, scale, "share of 15 nearest neighbours replaced")
    return figure


def _say_undrawn(axes: mpl.axes.Axes) -> None:
    """Say in place of a map why it is not drawn."""
    text = f"not drawn: it needs\nat least {FEWEST} samples"
    text += f"\nand {FEWEST_COMPONENTS} components"
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def _shaped_by(table: pd.DataFrame, colouring: Colouring) -> str:
    return colouring.title if colouring.title in table else "cohort"


def draw_scree(outcome: Outcome) -> Figure:
    """Variance explained by each component of the PCA and of each PCoA."""
    figure, (left, right) = new_figure(2)
    shares = 100 * np.array(outcome.axes["scree"][:SCREE_COMPONENTS])
    numbers = np.arange(1, len(shares) + 1)
    significant = numbers <= outcome.axes["significant"]
    fills = np.where(significant, ACCENT, "white").tolist()
    left.bar(numbers, shares, color=fills, edgecolor=ACCENT, linewidth=0.7, width=0.75)
    limits = np.array(outcome.axes["threshold"][: len(shares)], np.float64)
    left.plot(numbers[: len(limits)], 100 * limits, color=ALARM, linewidth=0.9, linestyle="--")
    named = 4 if len(shares) <= 10 else 2  # narrow bars have no room for all
    for number, share in zip(numbers[:named], shares[:named], strict=True):
        left.annotate(f"{share:.1f}", (number, share), ha="center", va="bottom", fontsize=7)
    title = f"PCA of the genotypes, {outcome.axes['significant']} significant"
    left.set(title=title, xlabel="component", ylabel="variance explained (%)")
    for index, (space, alpha) in enumerate(outcome.maps()):
        about = outcome.geodesics[space, alpha]
        if outcome.is_repeated(space, alpha):
            continue
        shares = 100 * np.array(outcome.variance[f"pcoa.{space}.alpha{alpha}"][:SCREE_COMPONENTS])
        right.plot(
            np.arange(1, len(shares) + 1),
            shares,
            color=PALETTE[index % len(PALETTE)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=4,
            linewidth=0.9,
            label=f"{space}, {describe_way(about)}",
        )
    right.set(title="PCoA of the geodesics", xlabel="coordinate", ylabel="variance explained (%)")
    right.set_ylim(bottom=0)
    right.legend(loc="upper right")
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def _axis(stem: str, number: int, variance: list[float]) -> str:
    share = f" ({percent(variance[number - 1])})" if number <= len(variance) else ""
    return f"{stem}{number}{share}"


def _few_ticks(axes: mpl.axes.Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.ticklabel_format(scilimits=(-3, 4), useOffset=False)
