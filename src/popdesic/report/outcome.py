"""Results of a finished run, read once for the figures and the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel_steps import PanelStep, steps_of
from ..cohort.samples import describe_samples, join_sheet, read_samples
from ..components.axes import AXES
from ..core.files import read_json
from ..core.tables import read_table
from ..distance.landmarks import NearDistances
from ..distance.matrix import Distances
from .registry import Figure, main_figures

#: A sample is unstable if other seeds and parameters replace more than this share of its nearest
#: neighbours on a UMAP; a map is reported, and not shown first, if more than UNSTABLE_SHARE of its
#: samples are unstable.
#: In the space of PCs, 12 % of the samples are unstable on 957 people of HapMap3 and 7 % on 564 of
#: the 1000 Genomes; in the space of genotypes, 90 % and 86 % (tests/bench/bench_maps.py). The
#: limits separate these two cases.
UNSTABLE, UNSTABLE_SHARE = 0.5, 0.5


@dataclass(frozen=True)
class Outcome:
    """Tables and counts of one run.

    Attributes
    ----------
    folder : Path
        `results/`.
    cohorts, founders : list of str
        All cohorts in sample order, and the cohorts that define the panel.
    spaces, alphas : list of str
        Spaces and alphas of the geodesics, as in file names.
    samples : DataFrame
        The samples of the matrices and maps, in their order: `sample`, `cohort`, and the further
        columns of the sample sheet.
    qc : DataFrame
        All samples that were read: `sample`, `cohort`, numeric `call_rate` and `heterozygosity`,
        `keep`, `left_out` (the filter that excluded the sample), and the further columns of the
        sheet.
    summary : DataFrame
        `stage`, `cohort`, `step`, integer `count`.
    drift : DataFrame, one row per cohort
        `qc/drift.tsv`, numeric.
    panel : dict
        `panel/counts.json`.
    geodesics : dict
        Statistics by (space, alpha), each with `record`: how it was computed in this run.
    variance : dict
        Shares of the variance explained, by map: ``pca``, ``pcoa.{space}.alpha{alpha}``.
    axes : dict
        `embedding/pca.json`: how the axes of the PCA were defined, and their tests.
    further : list of str
        Optional kinds of map: ``densmap``, ``tsne``.
    instability : DataFrame or None
        One row per sample, with numeric columns `umap.{space}.alpha{alpha}`.
    choice : dict
        `geodesic/choice.json`: what `auto` stands for in each space; empty if nothing is `auto`.
    left_out : list of str
        Sentences on what a study without a matrix of all pairs does without.
    haploid : list of str
        Sentences on what a study of haploids, or of polyploids, does without.
    """

    folder: Path
    cohorts: list[str]
    founders: list[str]
    spaces: list[str]
    alphas: list[str]
    samples: pd.DataFrame
    qc: pd.DataFrame
    summary: pd.DataFrame
    drift: pd.DataFrame
    panel: dict
    geodesics: dict[tuple[str, str], dict]
    variance: dict[str, list[float]]
    axes: dict
    further: list[str] = field(default_factory=list)
    instability: pd.DataFrame | None = None
    choice: dict[str, dict] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    haploid: list[str] = field(default_factory=list)

    @property
    def newcomers(self) -> list[str]:
        return [cohort for cohort in self.cohorts if cohort not in self.founders]

    @property
    def steps(self) -> list[PanelStep]:
        """Steps from the founders' files to the panel."""
        return steps_of(self.panel)

    def maps(self) -> list[tuple[str, str]]:
        """(space, alpha) of every geodesic, in the order of the configuration."""
        return [(space, alpha) for space in self.spaces for alpha in self.alphas]

    def figures(self) -> list[Figure]:
        """Figures of the study's samples, sites, distances and maps."""
        has_instability = self.instability is not None
        return main_figures(self.spaces, self.alphas, self.further, has_instability)

    def is_repeated(self, space: str, alpha: str) -> bool:
        """Whether `auto` chose an alpha and graph that the study also has for a listed number."""
        return self.twin(space, alpha) is not None

    def twin(self, space: str, alpha: str) -> str | None:
        """The listed alpha with the same geodesics as `auto`."""
        own = self.geodesics.get((space, alpha))
        if alpha != "auto" or own is None:
            return None
        for listed in self.alphas:
            about = self.geodesics.get((space, listed))
            same = about and all(about[key] == own[key] for key in ("value", "graph"))
            if listed != "auto" and same:
                return listed
        return None

    def unstable_share(self, space: str, alpha: str) -> float:
        """Share of the samples that are unstable on the UMAP of these geodesics; 0 if unknown."""
        name = f"umap.{space}.alpha{alpha}"
        if self.instability is None or name not in self.instability:
            return 0.0
        return float((self.instability[name] > UNSTABLE).mean())

    def embedding(self, name: str) -> pd.DataFrame:
        """Coordinates of a map as numbers, with the columns of the sheet."""
        table = read_table(self.folder / "embedding/coordinates" / f"{name}.tsv")
        further = [column for column in self.samples if column not in table or column == "sample"]
        table = table.merge(self.samples[further], on="sample", how="left", validate="one_to_one")
        stem = AXES[name.split(".")[0].removesuffix("_refit")]
        for column in table.columns:
            if column.removeprefix(stem).isdigit():
                table[column] = pd.to_numeric(table[column], errors="coerce")
        return table


