"""Figure of families: groups of people whom pairs within the third degree connect."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...ibd.verdict import CLOSE, SECOND_DEGREE, THIRD_DEGREE, UNTOLD, surely_close
from ...relatives.kinship import SAME
from ..words import number, plural
from .style import ALARM, INK, PALETTE, Entry, new_figure, shorten_label

#: Families that are drawn, the largest first; columns of the figure.
MOST_FAMILIES, COLUMNS = 12, 4
#: Larger groups are counted, not drawn: no drawing of them can be read.
MOST_PEOPLE = 40
#: Names are written in families of at most so many people.
MOST_NAMED = 8
#: Colour, width and length of the lines of relations; all of the first degree are alike.
LINES = {
    SAME: ("duplicate or twin", ALARM, 2.4, 0.4),
    **dict.fromkeys(CLOSE, ("first degree", PALETTE[0], 1.6, 1.0)),
    SECOND_DEGREE: (SECOND_DEGREE, PALETTE[1], 1.0, 2.0),
    THIRD_DEGREE: (THIRD_DEGREE, PALETTE[4], 0.7, 3.0),
}
#: Steps of the layout.
STEPS = 300


def families_of(pairs: pd.DataFrame) -> list[pd.DataFrame]:
    """Rows of `compare/relatives.tsv` of each family, the largest first, ties by the first name.

    A family is a group that pairs connect whose whole interval lies within the third degree.
    """
    near = pd.concat([pairs[pairs.relation == SAME], surely_close(pairs)])
    first: dict[str, str] = {}

    def find(name: str) -> str:
        root = name
        while first.setdefault(root, root) != root:
            root = first[root]
        while first[name] != root:
            first[name], name = root, first[name]
        return root

    for one, other in zip(near.sample_a, near.sample_b, strict=True):
        low, high = sorted((find(one), find(other)))
        first[high] = low
    groups = [rows for _, rows in near.groupby(near.sample_a.map(find), sort=True)]
    return sorted(groups, key=lambda rows: -len(people_of(rows)))


def people_of(rows: pd.DataFrame) -> list[str]:
    """People of a family, by name."""
    return sorted({*rows.sample_a, *rows.sample_b})


def draw_families(pairs: pd.DataFrame) -> Figure:
    """The largest families; a line is a pair, its colour the relation."""
    families = families_of(pairs)
    drawn = [rows for rows in families if len(people_of(rows)) <= MOST_PEOPLE][:MOST_FAMILIES]
    n_rows = max(1, -(-len(drawn) // COLUMNS))
    entries = [Entry("relation")]
    there = {LINES[name] for rows in drawn for name in rows.relation}
    lines = [line for line in dict.fromkeys(LINES.values()) if line in there]
    entries += [Entry(name, colour, "_") for name, colour, *_ in lines]
    figure, panels = new_figure(COLUMNS, entries, n_rows=n_rows, height=0.5 + 1.5 * n_rows)
    for axes in panels:
        axes.set_axis_off()
    for axes, rows in zip(panels, drawn, strict=False):
        _draw_family(axes, rows)
    left_out = len(families) - len(drawn)
    if not families:
        untold = (pairs.relation == UNTOLD).any()
        text = "no degree is named" if untold else "no relatives within the third degree"
        panels[0].text(0, 0.5, text, transform=panels[0].transAxes)
    elif left_out:
        largest = len(people_of(families[0]))
        text = f"{plural(left_out, 'further family', 'further families')} not drawn"
        if largest > MOST_PEOPLE:
            text += f"; the largest has {number(largest)} samples"
        figure.supxlabel(text, fontsize=7.5, x=0.02, ha="left")
    return figure


def _draw_family(axes: Axes, rows: pd.DataFrame) -> None:
    people = people_of(rows)
    place = {name: k for k, name in enumerate(people)}
    edges = np.array([rows[side].map(place) for side in ("sample_a", "sample_b")], np.int64).T
    lines = [LINES[name] for name in rows.relation]
    lengths = np.array([length for *_, length in lines])
    points = layout(len(people), edges, lengths)
    for line in np.argsort(-lengths, kind="stable").tolist():
        _, colour, width, _ = lines[line]
        axes.plot(*points[edges[line]].T, color=colour, linewidth=width, zorder=1)
    axes.scatter(*points.T, s=10, c=INK, linewidths=0, zorder=2)
    if len(people) <= MOST_NAMED:
        for name, (x, y) in zip(people, points.tolist(), strict=True):
            offset = {"xytext": (0, 4), "textcoords": "offset points"}
            axes.annotate(shorten_label(name, 12), (x, y), ha="center", fontsize=5.5, **offset)
    axes.set_title(plural(len(people), "sample"), fontsize=7.5)
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
