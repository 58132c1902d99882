"""Draw all figures of a study, each as SVG and PNG."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from ...cohort.panel import load_panel
from ...components.axes import AXES
from ...core.threads import run_forked
from ...distance.landmarks import NearDistances
from ...distance.matrix import Distances
from .. import registry
from ..outcome import Outcome
from ..words import describe_way
from .imputation import draw_accuracy
from .loadings import draw_loadings
from .maps import draw_beside, draw_components, draw_instability, draw_scree
from .pca_pairs import draw_component_pairs
from .quality import draw_filters, draw_panel_sites, draw_samples
from .structure import draw_alpha, draw_distances
from .style import Colouring, save_figure, styled


def draw_figures(
    outcome: Outcome,
    distances: Distances | NearDistances,
    out: Path,
    *,
    color_by: str,
    min_sample_call_rate: float,
    min_maf: float,
    accuracy: Path | None = None,
    processes: int = 1,
) -> list[str]:
    """Draw every figure of a study and write {out}/{name}.svg and .png.

    Parameters
    ----------
    color_by : str
        Column of the sample sheet that colours the figures; `cohort` if the sheet does not have it.
    min_sample_call_rate, min_maf : float
        Limits that are drawn as lines.
    accuracy : Path, optional
        `impute/evaluation.tsv`, if it was measured.
    processes : int
        Draw side by side; changes no byte.

    Returns
    -------
    list of str
        Names of the figures.
    """

    def draw(name: str, figure: Callable[[], Figure]) -> str:
        save_figure(figure(), out / name)
        return name

    with styled():
        figures = plan_figures(
            outcome,
            distances,
            color_by=color_by,
            min_sample_call_rate=min_sample_call_rate,
            min_maf=min_maf,
        )
        if accuracy:
            figures.append(("imputation", lambda: draw_accuracy(accuracy)))
        return run_forked(lambda k: draw(*figures[k]), zip(range(len(figures))), processes)


def plan_figures(
    outcome: Outcome,
    distances: Distances | NearDistances,
    *,
    color_by: str,
    min_sample_call_rate: float,
    min_maf: float,
) -> list[tuple[str, Callable[[], Figure]]]:
    """Name of each figure, and what draws it; call these inside `styled`."""
    column = color_by if color_by in outcome.qc else "cohort"
    # Colours are assigned from all samples read, so that they are the same in all figures.
    colouring = Colouring(outcome.qc[column], outcome.cohorts, outcome.founders, column)
    samples, grouping = outcome.samples, _grouping(outcome, colouring)
    pca, variance = outcome.embedding("pca"), outcome.variance

    def components(figure: registry.Figure) -> Figure:
        table = outcome.embedding(figure.name)
        axis = AXES[figure.kind]
        return draw_components(table, axis, variance[figure.name], table[column], colouring)

    def beside_pca(figure: registry.Figure) -> Figure:
        table = outcome.embedding(figure.name)
        way = describe_way(outcome.geodesics[figure.space, figure.alpha])
        words = [figure.title, *([figure.space] if figure.space != "ibd" else []), way]
        title, axis = ", ".join(words), AXES[figure.kind]
        return draw_beside(pca, table, axis, variance["pca"], table[column], colouring, title)

    def distances_of(_: registry.Figure) -> Figure:
        shown, people = distances, samples
        if isinstance(distances, NearDistances):
            rows = distances.landmarks
            shown, people = rows.among(), samples.iloc[rows.landmarks].reset_index(drop=True)
        return draw_distances(shown, people.cohort, people[grouping.title], grouping)

    draw: dict[str, Callable[[registry.Figure], Figure]] = {
        "filters": lambda _: draw_filters(outcome),
        "samples": lambda _: draw_samples(
            outcome, outcome.qc[column], colouring, min_sample_call_rate
        ),
        "sites": lambda _: draw_panel_sites(
            load_panel(outcome.folder / "panel/sites.tsv")[0], min_maf
        ),
        "distances": distances_of,
        "alpha": lambda _: draw_alpha(outcome),
        "scree": lambda _: draw_scree(outcome),
        "loadings": lambda _: draw_loadings(outcome.folder / "embedding/loadings.tsv"),
        "instability": lambda _: draw_instability(outcome, colouring),
        "pca": components,
        "pca_pairs": lambda _: draw_component_pairs(
            pca, variance["pca"], outcome.axes["significant"], pca[column], colouring
        ),
        "pcoa": components,
    }
    return [
        (figure.name, functools.partial(draw.get(figure.kind, beside_pca), figure))
        for figure in outcome.figures()
    ]


def _grouping(outcome: Outcome, colouring: Colouring) -> Colouring:
    """Labels of groups of samples; a numeric column is replaced by population or cohort."""
    for column in (colouring.title, "population", "cohort"):
        if column in outcome.qc:
            grouping = Colouring(outcome.qc[column], outcome.cohorts, outcome.founders, column)
            if not grouping.scale:
                return grouping
    return colouring
