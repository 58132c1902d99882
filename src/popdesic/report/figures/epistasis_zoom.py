"""Close-up of the loci of a scan's best combination, and the power of its tests."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.tables import read_table
from ...epistasis.expected_power import ALPHA, DRAWN, cell_probabilities, power_curve
from ...epistasis.options import REACH
from ..registry import power_figures
from ..words import number
from .style import (
    ALARM,
    INK,
    MARKERS,
    MISSING_COLOUR,
    PALETTE,
    RASTER_POINTS,
    WIDTH,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)

#: Limits of the classes of r2 with the lead, and their colours, as in LocusZoom (Pruim et al. 2010)
#: but from light to dark, so that they can be told apart in greyscale.
CLASSES = (0.0, 0.2, 0.4, 0.6, 0.8)
SHADES = ("#d9d9d9", "#a6bddb", "#67a9cf", "#1c7fb8", "#023858")
UNKNOWN_R2 = "#ffffff"
#: Height of the strip below zero, of all heights, in which sites lie that were not tested.
STRIP = 0.12
#: Smallest p that is drawn; smaller ones are drawn there.
SMALLEST_P = 1e-300
#: Numbers of people of a curve, from LEAST to at least LONGEST times those of the study.
POINTS, LEAST, LONGEST = 120, 50, 3.0


def draw_zoom(zoom: pd.DataFrame, hits: pd.DataFrame, order: int, tests: int) -> Figure:
    """-log10 p of the interaction with the other sites of the best hit, by place.

    Parameters
    ----------
    zoom : DataFrame
        Of `epistasis.lead_regions.zoom_on_lead`.
    hits : DataFrame
        The hits that it was made from.
    tests : int
        Combinations of the scan.
    """
    figure, panels = new_figure(order if len(zoom) else 1, width=WIDTH, height=2.9)
    if not len(zoom):
        panels[0].axis("off")
        panels[0].text(0.5, 0.5, "no hit", transform=panels[0].transAxes, ha="center")
        return figure
    heights = -np.log10(np.maximum(zoom.lr_p.to_numpy(float), SMALLEST_P))
    top = max(float(np.nanmax(heights)), -np.log10(ALPHA / tests))
    tested = zoom.tested.to_numpy(bool)
    floor = 0.0 if tested.all() else -STRIP * top
    row = hits.iloc[0]
    for side, axes in enumerate(panels, 1):
        own = zoom[zoom.side == side]
        y, x = heights[zoom.side == side], own.pos.to_numpy() / 1e6
        r2 = own.r2.to_numpy(float)
        shade = np.searchsorted(CLASSES, np.nan_to_num(r2), "right") - 1
        colours = np.where(np.isnan(r2), UNKNOWN_R2, np.array(SHADES)[shade])
        lead, known = own.lead.to_numpy(bool), own.tested.to_numpy(bool)
        plain = known & ~lead
        for colour in (UNKNOWN_R2, *SHADES):  # one path a colour, not one a site; dark ones on top
            place = x[~known & (colours == colour)]
            ends = np.tile([0.75 * floor, 0.25 * floor, np.nan], len(place))
            axes.plot(np.repeat(place, 3), ends, color=colour, linewidth=0.7, zorder=2)
        axes.scatter(
            *(x[plain], y[plain]),
            s=16,
            c=list(colours[plain]),
            edgecolors=INK,
            linewidths=0.4,
            zorder=2,
            rasterized=len(own) > RASTER_POINTS,
        )
        axes.scatter(x[lead], y[lead], s=38, c=ALARM, marker="D", linewidths=0, zorder=3)
        axes.axhline(
            -np.log10(ALPHA / tests), color="#808080", linewidth=0.7, linestyle="--", zorder=0
        )
        middle = float(row[f"pos{side}"]) / 1e6
        axes.set(xlim=(middle - 1.04 * REACH / 1e6, middle + 1.04 * REACH / 1e6))
        if floor:
            axes.axhline(0, color=INK, linewidth=0.5, zorder=0)
        axes.set(
            ylim=(floor, 1.08 * top), xlabel=f"contig {shorten_label(row[f'chrom{side}'], 12)}, Mb"
        )
        place = f"{row[f'chrom{side}']}:{row[f'pos{side}']}"
        axes.set_title(shorten_label(place if row[f"id{side}"] == "." else row[f"id{side}"], 16))
        axes.locator_params(axis="x", nbins=4)
        axes.ticklabel_format(axis="x", useOffset=False)
        if side > 1:
            axes.tick_params(labelleft=False)
    panels[0].set_ylabel("−log10 p of the interaction,\none test")
    if floor:
        marks = [mark for mark in panels[0].get_yticks() if 0 <= mark <= 1.08 * top]
        names = [f"{mark:g}" for mark in marks]
        panels[0].set_yticks([floor / 2, *marks], ["not tested", *names])
    shades = mpl.colors.ListedColormap(SHADES)
    norm = mpl.colors.BoundaryNorm([*CLASSES, 1.0], len(SHADES))
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(norm, shades), ax=panels, fraction=0.03, pad=0.02, shrink=0.7
    )
    bar.set_label("r² with the lead's site")
    bar.outline.set_linewidth(0.4)
    return figure


def draw_power(path: Path, models: list[dict], out: Path, phenotype: str = "") -> list[str]:
    """Draw power by number of people as {out}/power.svg and .png; see `power_curves`.

    `phenotype`: in the names of files, if there are several phenotypes.
    """
    (name,) = (figure.name for figure in power_figures(True, phenotype))
    with styled():
        save_figure(power_curves(read_table(path), models), out / name)
    return [name]


def power_curves(found: pd.DataFrame, models: list[dict]) -> Figure:
    """Power for the interaction by number of people, at this study's level and share of cases.

    Parameters
    ----------
    found : DataFrame
        `epistasis/power.tsv`, one row a model.
    models : list of dict
        `name`, `maf` and `penetrance` of each, as in the configuration.
    """
    figure, (axes,) = new_figure(1, width=5.6, height=3.0)
    controls, cases = int(found.controls[0]), int(found.cases[0])
    n = controls + cases
    sizes = np.geomspace(LEAST, max(LONGEST * n, 1000), POINTS)
    for index, (model, (_, row)) in enumerate(zip(models, found.iterrows(), strict=True)):
        cells = cell_probabilities(model["maf"], model["penetrance"])
        curve = power_curve(cells, controls, cases, float(row.alpha), sizes)
        colour, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        simulated = float(row.power_simulated)
        error = 1.96 * np.sqrt(simulated * (1 - simulated) / DRAWN)
        style = {"marker": marker, "markersize": 5, "markerfacecolor": "white", "capsize": 2}
        label = f"{shorten_label(row.model)} ({row.scan})"
        axes.plot(sizes, 100 * curve, color=colour, linewidth=1.2, label=label)
        axes.errorbar(n, 100 * simulated, 100 * error, color=colour, zorder=3, **style)
    axes.axvline(n, color=MISSING_COLOUR, linewidth=0.9, zorder=0)
    axes.axhline(80, color="#808080", linewidth=0.7, linestyle="--", zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: number(round(value)))
    axes.xaxis.set_minor_formatter("")
    axes.set(ylim=(-2, 103), xlim=(sizes[0], sizes[-1]))
    axes.set_xlabel(f"samples scanned, {100 * cases / n:.0f} % of them cases")
    axes.set_ylabel("power for the interaction (%)")
    figure.legend(loc="outside right upper")
    return figure
