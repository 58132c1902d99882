"""Figures of the distances, and of the effect of alpha on the geodesics."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...cohort.samples import UNKNOWN
from ...distance.landmarks import AmongLandmarks
from ...distance.matrix import Distances
from ..outcome import Outcome
from ..words import describe_way
from .style import ACCENT, ALARM, INK, MARKERS, PALETTE, Colouring, new_figure, shorten_label

#: Most rows of the heatmap; in larger matrices each cell is the mean over several samples.
HEATMAP_CELLS = 600
HISTOGRAM_BARS = 60
#: Share of the pairs at either end that may be outside the range of the scale.
OUTSIDE = 5e-4
#: Smaller groups (as a share of the heatmap) are not named beside it.
SMALLEST_NAMED = 0.035

UNITS = {
    "euclidean": "Euclidean distance",
    "manhattan": "Manhattan distance (alleles)",
    "normalized": "distance of normalised genotypes",
    "ibs": "IBS distance (1 - share identical)",
}


def draw_distances(
    distances: Distances | AmongLandmarks,
    cohorts: pd.Series,
    values: pd.Series,
    colouring: Colouring,
) -> Figure:
    """Heatmap of all distances, ordered by label and cohort, and histograms.

    Parameters
    ----------
    cohorts, values : Series, (n,)
        Of the samples, in the order of the matrix.
    colouring : Colouring
        Colours of the labels that define the groups.
    """
    n = len(distances)
    label = values.where(~values.isin(UNKNOWN), "not known")
    group = label.astype("category").cat.codes.to_numpy()
    order = np.lexsort((np.arange(n), cohorts.astype("category").cat.codes.to_numpy(), group))
    probed = distances.probe()
    limits = limits_of(probed)
    edges = np.linspace(*limits, HISTOGRAM_BARS + 1)
    picture, within, between = summarize_pairs(distances, order, group, edges)

    figure, (left, right) = new_figure(2, height=3.3)
    image = left.imshow(
        picture,
        cmap="viridis_r",
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
        extent=(0, n, n, 0),
    )
    mark_groups(left, label.to_numpy()[order], colouring)
    title = colouring.title
    order_words = "cohort" if title == "cohort" else f"{shorten_label(title, 20)} and cohort"
    pairs = "Pairs of founders" if isinstance(distances, AmongLandmarks) else "All pairs"
    left.set_title(f"{pairs}, by {order_words}", pad=12)
    bar = figure.colorbar(image, ax=left, fraction=0.045, pad=0.02, extend="both")
    bar.set_label(UNITS[distances.metric])
    bar.outline.set_linewidth(0.4)

    for counts, colour, text, style in (
        (within, ALARM, "same", "--"),
        (between, ACCENT, "different", "-"),
    ):
        if counts.sum():
            share = 100 * counts / counts.sum()
            label = f"{text} {shorten_label(title, 14)}"
            right.stairs(share, edges, color=colour, linewidth=1.2, linestyle=style, label=label)
    right.set(xlabel=UNITS[distances.metric], ylabel="share of pairs (%)")
    right.set_title("Pairs of samples", pad=12)
    if within.sum() or between.sum():
        right.set_ylim(0, 1.3 * right.get_ylim()[1])
        right.legend(loc="upper left", borderaxespad=0.0)
    return figure


def limits_of(probed: np.ndarray) -> tuple[float, float]:
    """Range of colours and bins: nearly all pairs, so that a few relatives do not widen it."""
    if not probed.size:
        return 0.0, 1.0
    low, high = np.quantile(probed, [OUTSIDE, 1 - OUTSIDE])
    room = 0.05 * (high - low) or 0.5
    return max(0.0, float(low) - room), float(high) + room


def summarize_pairs(distances, order, group, edges):
    """In one pass: cells of the heatmap, histograms of pairs within and between groups."""
    from ...distance.pair_summary_cpu import add_rows  # imports numba

    n = len(distances)
    cells = min(n, HEATMAP_CELLS)
    cell = np.empty(n, np.int64)
    cell[order] = np.arange(n) * cells // n
    total, count = np.zeros((cells, cells)), np.zeros((cells, cells))
    within, between = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    group = np.array(group, np.int64)  # numba compiles anew for read-only arrays
    for which, block in distances.blocks():
        values = np.ascontiguousarray(block, np.float64)
        add_rows(values, int(which[0]), cell, group, edges, total, count, within, between)
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, total / np.maximum(count, 1), np.nan), within, between


def mark_groups(axes, ordered: np.ndarray, colouring: Colouring) -> None:
    """Draw names and colours of the groups along the left and upper edge of the heatmap."""
    n = len(ordered)
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if n else np.array([], int)
    ends = np.r_[starts[1:], n]
    strip = 0.025 * n
    ticks, names = [], []
    for first, last in zip(starts, ends, strict=True):
        name = str(ordered[first])
        colour = colouring.colours(pd.Series([name]))[0]
        box = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.3, "clip_on": False}
        axes.add_patch(Rectangle((-strip * 1.3, first), strip, last - first, **box))
        axes.add_patch(Rectangle((first, -strip * 1.3), last - first, strip, **box))
        if last - first >= SMALLEST_NAMED * n:
            ticks.append((first + last) / 2)
            names.append(shorten_label(name, 16))
    axes.set_yticks(ticks, names)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, pad=8)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_alpha(outcome: Outcome) -> Figure:
    """What held-out sites say of each way, and the share of pairs that geodesics make indirect."""
    figure, (evidence, share) = new_figure(2, width=7.6)
    draw_evidence(evidence, outcome.choice)
    for index, space in enumerate(outcome.spaces):
        colour, marker = PALETTE[index], MARKERS[index]
        found = [outcome.geodesics[space, alpha] for alpha in outcome.alphas]
        for about in found:
            auto = about["alpha"] == "auto"
            style = {
                "color": colour,
                "marker": marker,
                "markersize": 6.5,
                "markerfacecolor": colour if auto else "none",
                "linestyle": "none",
            }
            name = f"{space}: auto, {describe_way(about)}" if auto else f"{space}: listed α"
            share.plot(about["value"], 100 * about["indirect_share"], **style, label=name)
    share.set(xlabel="α", ylabel="pairs with an indirect geodesic (%)", ylim=(-3, 103))
    share.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    named = {}
    for panel in (evidence, share):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3)
    return figure


def draw_evidence(axes: mpl.axes.Axes, choice: dict[str, dict]) -> None:
    """Rank correlation with genetic distances at held-out sites, by way and components."""
    rows = [row for about in choice.values() for row in about["held_out"]]
    numbers = sorted({row["pcs"] for row in rows if row["pcs"] is not None})
    columns = [*numbers, *([None] if any(row["pcs"] is None for row in rows) else [])]
    names = dict.fromkeys((row["graph"], row["neighbors"], row["alpha"]) for row in rows)
    for index, (graph, neighbors, alpha) in enumerate(names):
        about = {"graph": {"kind": graph, "neighbors": neighbors}, "value": alpha}
        own = {
            row["pcs"]: row["rank_correlation"]
            for row in rows
            if (row["graph"], row["neighbors"], row["alpha"]) == (graph, neighbors, alpha)
        }
        style = {
            "color": PALETTE[-1 - index],
            "marker": ".",
            "markersize": 5,
            "linewidth": 0.9,
        }
        place = [columns.index(k) for k in numbers if k in own]
        axes.plot(place, [own[k] for k in numbers if k in own], **style, label=describe_way(about))
        if None in own:
            axes.plot(columns.index(None), own[None], **style)
    for about in choice.values():
        if about["rank_correlation"] is not None and about["pcs"] in columns:
            axes.plot(
                columns.index(about["pcs"]),
                about["rank_correlation"],
                marker="o",
                markersize=9,
                markerfacecolor="none",
                color=INK,
                linestyle="none",
                label="chosen",
            )
    if not rows:
        axes.text(0.5, 0.5, "not compared", transform=axes.transAxes, ha="center", va="center")
    axes.set_xticks(range(len(columns)), ["genotypes" if k is None else f"{k}" for k in columns])
    axes.set(xlabel="components", ylabel="rank correlation, held-out sites")
