"""Figures of the places: map, isolation by distance, barriers and corridors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Wedge
from matplotlib.ticker import LogLocator, NullFormatter

from ...cohort.samples import UNKNOWN, describe_samples
from ...core.files import read_json
from ...core.tables import read_table
from ...geography.coordinates import PLANE, SPHERE
from ...geography.places import EARTH_KM, find_places, project_places
from .communities import label_colouring
from .style import (
    ACCENT,
    ALARM,
    INK,
    OTHER_COLOUR,
    RASTER_POINTS,
    Colouring,
    new_figure,
    save_figure,
    styled,
)

#: Largest radius of a place as a share of the map's width, and smallest as a share of it.
RADIUS, LEAST_RADIUS = 0.03, 0.3
#: Height of a map, inches.
MAP_HEIGHT = 4.2
#: Steps of a graticule, degrees.
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 45)
GRID_COLOUR, EDGE_COLOUR = "#d8d8d8", "#9a9a9a"


class Chart:
    """A map on paper: positions of the places and a frame around them.

    Attributes
    ----------
    shown : float64 array, (n_places, 2)
        Kilometres or units, east and north.
    width : float
        Longer side of the frame, in the same unit.
    """

    def __init__(self, system: str, points: np.ndarray) -> None:
        self.system = system
        self.shown, self.centre = (
            project_places(points) if system == "sphere" else (points, (0.0, 0.0))
        )
        low, high = self.shown.min(axis=0), self.shown.max(axis=0)
        self.width = float((high - low).max()) or 1.0
        # A frame that is not too narrow: places on a line would leave none.
        size = np.maximum(high - low, 0.35 * self.width) + 0.16 * self.width
        middle = (low + high) / 2
        self.low, self.high = middle - size / 2, middle + size / 2
        self.low[1] -= 0.08 * size[1]  # room for the scale bar

    def frame(self, axes: mpl.axes.Axes) -> None:
        """Draw graticule and scale bar."""
        axes.set_xlim(self.low[0], self.high[0])
        axes.set_ylim(self.low[1], self.high[1])
        axes.set_aspect("equal")
        axes.set_axisbelow(True)
        axes.grid(color=GRID_COLOUR, linewidth=0.4)
        axes.tick_params(length=2)
        for side in ("top", "right"):
            axes.spines[side].set_visible(True)
        if self.system == "sphere":
            self._graticule(axes)
        else:
            axes.set_xlabel("x")
            axes.set_ylabel("y")
        self._scale_bar(axes)

    def _graticule(self, axes: mpl.axes.Axes) -> None:
        degree = np.radians(1) * EARTH_KM
        ends = (("E", "W"), ("N", "S"))
        for axis, origin, scale, letters in (
            (axes.xaxis, self.centre[1], degree * np.cos(np.radians(self.centre[0])), ends[0]),
            (axes.yaxis, self.centre[0], degree, ends[1]),
        ):
            side = 0 if axis is axes.xaxis else 1
            low, high = self.low[side] / scale + origin, self.high[side] / scale + origin
            # The longest axis has at most seven lines, the other one the same distance.
            wanted = (self.high - self.low).max() / scale / 6
            step = next((s for s in STEPS if s >= wanted), STEPS[-1])
            values = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
            if side:
                values = values[np.abs(values) <= 90]
            axis.set_ticks((values - origin) * scale)
            axis.set_ticklabels([_degrees(value, *letters, turn=not side) for value in values])

    def _scale_bar(self, axes: mpl.axes.Axes) -> None:
        length = _round_below(0.25 * (self.high[0] - self.low[0]))
        size = self.high - self.low
        left, bottom = self.low + np.array([0.04, 0.03]) * size
        axes.plot(
            [left, left + length], [bottom, bottom], color=INK, linewidth=1.6, solid_capstyle="butt"
        )
        unit = "km" if self.system == "sphere" else "units"
        axes.text(
            left + length / 2,
            bottom + 0.012 * size[1],
            f"{length:g} {unit}",
            ha="center",
            va="bottom",
            fontsize=7,
        )

    def drawable(self, edges: np.ndarray) -> np.ndarray:
        """Whether each edge can be drawn: not around the back of the Earth."""
        if self.system == "plane" or not len(edges):
            return np.ones(len(edges), bool)
        half = np.pi * EARTH_KM * np.cos(np.radians(self.centre[0]))
        return np.abs(self.shown[edges[:, 0], 0] - self.shown[edges[:, 1], 0]) <= half


def draw_geography(
    folder: Path, order: Path, sheet: Path, out: Path, *, color_by: str
) -> list[str]:
    """Draw the figures and write {out}/{name}.svg and .png; their names.

    Parameters
    ----------
    folder : Path
        `results/geography`.
    order, sheet : Path
        `distance/samples.tsv`, the sample sheet.
    color_by : str
        Column of labels; `population` or `cohort` replaces a numeric or missing one.
    """
    about = read_json(folder / "isolation.json")
    places, edges, pairs = (read_table(folder / f"{n}.tsv") for n in ("places", "edges", "pairs"))
    samples = describe_samples(order, sheet)
    with styled():
        figures = {
            "geography_map": draw_map(samples, places, about, color_by),
            "isolation": draw_isolation(pairs, about),
            "barriers": draw_barriers(places, edges, about),
        }
        for name, figure in figures.items():
            save_figure(figure, out / name)
    return list(figures)


def draw_map(
    samples: pd.DataFrame, places: pd.DataFrame, about: dict[str, Any], color_by: str
) -> Figure:
    """One circle per place: area by number of samples, sectors by label."""
    cohorts = list(dict.fromkeys(samples.cohort))
    colouring = label_colouring(samples, cohorts, color_by)
    there = find_places(samples)
    if there is None or not len(places):
        return _empty("No sample with coordinates is left after quality control.")
    values, home = samples[colouring.title], there.home
    # Circles have no markers: the legend lists labels, one entry for each with its colour.
    plain = Colouring(values, [""], [], colouring.title)
    entries = [
        entry if entry.colour is None else type(entry)(entry.text, entry.colour)
        for entry in plain.entries(values[home >= 0], samples.cohort[home >= 0])
    ]
    figure, (axes,) = new_figure(1, entries, height=MAP_HEIGHT)
    chart = Chart(about["system"], _points(places, about["system"]))
    chart.frame(axes)
    counts = np.bincount(home[home >= 0], minlength=len(there))
    largest = RADIUS * chart.width
    radii = largest * np.maximum(np.sqrt(counts / counts.max()), LEAST_RADIUS)
    wedges = []
    labels = values.where(~values.isin(UNKNOWN), "").to_numpy()
    for place in np.argsort(-counts, kind="stable"):
        own = pd.Series(labels[home == place]).value_counts()
        own = own.loc[sorted(own.index, key=lambda label: (-own[label], label))]
        turns = 90 - 360 * np.concatenate([[0], np.cumsum(own.to_numpy())]) / own.sum()
        for colour, start, end in zip(
            colouring.colours(own.index.to_series()), turns, turns[1:], strict=False
        ):
            wedges.append(
                Wedge(
                    chart.shown[place],
                    radii[place],
                    end,
                    start,
                    facecolor=colour,
                    edgecolor="white",
                    linewidth=0.3,
                )
            )
    collection = PatchCollection(wedges, match_original=True, zorder=3)
    collection.set_rasterized(len(wedges) > RASTER_POINTS)
    axes.add_collection(collection)
    _size_key(axes, chart, largest, int(counts.max()))
    return figure


def _size_key(axes: mpl.axes.Axes, chart: Chart, largest: float, most: int) -> None:
    """Circles of known numbers of samples, side by side at the lower right."""
    size = chart.high - chart.low
    right, bottom = chart.high[0] - 0.03 * size[0], chart.low[1] + 0.03 * size[1]
    kept = [most, *(n for n in (_round_below(most / 4),) if 1 <= n < most and n == int(n))]
    for number in kept:
        radius = largest * np.sqrt(number / most)
        words = f"{int(number)} samples" if number == most else f"{int(number)}"
        text = axes.text(
            *(right, bottom + largest),
            words,
            **{"ha": "right", "va": "center", "fontsize": 7, "zorder": 4},
        )
        # Letters of this size are about a hundredth of the frame's longer side wide.
        right -= 0.0118 * chart.width * len(text.get_text()) + 0.01 * chart.width + radius
        circle = Circle((right, bottom + largest), radius, facecolor="none", edgecolor=INK)
        circle.set(linewidth=0.6, zorder=4)
        axes.add_patch(circle)
        right -= radius + 0.02 * chart.width


def draw_isolation(pairs: pd.DataFrame, about: dict[str, Any]) -> Figure:
    """Genetic against geographic distance of all pairs of places, with the fitted line."""
    distance, genetic = (
        pd.to_numeric(pairs[name], errors="coerce").to_numpy(float)
        for name in ("distance", "genetic")
    )
    if not len(pairs) or not np.isfinite(genetic).any():
        return _empty(about["missing"] or "No two places can be compared.")
    kinds = pairs.communities.to_numpy() if "communities" in pairs else np.full(len(pairs), "")
    # The colours say nothing where there is only one community.
    divided = (about["communities"] or 0) > 1
    figure, (axes,) = new_figure(1)
    for kind, colour, label in (
        (("NA", ""), OTHER_COLOUR, "no community"),
        (("different",), ALARM, "different communities"),
        (("same",), ACCENT, "same community"),
    ):
        chosen = np.isin(kinds, kind)
        if chosen.any():
            axes.scatter(
                distance[chosen],
                genetic[chosen],
                s=float(np.clip(3_000 / len(pairs), 0.6, 14)),
                color=colour if divided else OTHER_COLOUR,
                alpha=0.6,
                linewidths=0,
                label=label if divided else None,
                rasterized=len(pairs) > RASTER_POINTS,
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    found = about.get("all")
    if found and found["slope_log"]:
        x = np.geomspace(distance.min(), distance.max(), 100)
        line = found["slope_log"]
        axes.plot(x, line["intercept"] + line["slope"] * np.log(x), color=INK, linewidth=1)
    if found:
        tested = "" if found["p"] is None else f", p = {found['p']:.2g}"
        axes.set_title(f"rank correlation {found['correlation']:.2f}{tested}")
    if divided:
        axes.legend(markerscale=2, loc="best")
    unit = "km" if about["unit"] == "km" else "unit of x and y"
    axes.set_xlabel(f"distance ({unit})")
    linear = about["measure"].startswith("F_ST")
    axes.set_ylabel("F_ST / (1 − F_ST)" if linear else "mean squared difference")
    return figure


def draw_barriers(places: pd.DataFrame, edges: pd.DataFrame, about: dict[str, Any]) -> Figure:
    """Edges between neighbouring places; bars across them are barriers."""
    if not len(places):
        return _empty("No sample with coordinates is left after quality control.")
    entries = [
        Line2D([], [], color=ALARM, linewidth=3, label="barrier"),
        Line2D([], [], color=ACCENT, linewidth=3, label="corridor"),
        Line2D([], [], color=EDGE_COLOUR, linewidth=0.8, label="neighbours"),
    ]
    figure, (axes,) = new_figure(1, height=MAP_HEIGHT)
    chart = Chart(about["system"], _points(places, about["system"]))
    chart.frame(axes)
    ends = edges[["place_a", "place_b"]].astype(np.int64).to_numpy().reshape(-1, 2) - 1
    kinds = edges.kind.to_numpy()
    drawable = chart.drawable(ends)
    ends, kinds = ends[drawable], kinds[drawable]
    lines = chart.shown[ends]
    axes.add_collection(LineCollection(lines, colors=EDGE_COLOUR, linewidths=0.8, zorder=2))
    corridors = LineCollection(lines[kinds == "corridor"], colors=ACCENT, linewidths=3, zorder=3)
    axes.add_collection(corridors)
    crossed = lines[kinds == "barrier"]
    half = (crossed[:, 1] - crossed[:, 0])[:, ::-1] * [-0.5, 0.5]
    middle = crossed.mean(axis=1)
    bars = np.stack([middle - half, middle + half], axis=1)
    axes.add_collection(LineCollection(bars, colors=ALARM, linewidths=3, zorder=4))
    axes.scatter(*chart.shown.T, s=6, color=INK, zorder=5, linewidths=0)
    figure.legend(handles=entries, loc="outside right upper")
    if about["barriers"] is None:
        axes.set_title("barriers not estimated")
    else:
        axes.set_title(f"{about['barriers']} barriers, {about['corridors']} corridors")
    return figure


def _points(places: pd.DataFrame, system: str) -> np.ndarray:
    columns = SPHERE if system == "sphere" else PLANE
    return places[list(columns)].astype(float).to_numpy()


def _empty(sentence: str) -> Figure:
    figure, (axes,) = new_figure(1)
    axes.axis("off")
    axes.text(0, 0.9, sentence, color=INK, wrap=True, transform=axes.transAxes)
    return figure


def _degrees(value: float, positive: str, negative: str, *, turn: bool) -> str:
    """A longitude (`turn`) or latitude as on a map: 20°W."""
    value = round(float((value + 180) % 360 - 180 if turn else value), 6)
    if value in (0, -180):
        return f"{abs(value):g}°"
    return f"{abs(value):g}°{positive if value > 0 else negative}"


def _round_below(length: float) -> float:
    """The largest of 1, 2, 5, 10, 20, ... times a power of ten below a length."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(head for head in (1, 2, 5) if head * power <= length))
