"""Figures of communities: against the labels, in the geodesics, on a neighbour-joining tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ...cohort.samples import UNKNOWN, describe_samples
from ...communities.agreement import load_partition
from ...communities.painted_groups import rows_of_donors
from ...core.threads import run_forked
from ...distance.landmarks import read_landmarks
from ...distance.neighbor_joining import read_newick
from ...geodesic.lengths import open_lengths
from ...io.sites import chunks
from .structure import limits_of, mark_groups, summarize_pairs
from .style import (
    HEIGHT,
    WIDTH,
    Colouring,
    draw_points,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)

#: Most rows and columns of a confusion table; further rare values share the last one.
MOST_ROWS, MOST_COLUMNS = 30, 12
COLUMNS = {"community": "Communities", "fine": "Finer communities", "hdbscan": "HDBSCAN"}
#: Most matrix entries in one block of rows, which fits into a cache.
BLOCK_NUMBERS = 1 << 17
#: Rows from which the range of colours is estimated.
PROBE_ROWS = 64


class _Matrix:
    """Geodesics in blocks of rows, as `summarize_pairs` reads distances."""

    def __init__(self, path: Path) -> None:
        self.matrix = open_lengths(path)

    def __len__(self) -> int:
        return len(self.matrix)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        n = len(self)
        for first, last in chunks(n, max(1, BLOCK_NUMBERS // max(n, 1))):
            yield np.arange(first, last), np.array(self.matrix[first:last], np.float64)

    def probe(self) -> np.ndarray:
        n = len(self)
        which = np.unique(np.linspace(0, n - 1, min(n, PROBE_ROWS)).astype(np.int64))
        block = np.array(self.matrix[which], np.float64)
        return block[(np.arange(n)[None, :] != which[:, None]) & np.isfinite(block)]


def draw_communities(
    lengths: Path,
    partition: Path,
    order: Path,
    sheet: Path,
    out: Path,
    *,
    color_by: str,
    tree: Path | None,
    title: str,
    landmarks: Path | None = None,
    processes: int = 1,
) -> list[str]:
    """Draw the figures and write {out}/{name}.svg and .png; their names.

    Parameters
    ----------
    lengths, partition, order, sheet : Path
        Geodesics, `communities/partition.tsv`, `distance/samples.tsv`, the sample sheet.
    color_by : str
        Column of labels; `population` or `cohort` replaces a numeric or missing one.
    tree : Path, optional
        Newick file whose leaves are samples.
    title : str
        Description of the geodesics.
    landmarks : Path, optional
        Rows of landmarks, where there is no matrix of all pairs: the heatmap shows them. `lengths`
        are then the nearest by geodesic, which name the landmarks.
    processes : int
        Draw side by side; changes no byte.
    """
    samples = describe_samples(order, sheet)
    table = load_partition(partition)
    cohorts = list(dict.fromkeys(samples.cohort))
    colouring = label_colouring(samples, cohorts, color_by)
    values = samples[colouring.title]
    numbers = table.community.astype(str)
    shown = table
    if landmarks:
        with np.load(lengths) as lists:
            rows = read_landmarks(landmarks, lists["landmarks"])
        matrix, shown = rows.among(), table.iloc[rows.landmarks].reset_index(drop=True)
        numbers, title = shown.community.astype(str), f"{title}, {len(shown)} founders"
    else:
        matrix = _Matrix(lengths)
    drawn: dict[str, Callable[[], Figure]] = {
        "communities": lambda: draw_confusion(values, colouring.title, table),
        "communities_heatmap": lambda: draw_heatmap(
            matrix, shown, Colouring(numbers, cohorts, cohorts, "community"), title
        ),
    }
    if tree:
        newick = tree.read_text("utf-8")
        drawn["communities_tree"] = lambda: draw_tree(newick, samples, values, colouring, title)
    with styled():
        run_forked(lambda name: save_figure(drawn[name](), out / name), zip(drawn), processes)
    return list(drawn)


def label_colouring(samples: pd.DataFrame, cohorts: list[str], color_by: str) -> Colouring:
    """Colours of a column of labels; `population` or `cohort` replaces a numeric or missing one."""
    for column in (color_by, "population"):
        if column in samples:
            found = Colouring(samples[column], cohorts, cohorts, column)
            if not found.scale:
                return found
    return Colouring(samples.cohort, cohorts, cohorts, "cohort")


def draw_confusion(values: pd.Series, title: str, table: pd.DataFrame) -> Figure:
    """Number of samples with each label in each community and in each cluster of HDBSCAN.

    Shades are shares of the label's samples, so that rows of different size can be compared.
    """
    columns = [column for column in COLUMNS if column in table]
    if "fine" in table and (table.fine == table.community).all():
        columns.remove("fine")  # the same panel twice
    labels = _folded(values.where(~values.isin(UNKNOWN), "not known"), MOST_ROWS)
    rows = sorted(labels.unique(), key=lambda label: (label in ("others", "not known"), label))
    height = max(HEIGHT, 0.19 * len(rows) + 1.1)
    figure, panels = new_figure(len(columns), height=height)
    for axes, column in zip(panels, columns, strict=True):
        groups = _folded(table[column].astype(str), MOST_COLUMNS)
        order = sorted(
            groups.unique(), key=lambda g: (g == "others", g == "0", int(g) if g.isdigit() else 0)
        )
        counts = pd.crosstab(labels, groups).reindex(index=rows, columns=order, fill_value=0)
        share = counts.to_numpy() / counts.to_numpy().sum(axis=1, keepdims=True)
        axes.imshow(share, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        for (row, place), count in np.ndenumerate(counts.to_numpy()):
            if count:
                axes.text(
                    place,
                    row,
                    str(count),
                    ha="center",
                    va="center",
                    fontsize=6.5 if len(order) <= 9 else 5,
                    color="white" if share[row, place] > 0.5 else "black",
                )
        names = ["noise" if g == "0" else g for g in order]
        axes.set_xticks(range(len(order)), names, rotation=0 if len(order) <= 9 else 90)
        axes.set_yticks(range(len(rows)), [shorten_label(row, 16) for row in rows])
        axes.tick_params(length=0)
        axes.set_xlabel("cluster" if column == "hdbscan" else "community")
        axes.set_title(COLUMNS[column])
    panels[0].set_ylabel(shorten_label(title, 22))
    for axes in panels[1:]:
        axes.set_yticklabels([])
    return figure


def _folded(values: pd.Series, most: int) -> pd.Series:
    """Replace the rarest values by ``others`` if there are more than `most`."""
    counts = values.value_counts()
    if len(counts) <= most:
        return values
    kept = sorted(counts.index, key=lambda value: (-counts[value], value))[: most - 1]
    return values.where(values.isin(kept), "others")


def draw_heatmap(matrix: _Matrix, table: pd.DataFrame, colouring: Colouring, title: str) -> Figure:
    """Heatmap of all geodesics, samples ordered by community, finer community and block."""
    n = len(matrix)
    block = table["level0" if "level0" in table else "community"].to_numpy()
    community = table.community.to_numpy()
    order = np.lexsort((np.arange(n), block, table.fine.to_numpy(), community))
    return _draw_matrix(
        *(matrix, order, community, colouring),
        cmap="viridis_r",
        title=f"Geodesics by community, {title}",
        unit="Fermat distance",
    )


def _draw_matrix(
    matrix: _Matrix | _Symmetric,
    order: np.ndarray,
    group: np.ndarray,
    colouring: Colouring,
    *,
    cmap: str,
    title: str,
    unit: str,
) -> Figure:
    """Heatmap of all pairs, samples in an order in which groups are together."""
    n = len(matrix)
    low, high = limits_of(matrix.probe())
    picture, _, _ = summarize_pairs(matrix, order, group, np.array([low, high]))
    figure, (axes,) = new_figure(1, width=WIDTH * 0.62, height=3.8)
    image = axes.imshow(
        picture,
        cmap=cmap,
        vmin=low,
        vmax=high,
        interpolation="nearest",
        extent=(0, n, n, 0),
    )
    mark_groups(axes, group.astype(str)[order], colouring)
    axes.set_title(title, pad=12)
    bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02, extend="both")
    bar.set_label(unit)
    bar.outline.set_linewidth(0.4)
    return figure


class _Symmetric:
    """A matrix in memory, as `summarize_pairs` reads distances."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield np.arange(len(self)), self.matrix

    def probe(self) -> np.ndarray:
        return self.matrix[~np.eye(len(self), dtype=bool)]


