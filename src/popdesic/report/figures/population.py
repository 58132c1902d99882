"""Figures of the statistics of populations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.files import read_json
from ...core.tables import read_table
from ...population.runs import CLASSES_MB, class_names
from .along_genome import draw_local_structure, draw_tracks, empty_figure, number_columns
from .ancestry import draw_ancestry
from .style import (
    ACCENT,
    ALARM,
    INK,
    PALETTE,
    RASTER_POINTS,
    Entry,
    ink_on,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)
from .sweeps import draw_sweeps

#: Most populations that have a place of their own in a figure; the rest is in the tables.
MOST_SHOWN = 30
#: Most f3 and f4 shown.
MOST_ROWS = 18
#: Parent of an inner node of a tree that joins nothing.
GONE = -2
#: Most populations whose spectra are drawn.
MOST_SPECTRA = 12


def draw_population(folder: Path, out: Path, names: Sequence[str]) -> list[str]:
    """Draw figures and write {out}/{name}.svg and .png; their names.

    Parameters
    ----------
    folder : Path
        `results/population`; the PCA lies beside it.
    names : sequence of str
        Names of the registry's `population_figures`.
    """
    draw = {
        "population_diversity": draw_diversity,
        "population_spectrum": draw_spectra,
        "population_fst": draw_differentiation,
        "population_tracks": draw_tracks,
        "population_f": draw_f_statistics,
        "population_local": draw_local_structure,
        "population_sweeps": lambda folder: draw_sweeps(folder / "sweep_windows.tsv"),
        "population_ancestry": draw_ancestry,
    }
    with styled():
        for name in names:
            save_figure(draw[name](folder), out / name)
    return list(names)


def _shown(table: pd.DataFrame) -> list[str]:
    """Populations by falling size, the largest ones, then by name."""
    (people,) = number_columns(table, "people")
    order = np.lexsort([table.population.to_numpy(), -people])[:MOST_SHOWN]
    return sorted(table.population.to_numpy()[order].tolist())


def draw_diversity(folder: Path) -> Figure:
    """Heterozygosity and F_ROH of every sample, by population, and F_ROH by length class."""
    table, people = (read_table(folder / f"{n}.tsv") for n in ("populations", "samples"))
    names = _shown(table)
    if not names:
        return empty_figure("No population has enough samples.")
    runs = "mean_f_roh" in table and bool(np.isfinite(*number_columns(table, "mean_f_roh")).any())
    height = 1.0 + 0.17 * max(len(names), 6)
    entries = [Entry("runs of homozygosity")] if runs else []
    labels = [f"below {CLASSES_MB[0]} Mb"]
    labels += [f"{a} to {b} Mb" for a, b in pairwise(CLASSES_MB)]
    labels += [f"{CLASSES_MB[-1]} Mb and longer"]
    shades = mpl.colormaps["viridis"](np.linspace(0.9, 0.05, len(labels)))
    shades = [mpl.colors.to_hex(shade) for shade in shades]
    if runs:
        entries += [Entry(text, shade) for text, shade in zip(labels, shades, strict=True)]
    figure, panels = new_figure(3 if runs else 1, entries, height=height)
    rng = np.random.default_rng(0)
    columns = ["heterozygosity", "f_roh"][: 2 if runs else 1]
    for axes, column in zip(panels, columns, strict=False):
        for row, name in enumerate(names):
            (values,) = number_columns(people[people.population == name], column)
            heights = row + rng.uniform(-0.28, 0.28, len(values))
            axes.scatter(
                *(values, heights),
                s=4,
                alpha=0.5,
                color=ACCENT,
                linewidths=0,
                rasterized=len(people) > RASTER_POINTS,
            )
            if np.isfinite(values).any():
                middle = np.nanmedian(values)
                axes.plot([middle, middle], [row - 0.36, row + 0.36], color=INK, linewidth=1)
    panels[0].set_xlabel("heterozygosity of a sample")
    if runs:
        panels[1].set_xlabel("F_ROH of a sample")
        own = table.set_index("population").loc[names]
        left = np.zeros(len(names))
        for name, shade in zip(class_names(), shades, strict=True):
            (values,) = number_columns(own, f"mean_{name}")
            values = np.nan_to_num(values)
            panels[2].barh(np.arange(len(names)), values, left=left, color=shade, height=0.7)
            left += values
        panels[2].set_xlabel("mean F_ROH by length")
    for k, axes in enumerate(panels):
        axes.set_yticks(range(len(names)), [shorten_label(n, 16) for n in names] if k == 0 else [])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(3))
    return figure


def draw_spectra(folder: Path) -> Figure:
    """Folded site-frequency spectra, and by count of ALT."""
    table = read_table(folder / "spectrum.tsv")
    names = _shown(read_table(folder / "populations.tsv"))[:MOST_SPECTRA]
    if not len(table) or not names:
        return empty_figure("Too few genotypes are called for a site-frequency spectrum.")
    entries = [Entry("population")]
    entries += [
        Entry(shorten_label(name), colour) for name, colour in zip(names, PALETTE, strict=False)
    ]
    figure, (folded, whole) = new_figure(2, entries)
    for name, colour in zip(names, PALETTE, strict=False):
        count, sites, both, used = number_columns(
            table[table.population == name], "count", "sites", "folded", "sites_used"
        )
        m = int(count[-1])
        half = slice(1, m // 2 + 1)
        share = np.maximum(used, 1)
        folded.plot(count[half], both[half] / share[half], color=colour, marker="o", markersize=2)
        whole.plot(count[1:m], sites[1:m] / share[1:m], color=colour, linewidth=0.9)
    alleles = table.alleles.iloc[0]
    folded.set_xlabel(f"copies of the rarer allele of {alleles}")
    whole.set_xlabel(f"copies of ALT of {alleles}")
    folded.set_ylabel("share of sites")
    for axes in (folded, whole):
        axes.set_ylim(bottom=0)
    return figure


def draw_differentiation(folder: Path) -> Figure:
    """Hudson's F_ST of all pairs, ordered by the tree, which is drawn beside it."""
    pairs = read_table(folder / "pairs.tsv")
    tree = (folder / "tree.nwk").read_text("utf-8").strip()
    if not len(pairs):
        return empty_figure("Differentiation needs two populations.")
    names = list(dict.fromkeys([*pairs.population1, *pairs.population2]))
    leaves = _leaves(tree) if tree else []
    if sorted(leaves) == sorted(names):
        names = leaves
    names = names[:MOST_SHOWN]
    n = len(names)
    index = {name: k for k, name in enumerate(names)}
    matrix = np.full((n, n), np.nan)
    fst, _ = number_columns(pairs, "fst", "error")
    for a, b, value in zip(pairs.population1, pairs.population2, fst, strict=True):
        if a in index and b in index:
            matrix[index[a], index[b]] = matrix[index[b], index[a]] = value
    figure, (left, right) = new_figure(2, height=1.2 + 0.2 * max(n, 9))
    left.set_title("Neighbour joining of f2, unrooted")
    admixed = set(read_json(folder / "summary.json").get("admixed") or [])
    if len(set(leaves) - admixed) > 2 and len(leaves) <= MOST_SHOWN:
        _draw_tree(left, tree, index, admixed)
    else:
        left.axis("off")
    shown = right.imshow(np.ma.masked_invalid(matrix), cmap="viridis_r", aspect="auto")
    ticks = [shorten_label(name, 14) for name in names]
    right.set_yticks(range(n), ticks)
    right.set_xticks(range(n), ticks, rotation=90)
    right.tick_params(length=0)
    right.set_title("Hudson's F_ST")
    if n <= 12:
        for i in range(n):
            for j in range(n):
                if np.isfinite(matrix[i, j]):
                    right.text(
                        *(j, i, f"{matrix[i, j]:.3f}"),
                        ha="center",
                        va="center",
                        fontsize=5.5,
                        color=ink_on(shown.to_rgba(matrix[i, j])),
                    )
    bar = figure.colorbar(shown, ax=right, fraction=0.05, pad=0.02)
    bar.outline.set_linewidth(0.4)
    return figure


