"""Every figure of a study, said once: the rules, the drawing and the page read it here.

A new figure is a line here, a function that draws it, and its caption `workflow/report/*.rst`.
Nothing is imported that starts slowly, because each job parses the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..epistasis.options import NAMES
from .words import METHODS


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    name : str
        Stem of `results/figures/{name}.svg` and `.png`.
    rule : str
        The rule that draws it.
    part : str
        Where it stands on the page, and under which category in Snakemake's own report.
    title : str
        Its heading on the page.
    caption : str
        Stem of `workflow/report/{caption}.rst`: what it shows, how to read it, what it does not
        show; figures of one kind share it.
    sizes : str
        Numbers behind it, with names in braces that the page fills in.
    space, alpha : str
        Of a map of geodesics, else empty.
    source : str
        Of several tables, the one that it is drawn from.
    """

    name: str
    rule: str
    part: str
    title: str
    caption: str
    sizes: str = ""
    space: str = ""
    alpha: str = ""
    source: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """Its row in Snakemake's own report, where all of a category have the same columns."""
        labels = {"figure": self.title}
        if self.part == "Maps":
            labels |= {"space": self.space or "all", "alpha": self.alpha or "all"}
        return labels


_PAIRS = "{n} samples, {n_pairs} pairs."
_MAPS = "{n} samples; axes of the PCA from {n_on_axes} unrelated founders and {n_axis_sites} sites."


def main_figures(
    spaces: Sequence[str], alphas: Sequence[str], further: Sequence[str], ensemble: bool
) -> list[Figure]:
    """Figures that every study has, in the page's order.

    Parameters
    ----------
    spaces, alphas : sequence of str
        Of the geodesics, as in file names.
    further : sequence of str
        `embedding.further_maps`.
    ensemble : bool
        Whether the instability of the UMAPs was measured.
    """
    quality = [
        ("filters", "Filters", "{n_cohorts} cohorts, {n_read} samples read."),
        ("samples", "Quality of the samples", "{n_read} samples read, {n} analysed."),
        ("sites", "Sites of the panel", "{n_sites} sites, {n_founders} founder samples."),
    ]
    maps = [
        ("pca", "PCA of the genotypes", _MAPS),
        ("scree", "Variance explained", _MAPS),
        ("loadings", "Loadings along the genome", _MAPS),
        *([("instability", "Instability of the UMAPs", _MAPS)] if ensemble else []),
    ]
    rule = "draw_figures"
    return [
        *[Figure(name, rule, "Quality", title, name, sizes) for name, title, sizes in quality],
        Figure(
            *("distances", rule, "Distances", "Distances", "distances"),
            "{n} samples, {n_pairs} pairs, {n_sites} sites.",
        ),
        Figure("alpha", rule, "Geodesics", "Choice of alpha", "alpha", _PAIRS),
        *[Figure(name, rule, "Maps", title, name, sizes) for name, title, sizes in maps],
        *[
            Figure(
                *(f"{method}.{space}.alpha{alpha}", rule, "Maps", METHODS[method], method),
                *(_PAIRS if method == "pcoa" else _MAPS, space, alpha),
            )
            for method in ("umap", *further, "pcoa")
            for space in spaces
            for alpha in alphas
        ],
    ]


def imputation_figures() -> list[Figure]:
    """What `impute.evaluate` measures."""
    return [
        Figure(
            *("imputation", "summarize_imputation", "Imputation", "Accuracy of imputation"),
            *("imputation", "{n_hidden} genotypes hidden in all."),
        )
    ]


def community_figures(methods: Sequence[str]) -> list[Figure]:
    """Those of `communities.methods`."""
    figures = {
        "communities": "Communities and labels",
        "communities_heatmap": "Geodesics by community",
        **({"communities_tree": "Neighbour-joining tree"} if "tree" in methods else {}),
    }
    sizes = "{n_placed} samples, {n_communities} communities."
    return [
        Figure(name, "draw_communities", "Communities", title, name, sizes)
        for name, title in (figures if methods else {}).items()
    ]


def comparison_figures(analyses: Sequence[str]) -> list[Figure]:
    """Those of `compare.analyses`; `source` names the table of each."""
    founders = "Founders, unrelated ones where embedding.max_kinship asks for them."
    figures = [
        ("kinship", "Kinship of close pairs", "{n_close} pairs.", "kinship", "kinship"),
        ("ld_decay", "Decay of LD", founders, "decay", "ld"),
        ("ld_region", "LD of a region", founders, "region", "ld"),
    ]
    return [
        Figure(name, "draw_comparisons", "Comparisons", title, name, sizes, source=source)
        for name, title, sizes, source, analysis in figures
        if analysis in analyses
    ]


def epistasis_figures(orders: Sequence[int]) -> list[Figure]:
    """Those of `epistasis.order`; `source` is the name of the scan."""
    kinds = {
        "hits": "Ranked {}",
        "network": "Sites of the best {}",
        "penetrance": "Cases in the best {}",
    }
    sizes = "{n_controls} controls, {n_cases} cases, {n_tests} {scan} tested."
    return [
        Figure(
            *(f"{kind}.{NAMES[order]}", "draw_epistasis", "Epistasis"),
            *(title.format(NAMES[order]), kind, sizes),
            source=NAMES[order],
        )
        for order in orders
        for kind, title in kinds.items()
    ]


def study_figures(config: dict, alphas: Sequence[str]) -> list[Figure]:
    """All figures of a study, by its configuration; `alphas` as in file names."""
    embedding = config["embedding"]
    return [
        *main_figures(
            config["geodesic"]["space"],
            alphas,
            embedding["further_maps"],
            bool(embedding["ensemble"]),
        ),
        *imputation_figures(),
        *community_figures(config["communities"]["methods"]),
        *comparison_figures(config["compare"]["analyses"]),
        *epistasis_figures(config["epistasis"]["order"]),
    ]
