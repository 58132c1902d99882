"""Figure of families: groups of people whom pairs within the third degree connect."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...ibd.degrees import DEGREES, LAST_CLOSE, UNTOLD
from ..words import number, plural
from .style import ALARM, INK, PALETTE, Entry, new_figure, shorten_label

#: Families that are drawn, the largest first; columns of the figure.
MOST_FAMILIES, COLUMNS = 12, 4
#: Larger groups are counted, not drawn: no drawing of them can be read.
MOST_PEOPLE = 40
#: Names are written in families of at most so many people.
MOST_NAMED = 8
#: Colours and widths of the lines of degrees 0 ... LAST_CLOSE.
LINES = ((ALARM, 2.4), (PALETTE[0], 1.6), (PALETTE[1], 1.0), (PALETTE[2], 0.7))
#: Length of a line between two profiles of one person, beside 1 for the first degree.
SAME = 0.4
#: Steps of the layout.
STEPS = 300


def families_of(pairs: pd.DataFrame) -> list[pd.DataFrame]:
    """Rows of `ibd/pairs.tsv` of each family, the largest first, ties by the first name.

    A family is a group that pairs connect whose whole interval lies within the third degree.
    """
    near = pairs[pairs.degree_high.isin(DEGREES[: LAST_CLOSE + 1])]
    first: dict[str, str] = {}

    def find(name: str) -> str:
        root = name
        while first.setdefault(root, root) != root:
            root = first[root]
        while first[name] != root:
            first[name], name = root, first[name]
        return root

    for one, other in zip(near.sample1, near.sample2, strict=True):
        low, high = sorted((find(one), find(other)))
        first[high] = low
    groups = [rows for _, rows in near.groupby(near.sample1.map(find), sort=True)]
    return sorted(groups, key=lambda rows: -len(people_of(rows)))


def people_of(rows: pd.DataFrame) -> list[str]:
    """People of a family, by name."""
    return sorted({*rows.sample1, *rows.sample2})


def draw_families(pairs: pd.DataFrame) -> Figure:
    """The largest families; a line is a pair, its colour the degree."""
    families = families_of(pairs)
    drawn = [rows for rows in families if len(people_of(rows)) <= MOST_PEOPLE][:MOST_FAMILIES]
    n_rows = max(1, -(-len(drawn) // COLUMNS))
    entries = [Entry("degree")]
    entries += [Entry(DEGREES[k], colour, "_") for k, (colour, _) in enumerate(LINES)]
    figure, panels = new_figure(COLUMNS, entries, n_rows=n_rows, height=0.5 + 1.5 * n_rows)
    for axes in panels:
        axes.set_axis_off()
    for axes, rows in zip(panels, drawn, strict=False):
        _draw_family(axes, rows)
    left_out = len(families) - len(drawn)
    if not families:
        untold = len(pairs) and (pairs.degree == DEGREES[UNTOLD]).all()
        text = (
            "genome too short to tell degrees" if untold else "no relatives within the third degree"
        )
        panels[0].text(0, 0.5, text, transform=panels[0].transAxes)
    elif left_out:
        largest = len(people_of(families[0]))
        text = f"{plural(left_out, 'further family', 'further families')} not drawn"
        if largest > MOST_PEOPLE:
            text += f"; the largest has {number(largest)} people"
        figure.supxlabel(text, fontsize=7.5, x=0.02, ha="left")
    return figure


def _draw_family(axes: Axes, rows: pd.DataFrame) -> None:
    people = people_of(rows)
    place = {name: k for k, name in enumerate(people)}
    edges = np.array([rows[side].map(place) for side in ("sample1", "sample2")], np.int64).T
    degree = rows.degree.map(DEGREES.index).to_numpy(np.int64)
    points = layout(len(people), edges, np.where(degree, degree, SAME))
    for line in np.argsort(-degree, kind="stable").tolist():
        colour, width = LINES[degree[line]]
        axes.plot(*points[edges[line]].T, color=colour, linewidth=width, zorder=1)
    axes.scatter(*points.T, s=10, c=INK, linewidths=0, zorder=2)
    if len(people) <= MOST_NAMED:
        for name, (x, y) in zip(people, points.tolist(), strict=True):
            offset = {"xytext": (0, 4), "textcoords": "offset points"}
            axes.annotate(shorten_label(name, 12), (x, y), ha="center", fontsize=5.5, **offset)
    axes.set_title(plural(len(people), "person", "people"), fontsize=7.5)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.2)


def layout(n: int, edges: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Places of people whose distances are near those along the edges: float64 (n, 2).

    Stress majorization (Gansner, Koren and North 2004) from a circle by name, so that the same
    family is drawn alike in every run. People at both ends of a path lie as far apart as the path
    is long.

    Parameters
    ----------
    n : int
        People, all connected.
    edges : int64 array, (n_edges, 2)
    lengths : float64 array, (n_edges,)
    """
    wanted = np.full((n, n), np.inf)
    np.fill_diagonal(wanted, 0)
    wanted[edges[:, 0], edges[:, 1]] = wanted[edges[:, 1], edges[:, 0]] = lengths
    for k in range(n):
        wanted = np.minimum(wanted, wanted[:, k, None] + wanted[k])
    angle = 2 * np.pi * np.arange(n) / n
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * wanted.max() / 2
    weights = 1 / np.where(wanted > 0, wanted, np.inf) ** 2
    laplacian = np.diag(weights.sum(axis=1)) - weights
    solve = np.linalg.inv(laplacian + np.ones((n, n)) / n)
    for _ in range(STEPS):
        there = np.linalg.norm(points[:, None] - points, axis=2)
        pull = weights * wanted / np.where(there > 1e-9, there, np.inf)
        points = solve @ ((np.diag(pull.sum(axis=1)) - pull) @ points)
    return points
