"""Registry of all figures of a study, read by the rules, the drawing and the page.

A new figure is a line here, a function that draws it, and its caption `workflow/report/*.rst`.
This module must not import anything that starts slowly, because every job parses the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..epistasis.scan_data import NAMES
from ..io.batches import ONLY_HAPLOID
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
        Section of the page, and category in Snakemake's own report.
    title : str
        Heading on the page.
    caption : str
        Stem of `workflow/report/{caption}.rst`: what the figure shows, how to read it, what it does
        not show. Figures of the same kind share it.
    sizes : str
        Sample sizes and other counts, with names in braces that the page fills in.
    space, alpha : str
        Geodesics that a map is made from; empty for other figures.
    """

    name: str
    rule: str
    part: str
    title: str
    caption: str
    sizes: str = ""
    space: str = ""
    alpha: str = ""

    @property
    def kind(self) -> str:
        """The method of a map, as in the names of its files; the name of other figures."""
        return self.name.split(".")[0]

    @property
    def labels(self) -> dict[str, str]:
        """Labels in Snakemake's own report; all figures of a category need the same ones."""
        labels = {"figure": self.title}
        if self.part == "Maps":
            labels |= {"space": self.space or "all", "alpha": self.alpha or "all"}
        return labels


_PAIRS = "{n_compared}, {n_pairs} pairs."
_MAPS = "{n} samples; PCA axes from {n_on_axes} founders and {n_axis_sites} sites."
_SHARED = "{n} samples, {n_pairs} pairs. Segments are at least {min_cm} cM long."


def main_figures(
    spaces: Sequence[str], alphas: Sequence[str], further: Sequence[str], ensemble: bool
) -> list[Figure]:
    """Figures of every study, in the order of the page.

    Parameters
    ----------
    spaces, alphas : sequence of str
        Spaces and alphas of the geodesics, as in file names.
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
        ("pca_pairs", "Pairs of principal components", _MAPS),
        ("scree", "Variance explained", _MAPS),
        ("loadings", "Loadings along the genome", _MAPS),
        *([("instability", "Instability of the UMAPs", _MAPS)] if ensemble else []),
    ]
    rule = "draw_figures"
    return [
        *[Figure(name, rule, "Quality", title, name, sizes) for name, title, sizes in quality],
        Figure(
            *("distances", rule, "Distances", "Distances", "distances"),
            "{n_compared}, {n_pairs} pairs, {n_sites} sites.",
        ),
        Figure("alpha", rule, "Geodesics", "Choice of geodesics", "alpha", _PAIRS),
        *[Figure(name, rule, "Maps", title, name, sizes) for name, title, sizes in maps],
        *[
            _map_figure(method, space, alpha)
            for method in ("umap", *further, "pcoa")
            for space in spaces
            for alpha in alphas
        ],
    ]


def _map_figure(method: str, space: str, alpha: str) -> Figure:
    """One map of geodesics. Those of shared segments have captions of their own."""
    title, caption, sizes = METHODS[method], method, _PAIRS if method == "pcoa" else _MAPS
    if space == "ibd":
        title, caption, sizes = f"{title} of shared segments", f"{method}_ibd", _SHARED
    return Figure(
        *(f"{method}.{space}.alpha{alpha}", "draw_figures", "Maps", title, caption, sizes),
        *(space, alpha),
    )


def imputation_figures() -> list[Figure]:
    """Figures of `impute.evaluate`."""
    return [
        Figure(
            *("imputation", "draw_figures", "Imputation", "Accuracy of imputation"),
            *("imputation", "{n_hidden} genotypes masked in total."),
        )
    ]


def community_figures(methods: Sequence[str]) -> list[Figure]:
    """Figures of `communities.methods`."""
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


def painting_figures() -> list[Figure]:
    """Figure of `painting` in `communities.methods`."""
    sizes = "{n_donors} founders, {n_painted_groups}."
    return [
        Figure(
            *("painting", "paint_samples", "Communities", "Coancestry by group", "painting", sizes)
        )
    ]


def comparison_figures(analyses: Sequence[str]) -> list[Figure]:
    """Figures of `compare.analyses`."""
    founders = "{ld_founders}."
    figures = [
        ("kinship", "relate_samples", "Kinship of close pairs", "{n_close} pairs.", "kinship"),
        ("ld_decay", "measure_ld", "LD decay", founders, "ld"),
        ("ld_region", "measure_ld", "LD in one region", founders, "ld"),
    ]
    return [
        Figure(name, rule, "Comparisons", title, name, sizes)
        for name, rule, title, sizes, analysis in figures
        if analysis in analyses
    ]


def epistasis_figures(orders: Sequence[int], phenotype: str = "") -> list[Figure]:
    """Figures of `epistasis.order`.

    `phenotype`: of several phenotypes, which is in the names of files and titles.
    """
    kinds = {
        "hits": "Ranked {}",
        "interaction_qq": "Interaction tests of the best {}",
        "network": "Sites of the best {}",
        "penetrance": "Share of cases in the best {}",
        "zoom": "Loci of the best {}, close up",
    }
    sizes = "{n_controls} controls, {n_cases} cases, {n_tests} {scan} tested."
    return [
        Figure(
            *(_of_phenotype(f"{kind}.{NAMES[order]}", phenotype), "rank_epistasis", "Epistasis"),
            *(_titled(title.format(NAMES[order]), phenotype), kind, sizes),
        )
        for order in orders
        for kind, title in kinds.items()
    ]


def power_figures(models: object, phenotype: str = "") -> list[Figure]:
    """Figure of `epistasis.power`, if it has models; not drawn of phenotypes that are numbers."""
    sizes = "{n_controls} controls, {n_cases} cases."
    name, title = (
        _of_phenotype("power", phenotype),
        _titled("Power by number of samples", phenotype),
    )
    return [Figure(name, "rank_epistasis", "Epistasis", title, "power", sizes)] if models else []


def _of_phenotype(name: str, phenotype: str) -> str:
    """Stem of a figure's files."""
    return f"{phenotype}.{name}" if phenotype else name


