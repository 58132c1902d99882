"""All figures of a study, each as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from ...cohort.panel import load_panel
from ...distance.matrix import Distances
from ...embedding.axes import AXES
from ..outcome import Outcome
from ..words import METHODS
from .maps import draw_beside, draw_components, draw_instability, draw_scree
from .quality import draw_filters, draw_samples, draw_sites
from .structure import draw_alpha, draw_distances
from .style import Colouring, save_figure, styled


def draw_figures(
    outcome: Outcome,
    distances: Distances,
    out: Path,
    *,
    color_by: str,
    min_sample_call_rate: float,
    min_maf: float,
) -> list[str]:
    """Draw every figure of a study and write {out}/{name}.svg and .png.

    Parameters
    ----------
    color_by : str
        Column of the sample sheet that colours the figures; cohorts do where the sheet lacks it.
    min_sample_call_rate, min_maf : float
        Limits that are drawn as lines.

    Returns
    -------
    list of str
        Names of the figures.
    """
    names = []
    with styled():
        figures = iterate_figures(
            outcome,
            distances,
            color_by=color_by,
            min_sample_call_rate=min_sample_call_rate,
            min_maf=min_maf,
        )
        for name, figure in figures:
            save_figure(figure, out / name)
            names.append(name)
    return names


def iterate_figures(
    outcome: Outcome,
    distances: Distances,
    *,
    color_by: str,
    min_sample_call_rate: float,
    min_maf: float,
) -> Iterator[tuple[str, Figure]]:
    """Name and figure, one after the other; to be drawn inside `styled`."""
    column = color_by if color_by in outcome.qc else "cohort"
    # All samples that were read decide the colours, so that no figure changes them.
    colouring = Colouring(outcome.qc[column], outcome.cohorts, outcome.founders, column)
    yield "filters", draw_filters(outcome)
    yield (
        "samples",
        draw_samples(outcome, outcome.qc[column], colouring, min_sample_call_rate),
    )
    yield "sites", draw_sites(load_panel(outcome.folder / "panel/sites.tsv")[0], min_maf)
    samples = outcome.samples
    grouping = _grouping(outcome, colouring)
    yield "distances", draw_distances(distances, samples.cohort, samples[grouping.title], grouping)
    yield "alpha", draw_alpha(outcome)
    pca = outcome.embedding("pca")
    variance = outcome.variance["pca"]
    yield "pca", draw_components(pca, "PC", variance, pca[column], colouring)
    yield "scree", draw_scree(outcome)
    for space, alpha in outcome.maps():
        name = f"pcoa.{space}.alpha{alpha}"
        table = outcome.embedding(name)
        yield (
            name,
            draw_components(table, "PCo", outcome.variance[name], table[column], colouring),
        )
    if outcome.instability is not None:
        yield "instability", draw_instability(outcome, colouring)
    for method in ("umap", *outcome.further):
        for space, alpha in outcome.maps():
            name = f"{method}.{space}.alpha{alpha}"
            table = outcome.embedding(name)
            value = f"{outcome.geodesics[space, alpha]['value']:g}"
            title = f"{METHODS[method]}, {space}, α = {value}"
            figure = draw_beside(
                pca, table, AXES[method], variance, table[column], colouring, title
            )
            yield name, figure


def _grouping(outcome: Outcome, colouring: Colouring) -> Colouring:
    """Labels for groups of samples: a numeric column makes none, so others take its place."""
    for column in (colouring.title, "population", "cohort"):
        if column in outcome.qc:
            grouping = Colouring(outcome.qc[column], outcome.cohorts, outcome.founders, column)
            if not grouping.scale:
                return grouping
    return colouring
