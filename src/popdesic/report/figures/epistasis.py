"""Figures of the epistasis scans: ranked hits, their sites, tables of the best hits."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...core.files import read_json
from ...core.tables import read_table
from ...epistasis.p_values import p_of_hits
from ...epistasis.reorder import read_reordered, sites_of_hits
from ...epistasis.scan_data import NAMES
from ...epistasis.scores import scale_bits
from ..registry import epistasis_figures
from ..words import number
from .epistasis_zoom import draw_zoom
from .style import (
    ACCENT,
    ALARM,
    MISSING_COLOUR,
    PALETTE,
    Entry,
    new_figure,
    save_figure,
    shorten_label,
    styled,
)

#: Number of best hits in the network, and most sites that it labels.
NETWORK_HITS, NETWORK_NAMES = 40, 12
#: Largest p of a hit's interaction, corrected for all tests, that is drawn as significant.
SIGNIFICANT = 0.05
#: Best pairs with a contingency table (the best triple has one per genotype of its first site).
TABLES = 3


def draw_epistasis(
    results: Path,
    hits: dict[int, pd.DataFrame],
    zooms: dict[int, pd.DataFrame],
    out: Path,
    phenotype: str = "",
) -> list[str]:
    """Draw the hits of these orders and write {out}/{name}.svg and .png.

    Parameters
    ----------
    results : Path
        `results/`: reorder/ and, where phenotypes were permuted,
        epistasis/null.order{order}.tsv.
    hits : dict of DataFrame
        `read_tables`, by order.
    zooms : dict of DataFrame
        Of `epistasis.lead_regions.zoom_on_leads`.
    phenotype : str
        Of several phenotypes: the name of its folders in reorder/ and epistasis/.

    Returns
    -------
    list of str
        Names of the figures, as in `registry.epistasis_figures`.
    """
    _, sites, samples = read_reordered(results / "reorder" / phenotype)
    folder = results / "epistasis" / phenotype
    prevalence = float((samples["class"] == "case").mean())
    drawn = []
    with styled():
        for order, table in hits.items():
            null = read_null(folder, order, len(samples))
            tests = read_json(folder / "plan.json")[NAMES[order]]["tests"]
            draw = {
                "hits": partial(draw_hits, table, null, tests),
                "interaction_qq": partial(draw_qq, table, tests),
                "network": partial(draw_network, table, sites, order),
                "penetrance": partial(draw_penetrance, table, order, prevalence),
                "zoom": partial(draw_zoom, zooms[order], table, order, tests),
            }
            for figure in epistasis_figures([order], phenotype):
                drawing = draw[figure.caption] if len(table) else _draw_nothing
                save_figure(drawing(), out / figure.name)
                drawn.append(figure.name)
    return drawn


def _draw_nothing() -> Figure:
    """A sentence in place of a figure: no combination of sites was eligible."""
    figure, (axes,) = new_figure(1)
    text = "no combination of sites was eligible:\nnothing was tested"
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()
    return figure


def read_tables(results: Path, orders: list[int], phenotype: str = "") -> dict[int, pd.DataFrame]:
    """`read_hits` of epistasis/pairs.tsv, triples.tsv and quads.tsv, by order."""
    folder = results / "epistasis" / phenotype
    return {order: read_hits(folder / f"{NAMES[order]}.tsv") for order in orders}


def read_hits(path: Path) -> pd.DataFrame:
    """A table of hits with `rank`, `score` and p-values as numbers, the rest as strings."""
    hits = read_table(path)
    for column in ("rank", "score", "p_interaction", "p_association", "p_permutation"):
        if column in hits:
            hits[column] = pd.to_numeric(hits[column], errors="coerce")
    return hits


def read_null(folder: Path, order: int, n_samples: int) -> np.ndarray:
    """Best score of each permuted scan, float64; empty if there was none."""
    path = folder / f"null.order{order}.tsv"
    if not path.exists():
        return np.zeros(0)
    return read_table(path)["cost"].to_numpy(np.int64) / 2.0 ** scale_bits(n_samples)


def hit_counts(row: pd.Series, order: int) -> np.ndarray:
    """Table of one hit, int64 (2, 3, ..., 3): controls, then cases."""
    names = ("people",) * 2 if "people" in row else ("controls", "cases")
    counts = [np.array(row[name].split(","), np.int64) for name in names]
    return np.stack(counts).reshape(2, *(3,) * order)


def draw_hits(hits: pd.DataFrame, null: np.ndarray, tests: int) -> Figure:
    """Score by rank, beside the best scores of the permuted scans if there are any."""
    significant = p_of_hits(hits, tests) <= SIGNIFICANT
    entries = [Entry("interaction")]
    entries.append(Entry(f"p ≤ {SIGNIFICANT:g} ({int(significant.sum())})", ALARM, "o"))
    entries.append(Entry(f"p > {SIGNIFICANT:g} ({int((~significant).sum())})", ACCENT, "o"))
    if len(null):
        entries += [Entry("permuted scans"), Entry(f"best score ({len(null)})", MISSING_COLOUR)]
    shades = np.where(significant, ALARM, ACCENT)
    figure, panels = new_figure(2 if len(null) else 1, entries)
    panels[0].scatter(
        hits["rank"], hits.score, s=12, c=list(shades), linewidths=0, rasterized=len(hits) > 5000
    )
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter(lambda value, _: number(round(value)))
    panels[0].set_xlabel("rank")
    panels[0].set_ylabel("score (lower is better)")
    if len(null):
        panels[0].axhline(
            np.quantile(null, SIGNIFICANT), color="#808080", linewidth=0.7, linestyle="--", zorder=0
        )
        panels[1].sharey(panels[0])
        panels[1].hist(
            null,
            bins=min(30, max(5, len(null) // 8)),
            orientation="horizontal",
            color=MISSING_COLOUR,
        )
        panels[1].axhline(hits.score.iloc[0], color=ALARM, linewidth=1)
        panels[1].set_xlabel("permuted scans")
    panels[0].invert_yaxis()
    return figure


def draw_qq(hits: pd.DataFrame, tests: int) -> Figure:
    """p of each hit's own likelihood-ratio test by the p expected of its rank among all tests.

    p is weighted by the hit's `tests` over all tests, as the mean of the inverse weights of all
    combinations is 1: without any interaction as many are below a level as of p itself.
    """
    from scipy.special import betaincinv

    figure, (axes,) = new_figure(1, width=4.2, height=3.6)
    weighted = pd.to_numeric(hits.lr_p).to_numpy(float)
    if "tests" in hits:
        weighted = weighted * pd.to_numeric(hits.tests).to_numpy(float) / tests
    p = np.sort(np.maximum(weighted, 1e-300))
    expected = -np.log10((np.arange(len(p)) + 0.5) / max(tests, len(p)))
    observed = -np.log10(p)
    ends = [0.0, float(expected[0]) * 1.03]
    # 95 % interval of each order statistic of independent tests.
    k = np.arange(1, len(p) + 1)
    low, high = (betaincinv(k, max(tests, len(p)) + 1 - k, q) for q in (0.025, 0.975))
    axes.fill_between(
        expected, -np.log10(high), -np.log10(low), color=MISSING_COLOUR, linewidth=0, zorder=0
    )
    axes.plot(ends, ends, color="#808080", linewidth=0.7, zorder=1)
    cis = (hits.cis == "yes").to_numpy() if "cis" in hits else np.zeros(len(hits), bool)
    by_p = np.argsort(weighted, kind="stable")
    axes.scatter(
        expected, observed, s=10, c=list(np.where(cis[by_p], ALARM, ACCENT)), linewidths=0, zorder=2
    )
    axes.axhline(
        -np.log10(SIGNIFICANT / tests), color="#808080", linewidth=0.7, linestyle="--", zorder=0
    )
    axes.set_xlabel("expected −log10 p of the best tests")
    axes.set_ylabel("−log10 p of one test, weighted")
    return figure


def draw_network(hits: pd.DataFrame, sites: pd.DataFrame, order: int) -> Figure:
    """Sites of the best hits on a circle in panel order; the sites of a hit are joined."""
    figure, (axes,) = new_figure(1, width=5.2, height=4.4)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
    best = hits.head(NETWORK_HITS)
    members = sites["rank"].to_numpy()[sites_of_hits(best, sites, order)]
    used, degree = np.unique(members, return_counts=True)
    angle = dict(zip(used, np.pi / 2 - 2 * np.pi * np.arange(len(used)) / len(used), strict=True))
    at = {site: np.array([np.cos(a), np.sin(a)]) for site, a in angle.items()}
    for k in reversed(range(len(members))):
        strength = 1 - k / len(members)
        ends = np.array([at[site] for site in members[k]])
        shape = mpl.patches.Polygon(
            ends,
            closed=order > 2,
            fill=order > 2,
            facecolor=(*mpl.colors.to_rgb(ACCENT), 0.06),
            edgecolor=(*mpl.colors.to_rgb(ALARM if k == 0 else ACCENT), 0.2 + 0.8 * strength),
            linewidth=0.4 + 1.6 * strength,
        )
        axes.add_patch(shape)
    place = sites.set_index("rank")
    contigs = list(dict.fromkeys(place.chrom[sorted(place.index)]))
    turn = [colour for colour in PALETTE if colour != ALARM]
    colours = [turn[contigs.index(place.chrom[site]) % len(turn)] for site in used]
    points = np.array([at[site] for site in used])
    axes.scatter(*points.T, s=8 + 10 * np.sqrt(degree), c=colours, zorder=3, linewidths=0)
    hubs = used[np.argsort(-degree, kind="stable")][: int((degree > 1).sum())]
    for site in list(dict.fromkeys([*members[0], *hubs.tolist()]))[:NETWORK_NAMES]:
        (x, y), left = 1.07 * at[site], at[site][0] < 0
        axes.text(
            x,
            y,
            _label(place.id[site], place.chrom[site], place.pos[site], 14)
            + f" ({place.chrom[site]})",
            fontsize=6.5,
            rotation=np.degrees(angle[site]) + 180 * left,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
        )
    return figure


def draw_penetrance(hits: pd.DataFrame, order: int, prevalence: float) -> Figure:
    """Share of cases in each combination of genotypes: the best pairs, triple or quad."""
    if order == 2:
        rows = [row for _, row in hits.head(TABLES).iterrows()]
        tables = [
            (hit_counts(row, 2), row, ((1,), (2,)), f"rank {number(int(row['rank']))}")
            for row in rows
        ]
    elif order == 4:  # two sites along each side
        row = hits.iloc[0]
        counts = hit_counts(row, 4).reshape(2, 9, 9)
        tables = [(counts, row, ((1, 2), (3, 4)), f"rank {number(int(row['rank']))}")]
    else:
        tables = []
        for _, row in hits.head(1).iterrows():
            counts = hit_counts(row, 3)
            tables = [
                (counts[:, g], row, ((2,), (3,)), f"{_name(row, 1, 14)} {_genotype(row, 1, g)}")
                for g in range(3)
            ]
    large = order == 4
    figure, panels = new_figure(len(tables), height=6.4 if large else 2.9)
    if "means" in hits:
        return _draw_means(figure, panels, hits.head(TABLES))
    scale = mpl.colors.TwoSlopeNorm(prevalence, 0.0, 1.0)
    shades = mpl.colormaps["RdBu_r"].with_extremes(bad=MISSING_COLOUR)
    for axes, (counts, row, which, title) in zip(panels, tables, strict=True):
        n = counts.sum(axis=0)
        share = np.ma.masked_array(counts[1] / np.maximum(n, 1), n == 0)
        image = axes.imshow(share, cmap=shades, norm=scale)
        for i, j in np.ndindex(n.shape):
            text = f"{100 * share[i, j]:.0f} %\nn = {number(int(n[i, j]))}" if n[i, j] else "n = 0"
            # White text on the dark ends of the scale.
            dark = bool(n[i, j]) and abs(float(scale(share[i, j])) - 0.5) > 0.33
            colour = "white" if dark else "black"
            size = 5 if large else 6.5
            axes.text(j, i, text, ha="center", va="center", fontsize=size, color=colour)
        axes.set_title(title)
        first, second = which
        axes.set_yticks(range(len(n)), _genotypes(row, first))
        axes.set_xticks(range(len(n)), _genotypes(row, second), rotation=90 if large else 0)
        axes.set_ylabel(", ".join(_name(row, site, 20) for site in first))
        axes.set_xlabel(", ".join(_name(row, site, 20) for site in second))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=panels, fraction=0.03, pad=0.02, shrink=0.6)
    bar.set_ticks([0, prevalence, 1], labels=["0", f"all: {prevalence:.2f}", "1"])
    bar.set_label("share of cases")
    bar.outline.set_linewidth(0.4)
    return figure


def _draw_means(figure: Figure, panels: list, hits: pd.DataFrame) -> Figure:
    """Mean residual of a number in each combination of genotypes of the best pairs."""
    means = [
        np.array([np.nan if m == "NA" else float(m) for m in text.split(",")]).reshape(3, 3)
        for text in hits.means
    ]
    largest = max(float(np.nanmax(np.abs(means))), 1e-9)
    scale = mpl.colors.TwoSlopeNorm(0.0, -largest, largest)
    shades = mpl.colormaps["RdBu_r"].with_extremes(bad=MISSING_COLOUR)
    for axes, mean, (_, row) in zip(panels, means, hits.iterrows(), strict=False):
        n = np.array(row["people"].split(","), np.int64).reshape(3, 3)
        image = axes.imshow(np.ma.masked_invalid(mean), cmap=shades, norm=scale)
        for i, j in np.ndindex(3, 3):
            text = f"{mean[i, j]:.2g}\nn = {number(int(n[i, j]))}" if n[i, j] else "n = 0"
            dark = bool(n[i, j]) and abs(float(scale(mean[i, j])) - 0.5) > 0.33
            axes.text(
                j,
                i,
                text,
                ha="center",
                va="center",
                fontsize=6.5,
                color="white" if dark else "black",
            )
        axes.set_title(f"rank {number(int(row['rank']))}")
        axes.set_yticks(range(3), [_genotype(row, 1, g) for g in range(3)])
        axes.set_xticks(range(3), [_genotype(row, 2, g) for g in range(3)])
        axes.set_ylabel(_name(row, 1, 20))
        axes.set_xlabel(_name(row, 2, 20))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=panels, fraction=0.03, pad=0.02, shrink=0.6)
    bar.set_label("mean residual")
    bar.outline.set_linewidth(0.4)
    return figure


def _label(name: str, chrom: str, pos: str | int, longest: int) -> str:
    """A site's identifier, or its position if it has none."""
    return shorten_label(f"{chrom}:{pos}" if name == "." else name, longest)


def _name(row: pd.Series, site: int, longest: int) -> str:
    return _label(row[f"id{site}"], row[f"chrom{site}"], row[f"pos{site}"], longest)


def _genotype(row: pd.Series, site: int, alt_count: int) -> str:
    ref, alt = row[f"ref{site}"], row[f"alt{site}"]
    return "/".join(([ref, ref], [ref, alt], [alt, alt])[alt_count])


def _genotypes(row: pd.Series, sites: tuple[int, ...]) -> list[str]:
    """All combinations of these sites' genotypes, the last site fastest."""
    return [
        " ".join(_genotype(row, site, g) for site, g in zip(sites, combination, strict=True))
        for combination in product(range(3), repeat=len(sites))
    ]