def draw_painting(
    lengths: Mapping[str, Path], donors: pd.DataFrame, group: np.ndarray, out: Path
) -> None:
    """Draw the coancestry of donors, ordered by group and cohort: {out}/painting.svg and .png.

    Parameters
    ----------
    lengths : dict
        ``painting/coancestry/{cohort}.npy`` of each cohort.
    donors : DataFrame
        `sample`, `cohort` and `row`, as of `cohort.paint_cohorts.choose_donors`.
    group : int64 array, (n_donors,)
        From 0.
    """
    opened = {cohort: np.load(path, mmap_mode="r") for cohort, path in lengths.items()}
    copied = rows_of_donors(opened, donors)
    matrix, cohorts = _Symmetric((copied + copied.T) / 2), list(dict.fromkeys(donors.cohort))
    names = pd.Series(group + 1).astype(str)
    with styled():
        figure = _draw_matrix(
            *(matrix, np.lexsort((np.arange(len(group)), group)), group + 1),
            Colouring(names, cohorts, cohorts, "group"),
            cmap="viridis_r",
            title="Coancestry by group",
            unit="copied length (cM)",
        )
        save_figure(figure, out / "painting")


def draw_tree(
    newick: str, samples: pd.DataFrame, values: pd.Series, colouring: Colouring, title: str
) -> Figure:
    """The unrooted tree with branch lengths to scale and leaves coloured by label."""
    names, segments, ends = lay_out_tree(newick)
    place = {name: row for row, name in enumerate(samples["sample"])}
    rows = np.array([place[name] for name in names])
    shown, cohorts = values.iloc[rows], samples.cohort.iloc[rows]
    figure, (axes,) = new_figure(1, colouring.entries(shown, cohorts), height=4.2)
    axes.add_collection(LineCollection(segments, colors="#909090", linewidths=0.5, zorder=1))
    points = draw_points(
        axes,
        ends[:, 0],
        ends[:, 1],
        shown.reset_index(drop=True),
        cohorts.reset_index(drop=True),
        colouring,
    )
    for drawn in points:
        drawn.set_zorder(2)
    axes.set_aspect("equal", "datalim")
    axes.autoscale_view()
    axes.set(xticks=[], yticks=[], title=f"Neighbour joining, {title}")
    for spine in axes.spines.values():
        spine.set_visible(False)
    low, high = axes.get_xlim()
    step = 10 ** np.floor(np.log10((high - low) / 4))
    bottom = axes.get_ylim()[0]
    axes.plot([low, low + step], [bottom, bottom], color="black", linewidth=1)
    axes.annotate(f"{step:g}", (low, bottom), xytext=(0, 3), textcoords="offset points", fontsize=7)
    return figure


def lay_out_tree(newick: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Equal-angle layout (Felsenstein 2004, chapter 34) of a tree in Newick format.

    Negative branches are drawn as points.

    Returns
    -------
    names : list of str, one per leaf
    segments : float64 array, (n_branches, 2, 2)
    ends : float64 array, (n_leaves, 2)
    """
    children, lengths, leaf = read_newick(newick)
    count = np.zeros(len(children), np.int64)
    for node in reversed(range(len(children))):  # children come after their parents
        count[node] = 1 if node in leaf else sum(count[child] for child in children[node])
    start = np.zeros(len(children))
    position = np.zeros((len(children), 2))
    segments = []
    for node, below in enumerate(children):
        angle = start[node]
        for child in below:
            width = 2 * np.pi * count[child] / count[0]
            start[child] = angle
            middle = angle + width / 2
            step = max(lengths[child], 0.0) * np.array([np.cos(middle), np.sin(middle)])
            position[child] = position[node] + step
            segments.append((position[node], position[child]))
            angle += width
    shape = (len(segments), 2, 2)
    return list(leaf.values()), np.array(segments).reshape(shape), position[list(leaf)]