def load_outcome(
    folder: Path,
    sheet: Path,
    *,
    cohorts: list[str],
    founders: list[str],
    spaces: list[str],
    alphas: list[str],
    further: list[str] | None = None,
    ensemble: int = 0,
    chosen: bool = False,
    left_out: list[str] | None = None,
    haploid: list[str] | None = None,
) -> Outcome:
    """Read the tables of a run below `folder`; matrices and maps stay on disk.

    Parameters
    ----------
    ensemble : int
        `embedding.ensemble`; if it is not 0, instability was measured.
    chosen : bool
        Whether `geodesic.alpha` or `geodesic.pcs` is `auto`, so that there is a choice to read.
    """
    keys = [(space, alpha) for space in spaces for alpha in alphas]
    axes = read_json(folder / "embedding/pca.json")
    variance = {"pca": axes["variance_explained"]}
    for space, alpha in keys:
        name = f"pcoa.{space}.alpha{alpha}"
        about = read_json(folder / "embedding" / f"{name}.json")
        variance[name] = about["variance_explained"]
    summary = read_table(folder / "qc/summary.tsv")
    drift = read_table(folder / "qc/drift.tsv").set_index("cohort")
    numbers = [column for column in drift.columns if column != "founder"]
    drift[numbers] = drift[numbers].apply(pd.to_numeric, errors="coerce")
    return Outcome(
        folder=folder,
        cohorts=cohorts,
        founders=founders,
        spaces=spaces,
        alphas=alphas,
        samples=describe_samples(folder / "distance/samples.tsv", sheet),
        qc=_quality(folder, sheet, cohorts),
        summary=summary.assign(count=summary["count"].astype(np.int64)),
        drift=drift,
        panel=read_json(folder / "panel/counts.json"),
        geodesics={(s, a): _geodesic(folder / "geodesic" / s, a) for s, a in keys},
        variance=variance,
        axes=axes,
        further=further or [],
        instability=_instability(folder / "embedding/instability.tsv") if ensemble else None,
        choice=read_json(folder / "geodesic/choice.json") if chosen else {},
        left_out=left_out or [],
        haploid=haploid or [],
    )


def _instability(path: Path) -> pd.DataFrame:
    table = read_table(path).set_index("sample").apply(pd.to_numeric, errors="coerce")
    return table.rename(columns=lambda name: name.removeprefix("instability."))


def _geodesic(folder: Path, alpha: str) -> dict:
    record = read_json(folder / f"alpha{alpha}.run.json")
    return read_json(folder / f"alpha{alpha}.json") | {"record": record}


def _quality(folder: Path, sheet: Path, cohorts: list[str]) -> pd.DataFrame:
    measured = ["sample", "cohort", "call_rate", "heterozygosity", "keep", "left_out"]
    tables = [
        read_table(folder / "qc" / f"{cohort}.samples.tsv").assign(cohort=cohort)[measured]
        for cohort in cohorts
    ]
    table = pd.concat(tables, ignore_index=True)
    for column in ("call_rate", "heterozygosity"):
        table[column] = pd.to_numeric(table[column], errors="coerce")
    return join_sheet(table, read_samples(sheet))


def closest_pairs(
    distances: Distances | NearDistances, names: list[str], n_pairs: int
) -> pd.DataFrame:
    """The pairs of samples with the smallest distances.

    Returns
    -------
    DataFrame
        `sample_a`, `sample_b`, `distance` and `of_median` (distance over the median of all
        pairs), at most `n_pairs` rows, closest first, among equal ones in the order of the samples.
    """
    if isinstance(distances, NearDistances):
        return _described(distances.closest(n_pairs), distances, names)
    best: list[tuple[float, int, int]] = []
    for which, block in distances.blocks():
        first = int(which[0])
        later = block[:, first:]  # pairs with earlier samples were in earlier blocks
        least = best[-1][0] if len(best) == n_pairs else np.finfo(np.float64).max
        row, column = np.nonzero(later <= least)
        row, column = row[column > row], column[column > row]
        values = later[row, column]
        if len(values) > n_pairs:
            few = values <= np.partition(values, n_pairs - 1)[n_pairs - 1]
            values, row, column = values[few], row[few], column[few]
        pairs = zip(values.tolist(), which[row].tolist(), (first + column).tolist(), strict=True)
        best = sorted([*best, *pairs])[:n_pairs]
    return _described(best, distances, names)


def _described(
    best: list[tuple[float, int, int]], distances: Distances | NearDistances, names: list[str]
) -> pd.DataFrame:
    """The table of `closest_pairs`."""
    probed = distances.probe()
    median = float(np.median(probed)) if probed.size else np.nan
    return pd.DataFrame(
        [(names[i], names[j], d, d / median if median > 0 else np.nan) for d, i, j in best],
        columns=["sample_a", "sample_b", "distance", "of_median"],
    )


def read_if_there(path: Path) -> dict[str, Any]:
    """A JSON file, or nothing where the analysis did not run."""
    return read_json(path) if path.exists() else {}


def found_communities(results: Path, configuration: dict) -> dict[str, Any]:
    """`communities/communities.json`, or nothing where this run looks for none."""
    if not configuration["communities"]["methods"]:
        return {}
    return read_if_there(results / "communities/communities.json")
