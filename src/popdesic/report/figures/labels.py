"""Labels of groups on a map: every group is named, no two names overlap.

Each name takes the place of the smallest cost on a fine grid of places in the panel: near its
samples, on few points, its line to them across no other name. Ties go to the first place, so equal
maps get equal labels. The library adjustText (1.4) moves names by forces until a time is over: two
runs differ. With a number of steps instead it takes seconds a map, and names can leave the panel.
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd

from .style import Colouring, shorten_label

#: Fewest samples of a label that is written on a map; width of a character and height of a line of
#: this text, as shares of the smallest panel.
LEAST_NAMED = 3
NAME_WIDTH, NAME_HEIGHT = 0.03, 0.06
#: Places tried along each side of the panel, and cells in which points are counted.
PLACES, CELLS = 61, 200
#: Distance (share of the panel) of a name from its samples from which a line joins them.
JOINED = 0.02
#: Most samples of a group that distances are measured to.
MEASURED = 400
#: Costs, in shares of the panel's side: a point under a name, a line where one is needed, a name
#: or line that is crossed, a name that would be nearest to samples of another group.
ON_POINT, LINE, CROSSING, ASTRAY = 0.006, 0.03, 0.3, 0.1


def name_groups(
    axes: mpl.axes.Axes, x: np.ndarray, y: np.ndarray, values: pd.Series, colouring: Colouring
) -> None:
    """Write labels beside their samples, so that a map can be read in greyscale.

    Names are framed in the colour of their label. A name that has no room beside its samples is
    written farther away, with a line to them. Groups with the most samples choose first.
    """
    names = values.to_numpy()
    groups = [(int((names == label).sum()), label) for label in colouring.labels]
    groups = sorted((-count, label) for count, label in groups if count >= LEAST_NAMED)
    if len(groups) < 2:
        return
    axes.get_xlim(), axes.get_ylim()  # matplotlib computes the limits on first access
    everyone = axes.transLimits.transform(np.stack([x, y], 1))  # data to axes coordinates
    texts = [shorten_label(label, 14) for _, label in groups]
    owns = [everyone[names == label] for _, label in groups]
    places = place_names(everyone, owns, [NAME_WIDTH * (len(text) + 1) for text in texts])
    for (_, label), text, (at, to) in zip(groups, texts, places, strict=True):
        colour = colouring.colours(pd.Series([label]))[0]
        if to is not None:
            ends = np.stack([at, to])
            line = {"color": colour, "linewidth": 0.7, "zorder": 3}
            axes.plot(*ends.T, transform=axes.transAxes, scalex=False, scaley=False, **line)
        axes.text(
            *at,
            text,
            transform=axes.transAxes,
            ha="center",
            va="center",
            fontsize=6.5,
            zorder=4,
            bbox={
                "facecolor": (1, 1, 1, 0.8),
                "edgecolor": colour,
                "linewidth": 0.6,
                "pad": 0.8,
            },
        )


def place_names(
    everyone: np.ndarray, owns: list[np.ndarray], widths: list[float]
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Middle of each group's name, and the end of its line (None: beside its samples).

    All in shares of the panel.

    Parameters
    ----------
    everyone : float64 array, (n_samples, 2)
    owns : list of float64 arrays, (n_own, 2)
        Samples of each group, in the order in which the groups choose.
    widths : list of float
        Widths of the names; all have the height NAME_HEIGHT.
    """
    steps = np.linspace(0.0, 1.0, PLACES)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    cells = np.clip((everyone * CELLS).astype(np.int64), 0, CELLS - 1)
    counts = np.zeros((CELLS + 1, CELLS + 1))
    np.add.at(counts, (cells[:, 0] + 1, cells[:, 1] + 1), 1.0)
    counts = counts.cumsum(axis=0).cumsum(axis=1)
    # A name on a crowd costs no more than on a thousand points.
    weight = ON_POINT * min(1.0, 1000 / max(len(everyone), 1))
    boxes: list[np.ndarray] = []
    lines: list[np.ndarray] = []
    placed: list[tuple[np.ndarray, np.ndarray | None]] = []
    for own, width in zip(owns, widths, strict=True):
        half = np.array([width, NAME_HEIGHT]) / 2
        low, high = np.quantile(own, (0.05, 0.95), axis=0)
        core = own[((own >= low) & (own <= high)).all(axis=1)]
        core = core if len(core) else own
        core = core[:: -(-len(core) // MEASURED)]
        middle = np.median(own, axis=0)
        target = core[((core - middle) ** 2).sum(axis=1).argmin()]
        near, other = (
            _distances(steps, half, points)
            for points in (core, everyone[:: -(-len(everyone) // (4 * MEASURED))])
        )
        joined = near > JOINED
        cost = near + weight * _covered(counts, grid, half) + LINE * joined
        cost += ASTRAY * (~joined & (other < near - 1e-9))
        for box in boxes:
            cost += CROSSING * joined * _crosses(grid, target, box)
        for line in lines:
            cost += CROSSING * _touches(steps, half, line)
        inside = ((grid - half > 0.005) & (grid + half < 0.995)).all(axis=1)
        # Where no place is free, the one that covers least of other names.
        cost = np.where(inside, cost, np.inf) + 1e3 * _overlaps(grid, half, boxes)
        best = int(cost.argmin()) if np.isfinite(cost).any() else int(near.argmin())
        at = np.clip(grid[best], np.minimum(half, 0.5), np.maximum(1 - half, 0.5))
        boxes.append(np.concatenate([at - half, at + half]))
        if joined[best]:
            lines.append(np.stack([at, target]))
        placed.append((at, target if joined[best] else None))
    return placed


def _distances(steps: np.ndarray, half: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance of a box around each place of the grid from the nearest point, (n_places,)."""
    best = np.full((len(steps), len(steps)), np.inf)
    away = np.maximum(np.abs(steps - points[:, :, None]) - half[:, None], 0.0) ** 2
    for x, y in away:
        np.minimum(best, x + y[:, None], out=best)
    return np.sqrt(best).ravel()


def _covered(counts: np.ndarray, grid: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Points under a box around each place, from cumulative counts of cells."""
    corners = (np.rint((grid + sign * half) * CELLS).astype(np.int64) for sign in (-1, 1))
    low, high = (np.clip(corner, 0, CELLS) for corner in corners)
    return (
        counts[high[:, 0], high[:, 1]]
        - counts[low[:, 0], high[:, 1]]
        - counts[high[:, 0], low[:, 1]]
        + counts[low[:, 0], low[:, 1]]
    )


def _overlaps(grid: np.ndarray, half: np.ndarray, boxes: list[np.ndarray]) -> np.ndarray:
    """Area that a box around each place shares with boxes, and 1 for each that it touches."""
    total = np.zeros(len(grid))
    for box in boxes:
        sides = np.minimum(grid + half, box[2:]) - np.maximum(grid - half, box[:2])
        total += np.where((sides > 0).all(axis=1), 1.0 + sides.prod(axis=1), 0.0)
    return total


def _crosses(grid: np.ndarray, target: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Whether the line from each place to a target runs through a box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step = target - grid
        first, last = (box[:2] - grid) / step, (box[2:] - grid) / step
    enter = np.nan_to_num(np.minimum(first, last), nan=-np.inf).max(axis=1)
    leave = np.nan_to_num(np.maximum(first, last), nan=np.inf).min(axis=1)
    return (enter < leave) & (leave > 0) & (enter < 1)


def _touches(steps: np.ndarray, half: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Whether a box around each place touches a line."""
    points = line[0] + np.linspace(0, 1, 30)[:, None] * (line[1] - line[0])
    return _distances(steps, half, points) == 0.0
