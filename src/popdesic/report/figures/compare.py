"""Figures of LD: its decay, and r2 in one region."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ...core.tables import read_table
from .along_genome import number_columns
from .style import (
    ACCENT,
    PALETTE,
    Entry,
    new_figure,
    plain_ticks,
    save_figure,
    shorten_label,
    styled,
)


def draw_comparisons(tables: dict[str, Path], out: Path) -> list[str]:
    """Draw the figures of the given tables and write {out}/{name}.svg and .png.

    Parameters
    ----------
    tables : dict
        Any of ``decay`` (decay.tsv), with ``populations`` (ld_populations.tsv), and ``region``
        (region.npz).

    Returns
    -------
    list of str
        Names of the figures: ld_decay, ld_region.
    """
    figures = {}
    with styled():
        if "decay" in tables:
            figures["ld_decay"] = draw_decay(
                pd.read_csv(tables["decay"], sep="\t"),
                read_table(tables["populations"]) if "populations" in tables else None,
            )
        if "region" in tables:
            with np.load(tables["region"]) as region:
                figures["ld_region"] = draw_region(
                    str(region["chrom"]), region["pos"], region["r2"]
                )
        for name, figure in figures.items():
            save_figure(figure, out / name)
    return list(figures)


def draw_decay(decay: pd.DataFrame, populations: pd.DataFrame | None = None) -> Figure:
    """Mean r2 by distance on a logarithmic axis, with the number of pairs beside it.

    Where several populations are known, r2 of each by itself stands between them.
    """
    within = pd.DataFrame() if populations is None else populations[populations.from_bp != "NA"]
    sizes = (
        {} if within.empty else within.groupby("population").samples.first().astype(int).to_dict()
    )
    names = sorted(sizes, key=lambda name: (-sizes[name], name))[: len(PALETTE)]
    names = names if len(sizes) > 1 else []
    entries = [Entry("population")] if names else []
    entries += [Entry(shorten_label(n), colour) for n, colour in zip(names, PALETTE, strict=False)]
    figure, panels = new_figure(3 if names else 2, entries)
    axes, counts = panels[0], panels[-1]
    for name, colour in zip(names, PALETTE, strict=False):
        own = within[within.population == name]
        low, high, r2 = number_columns(own, "from_bp", "to_bp", "adjusted_r2")
        panels[1].plot(np.sqrt(low * high), r2, color=colour, linewidth=0.9)
        panels[1].set_ylabel("mean r² above chance")
    middle = np.sqrt(decay.from_bp * decay.to_bp)
    axes.plot(middle, decay.mean_r2, marker="o", markersize=3, linewidth=1, color=ACCENT)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("mean r²")
    counts.bar(
        decay.from_bp,
        decay.pairs,
        width=decay.to_bp - decay.from_bp,
        align="edge",
        color=ACCENT,
        linewidth=0,
    )
    scale = "linear" if decay.empty else "log"  # empty where no two sites are near each other
    counts.set_yscale(scale)
    counts.set_ylabel("pairs of sites")
    for panel in panels:
        panel.set_xscale(scale)
        panel.set_xlabel("distance")
        if len(decay):
            plain_ticks(panel.xaxis, _distance)
    if len(decay):
        plain_ticks(counts.yaxis)
    return figure


def _distance(bp: float) -> str:
    """A distance in bp, kb or Mb."""
    unit, size = next((u, s) for u, s in (("Mb", 1e6), ("kb", 1e3), ("bp", 1)) if bp >= s or s == 1)
    return f"{bp / size:g} {unit}"


def draw_region(chrom: str, pos: np.ndarray, r2: np.ndarray) -> Figure:
    """r2 between all sites of a region, in genome order and evenly spaced."""
    figure, (axes,) = new_figure(1, width=4.6, height=4.0)
    image = axes.imshow(
        np.ma.masked_invalid(r2), cmap="viridis", vmin=0, vmax=1, interpolation="nearest"
    )
    ticks = np.unique(np.linspace(0, len(pos) - 1, min(len(pos), 4)).astype(int))
    label = FuncFormatter(lambda x, _: f"{pos[int(np.clip(round(x), 0, len(pos) - 1))] / 1e6:.3f}")
    axes.xaxis.set_ticks(ticks)
    axes.xaxis.set_major_formatter(label)
    axes.yaxis.set_ticks([])  # the same sites
    axes.set_xlabel(f"contig {chrom}, Mb ({len(pos)} sites, evenly spaced)")
    bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02)
    bar.set_label("r²")
    bar.outline.set_linewidth(0.4)
    return figure
