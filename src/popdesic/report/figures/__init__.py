"""Draw all figures of a study, each as SVG and PNG."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ...cohort.panel import load_panel
from ...components.axes import AXES
from ...core.files import atomic_path, content_key, digest
from ...core.row import is_intact
from ...core.tables import write_npz
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

#: Figures that show founders alone, each of one table: a cohort that arrives changes none of them.
OF_FOUNDERS = {"sites": "panel/sites.tsv", "loadings": "embedding/loadings.tsv"}


def draw_figures(
    outcome: Outcome,
    distances: Distances | NearDistances,
    out: Path,
    *,
    color_by: str,
    min_sample_call_rate: float,
    min_maf: float,
    accuracy: Path | None = None,
    code: str = "",
    processes: int = 1,
) -> list[str]:
    """Draw every figure of a study and write {out}/{name}.svg and .png.

    Those of OF_FOUNDERS are kept, and drawn again only if what they show has changed.

    Parameters
    ----------
    color_by : str
        Column of the sample sheet that colours the figures; `cohort` if the sheet does not have it.
    min_sample_call_rate, min_maf : float
        Limits that are drawn as lines.
    accuracy : Path, optional
        `impute/evaluation.tsv`, if it was measured.
    code : str
        Digest of the code that draws; without it, nothing is kept.
    processes : int
        Draw side by side; changes no byte.

    Returns
    -------
    list of str
        Names of the figures.
    """

    def draw(name: str) -> str:
        if name in keys:
            draw_once(figures[name], out / name, keys[name])
        else:
            save_figure(figures[name](), out / name)
        return name

    with styled():
        planned = plan_figures(
            outcome,
            distances,
            color_by=color_by,
            min_sample_call_rate=min_sample_call_rate,
            min_maf=min_maf,
        )
        figures = dict(planned)
        if accuracy:
            figures["imputation"] = lambda: draw_accuracy(accuracy)
        keys = {
            name: digest(f"{code} {min_maf} {content_key(outcome.folder / table)}")
            for name, table in (OF_FOUNDERS if code else {}).items()
        }
        return run_forked(draw, zip(figures), processes)


def draw_once(figure: Callable[[], Figure], stem: Path, key: str) -> None:
    """Write {stem}.svg and .png: those kept in a hidden file beside them, if it has this key.

    Otherwise they are drawn and kept. Snakemake deletes figures before it draws them.
    """
    path = stem.with_name(f".{stem.name}.npz")
    if is_intact(path):
        with np.load(path) as kept:
            if str(kept["key"]) == key:
                for end in ("svg", "png"):
                    with atomic_path(Path(f"{stem}.{end}")) as temporary:
                        temporary.write_bytes(kept[end].tobytes())
                return
    save_figure(figure(), stem)
    drawn = {end: Path(f"{stem}.{end}").read_bytes() for end in ("svg", "png")}
    write_npz(path, key=key, **{end: np.frombuffer(text, np.uint8) for end, text in drawn.items()})


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