def _nodes(tree: str) -> tuple[list[tuple[str, int, float]], list[tuple[int, float, str]]]:
    """Leaves (name, parent, length) and inner nodes (parent, length, support) of a Newick tree.

    The root is inner node 0, its parent is -1.
    """
    leaves: list[tuple[str, int, float]] = []
    inner: list[tuple[int, float, str]] = []
    stack: list[int] = []
    last: tuple[str, int] | None = None
    for word in re.finditer(r"\(|\)|,|;|:[^(),;]+|'(?:[^']|'')*'|[^(),;:]+", tree.strip()):
        text = word[0]
        if text == "(":
            inner.append((stack[-1] if stack else -1, 0.0, ""))
            stack.append(len(inner) - 1)
        elif text == ")":
            last = ("inner", stack.pop())
        elif text.startswith(":"):
            length = float(text[1:])
            if last and last[0] == "inner":
                inner[last[1]] = (inner[last[1]][0], length, inner[last[1]][2])
            elif last:
                leaves[last[1]] = (*leaves[last[1]][:2], length)
        elif text in ",;":
            last = None
        elif last and last[0] == "inner":
            inner[last[1]] = (*inner[last[1]][:2], text)
        else:
            name = text[1:-1].replace("''", "'") if text.startswith("'") else text
            leaves.append((name, stack[-1], 0.0))
            last = ("leaf", len(leaves) - 1)
    return leaves, inner


def _leaves(tree: str) -> list[str]:
    return [name for name, _, _ in _nodes(tree)[0]]