def _titled(title: str, phenotype: str) -> str:
    return f"{title}, {phenotype}" if phenotype else title


def site_scan_figures(orders: Sequence[int], phenotype: str = "") -> list[Figure]:
    """Figures of the main effects of the scanned sites; `phenotype` as in `epistasis_figures`."""
    titles = {
        "manhattan": "Main effects along the genome",
        "qq_sites": "Quantiles of the main effects",
    }
    sizes = "{n_tested_sites} sites, λ = {lambda_gc}."
    return [
        Figure(
            *(_of_phenotype(name, phenotype), "rank_epistasis", "Epistasis"),
            *(_titled(title, phenotype), name, sizes),
        )
        for name, title in (titles if orders else {}).items()
    ]


def set_figures(sets: str | dict, phenotype: str = "", several: bool = True) -> list[Figure]:
    """Figures of `epistasis.sets`, if it is not empty; that of cohorts if there are `several`.

    `phenotype` as in `epistasis_figures`.
    """
    titles = {
        "sets_manhattan": "Interactions of sets along the genome",
        "sets_qq": "Quantiles of the tests of sets",
    } | ({"sets_forest": "Best sets by cohort"} if several else {})
    sizes = "{n_tested_sets} sets, {n_set_people} samples, λ = {lambda_sets}."
    return [
        Figure(
            *(_of_phenotype(name, phenotype), "scan_sets", "Epistasis"),
            *(_titled(title, phenotype), name, sizes),
        )
        for name, title in (titles if sets else {}).items()
    ]


