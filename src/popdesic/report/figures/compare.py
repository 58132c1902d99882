"""Figures of the SNP comparisons: LD decay, r2 in one region, kinship of close pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ...core.tables import read_table
from ...relatives.kinship import SAME
from ...relatives.resolution import DUPLICATE, FIRST, SECOND, THIRD
from .style import ACCENT, ALARM, PALETTE, Entry, new_figure, plain_ticks, save_figure, styled

#: Order and colour of the relations in the kinship figure.
RELATIONS = {
    SAME: ALARM,
    "first degree or closer": PALETTE[6],
    "parent and child": PALETTE[0],
    "full siblings": PALETTE[2],
    "second degree": PALETTE[1],
    "third degree": PALETTE[4],
    "distant": PALETTE[5],
}


def draw_comparisons(tables: dict[str, Path], out: Path) -> list[str]:
    """Draw the figures of the given tables and write {out}/{name}.svg and .png.

    Parameters
    ----------
    tables : dict
        Any of ``kinship`` (kinship.tsv), ``decay`` (decay.tsv) and ``region`` (region.npz).

    Returns
    -------
    list of str
        Names of the figures: kinship, ld_decay, ld_region.
    """
    figures = {}
    with styled():
        if "kinship" in tables:
            figures["kinship"] = draw_kinship(read_table(tables["kinship"]))
        if "decay" in tables:
            figures["ld_decay"] = draw_decay(pd.read_csv(tables["decay"], sep="\t"))
        if "region" in tables:
            with np.load(tables["region"]) as region:
                figures["ld_region"] = draw_region(
                    str(region["chrom"]), region["pos"], region["r2"]
                )
        for name, figure in figures.items():
            save_figure(figure, out / name)
    return list(figures)


def draw_kinship(pairs: pd.DataFrame) -> Figure:
    """Kinship of each close pair against its share of opposite homozygotes."""
    # Copies without a heterozygote have no kinship: the legend counts them, nothing is drawn.
    kinship = pd.to_numeric(pairs.kinship, errors="coerce").to_numpy(np.float64)
    share = (pairs.ibs0.astype(np.float64) / pairs.called.astype(np.float64)).to_numpy()
    counts = pairs.relation.value_counts()
    present = [name for name in RELATIONS if counts.get(name, 0)]
    entries = [Entry("pairs")]
    entries += [Entry(f"{name} ({counts[name]})", RELATIONS[name], "o") for name in present]
    figure, (axes,) = new_figure(1, entries)
    for limit in (THIRD, SECOND, FIRST, DUPLICATE):
        axes.axhline(limit, color="#b0b0b0", linewidth=0.6, linestyle="--", zorder=0)
    for name in reversed(present):
        rows = (pairs.relation == name).to_numpy()
        axes.scatter(
            share[rows],
            kinship[rows],
            s=14,
            c=RELATIONS[name],
            linewidths=0.2,
            edgecolors="white",
            clip_on=False,  # parents and duplicates lie on the axis
            zorder=3,
        )
    if not len(pairs):
        axes.text(0.5, 0.5, "no close pair", transform=axes.transAxes, ha="center", color="#606060")
    axes.set_xlabel("share of opposite homozygotes (IBS0)")
    axes.set_ylabel("kinship (KING-robust)")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 0.55)
    return figure


def draw_decay(decay: pd.DataFrame) -> Figure:
    """Mean r2 by distance on a logarithmic axis, with the number of pairs beside it."""
    figure, (axes, counts) = new_figure(2)
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
    for panel in (axes, counts):
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