def _prune(
    leaves: list[tuple[str, int, float]], inner: list[tuple[int, float, str]], left_out: set[str]
) -> tuple[list[tuple[str, int, float]], list[tuple[int, float, str]]]:
    """The tree of `_nodes` without some leaves; of inner nodes that join nothing, GONE is left.

    Two branches that become one are as long as both. The support is the larger one, since either
    split of the whole tree is that of the rest.
    """
    leaves, inner = [leaf for leaf in leaves if leaf[0] not in left_out], list(inner)
    for k in range(len(inner) - 1, 0, -1):  # a node comes after its parent
        own = [i for i, leaf in enumerate(leaves) if leaf[1] == k]
        below = [i for i, node in enumerate(inner) if node[0] == k]
        if len(own) + len(below) > 1:
            continue
        parent, length, support = inner[k]
        for i in own:
            leaves[i] = (leaves[i][0], parent, leaves[i][2] + length)
        for i in below:
            more = max(inner[i][2], support, key=lambda text: float(text or 0))
            inner[i] = (parent, inner[i][1] + length, more)
        inner[k] = (GONE, 0.0, "")
    own = [leaf for leaf in leaves if leaf[1] == 0]
    below = [i for i, node in enumerate(inner) if node[0] == 0]
    if left_out and len(own) + len(below) < 3:  # the root lies within a branch, or on none
        supports = sorted((inner[i][2] for i in below), key=lambda text: float(text or 0))
        for i in below:  # the branch of one leaf has none
            inner[i] = (0, inner[i][1], "" if own or i != below[0] else supports[-1])
        if len(below) == 1 and not own:
            inner[0], inner[below[0]] = (GONE, 0.0, ""), (-1, 0.0, "")
    return leaves, inner


def _draw_tree(axes: mpl.axes.Axes, tree: str, index: dict[str, int], left_out: set[str]) -> None:
    """The tree with its leaves at the rows of the heatmap; support beside inner branches."""
    leaves, inner = _prune(*_nodes(tree), left_out)
    x = np.zeros(len(inner))
    for k, (parent, length, _) in enumerate(inner):
        x[k] = (x[parent] if parent >= 0 else 0.0) + max(length, 0.0)
    rows: list[list[float]] = [[] for _ in inner]
    named = {"fontsize": 6, "va": "center", "xytext": (2, 0), "textcoords": "offset points"}
    for name, parent, length in leaves:
        y, end = float(index[name]), x[parent] + max(length, 0.0)
        rows[parent].append(y)
        axes.plot([x[parent], end], [y, y], color=INK, linewidth=0.9)
        axes.annotate(shorten_label(name, 14), (end, y), **named)
    for name in sorted(left_out & set(index)):
        text = f"{shorten_label(name, 14)}: admixed, not in the tree"
        axes.annotate(text, (0, index[name]), color="#606060", **named)
    for k in range(len(inner) - 1, -1, -1):
        parent, _, support = inner[k]
        if parent == GONE:
            continue
        y = float(np.mean(rows[k]))
        axes.plot([x[k], x[k]], [min(rows[k]), max(rows[k])], color=INK, linewidth=0.9)
        if parent >= 0:
            rows[parent].append(y)
            axes.plot([x[parent], x[k]], [y, y], color=INK, linewidth=0.9)
            axes.text(x[k], y - 0.12, support, fontsize=6, ha="right", va="bottom")
    low, high = axes.get_xlim()
    axes.set_xlim(low, low + 1.35 * (high - low))  # room for a name at the longest branch
    axes.set_ylim(len(index) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("f2")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(3))


def draw_f_statistics(folder: Path) -> Figure:
    """The lowest f3, and the chosen f4, with two standard errors."""
    f3, f4 = (read_table(folder / f"{name}.tsv") for name in ("f3", "f4"))
    if not len(f3) and not len(f4):
        return empty_figure("f-statistics need three populations.")
    f3, f4 = f3.head(MOST_ROWS), f4.head(MOST_ROWS)
    n = max(len(f3), len(f4), 5)
    figure, panels = new_figure(2 if len(f4) else 1, height=1.0 + 0.16 * n)
    labels = [
        f"{shorten_label(t, 10)} ; {shorten_label(a, 10)}, {shorten_label(b, 10)}"
        for t, a, b in zip(f3.target, f3.source1, f3.source2, strict=True)
    ]
    admixed = [ALARM if mark == "yes" else INK for mark in f3.admixed]
    _bars(panels[0], f3, "f3", labels, admixed)
    panels[0].set_xlabel("f3 (target; sources)")
    if len(f4):
        labels = [
            "{}, {} ; {}, {}".format(*(shorten_label(name, 8) for name in names))
            for names in zip(f4.a, f4.b, f4.c, f4.d, strict=True)
        ]
        _bars(panels[1], f4, "f4", labels, [INK] * len(f4))
        panels[1].set_xlabel("f4 (A, B; C, D)")
    return figure


def _bars(
    axes: mpl.axes.Axes, table: pd.DataFrame, name: str, labels: list[str], colours: list[str]
) -> None:
    values, errors = number_columns(table, name, "error")
    for row, (value, error, colour) in enumerate(zip(values, errors, colours, strict=True)):
        spread = 2 * error if np.isfinite(error) else 0
        axes.errorbar(value, row, xerr=spread, color=colour, marker="o", markersize=3, linewidth=1)
    axes.axvline(0, color="#9a9a9a", linewidth=0.6)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(max(len(labels), 5) - 0.5, -0.5)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