def geography_figures(placed: bool) -> list[Figure]:
    """Figures of a study whose samples come from several places."""
    places = "{n_placed} samples of {n_places} places."
    figures = [
        ("geography_map", "Map of the places", places),
        ("isolation", "Isolation by distance", "{n_place_pairs} pairs of places."),
        ("barriers", "Barriers and corridors", "{n_edges} pairs of neighbouring places."),
    ]
    return [
        Figure(name, "measure_geography", "Geography", title, name, sizes)
        for name, title, sizes in (figures if placed else [])
    ]


def population_figures(analyses: Sequence[str]) -> list[Figure]:
    """Figures of `population.analyses`; those of diversity come with every analysis."""
    people = "{n_people} samples of {n_populations} populations, {n_population_sites} sites."
    spectra = "{n_people} samples of {n_populations} populations, {n_diversity_sites} sites."
    blocks = "{n_populations} populations, {n_population_sites} sites in {n_blocks} blocks."
    windows = "{n_local_people} founders, {n_windows} windows of {n_window_sites} sites."
    swept = "{n_swept} founders, {n_swept_sites} sites, {n_swept_windows} windows."
    components = "{n_components} components of {n_fitted} founders, {n_ancestry_sites} sites."
    figures = [
        ("population_diversity", "Heterozygosity and runs of homozygosity", people, "diversity"),
        ("population_spectrum", "Site-frequency spectra", spectra, "diversity"),
        ("population_fst", "Differentiation of populations", blocks, "differentiation"),
        ("population_tracks", "Differentiation along the genome", blocks, "differentiation"),
        ("population_f", "f-statistics", blocks + " {n_f3} f3 computed.", "f_statistics"),
        ("population_local", "Local structure", windows, "local"),
        ("population_sweeps", "Haplotypes along the genome", swept, "sweeps"),
        ("population_ancestry", "Ancestry components", components, "ancestry"),
    ]
    return [
        Figure(name, "measure_population", "Populations", title, name, sizes)
        for name, title, sizes, analysis in figures
        if analysis in analyses or (analyses and analysis == "diversity")
    ]


def ibd_figures(enabled: bool) -> list[Figure]:
    """Figures of `ibd`, if segments of diploids are sought."""
    drawn = (
        (
            "ibd",
            "Pairs by shared segments",
            "{n_ibd_segments} segments shared by {n_ibd_pairs} pairs.",
        ),
        ("families", "Families", "{n_ibd_close}."),
    )
    figures = [
        Figure(name, "relate_samples", "Identity by descent", title, name, sizes)
        for name, title, sizes in drawn
    ]
    return figures if enabled else []


def study_figures(
    config: dict, alphas: Sequence[str], placed: bool, phenotype: str = ""
) -> list[Figure]:
    """All figures of a study with this configuration; `alphas` as in file names.

    Parameters
    ----------
    placed : bool
        Whether its samples come from several places (`geography.coordinates.has_places`).
    phenotype : str
        As in `epistasis_figures`; a wildcard stands for all.
    """
    embedding = config["embedding"]
    return [
        *main_figures(
            config["geodesic"]["space"],
            alphas,
            embedding["further_maps"],
            bool(embedding["ensemble"]),
        ),
        *(imputation_figures() if config["impute"]["evaluate"] else []),
        *community_figures(config["communities"]["methods"]),
        *(painting_figures() if "painting" in config["communities"]["methods"] else []),
        *comparison_figures(config["compare"]["analyses"]),
        *ibd_figures(
            "ibd" in config["compare"]["analyses"] and config["contigs"]["haploid"] != ONLY_HAPLOID
        ),
        *geography_figures(placed),
        *population_figures(config["population"]["analyses"]),
        *site_scan_figures(config["epistasis"]["order"], phenotype),
        *epistasis_figures(config["epistasis"]["order"], phenotype),
        *power_figures(config["epistasis"]["order"] and config["epistasis"]["power"], phenotype),
        *set_figures(config["epistasis"]["sets"], phenotype),
    ]
