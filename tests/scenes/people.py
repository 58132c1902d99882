"""Real people on a panel of the default filters, for golden tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from oracles.components import cohort_relationship

from popdesic.cohort.contigs import genome_of_cohorts
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.distance.measure_tile import measure_tile
from popdesic.distance.tiles import tile_counts, tile_outputs
from popdesic.engine.select import select_backend
from popdesic.geodesic.measure import close_weights
from popdesic.io.bed import read_fam
from popdesic.study.configuration import fill_config


@dataclass(frozen=True)
class People:
    """One data set: names, labels (`population`, `superpopulation`), relationship."""

    names: list[str]
    labels: pd.DataFrame
    relationship: np.ndarray
    n_sites: int

    def distances(self) -> np.ndarray:
        """Distances of standardised genotypes, float64 (n, n)."""
        own = np.diag(self.relationship)
        return np.sqrt(np.maximum(own[:, None] + own - 2 * self.relationship, 0))

    def geodesics(self, distances: np.ndarray, alpha: float = 2.0) -> np.ndarray:
        """Fermat distances of everyone, float64 (n, n)."""
        everyone, backend = np.ones(len(self.names), bool), select_backend("cpu", 2)
        closed = close_weights(distances, everyone, self.names, backend, alpha=alpha, number="auto")
        return closed.number.value(closed.lengths)


#: Keeps every site.
NO_FILTERS = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}


def encode_alone(
    raw: Path, out: Path, filters: dict | None = None, populations: dict[str, str] | None = None
) -> None:
    """Write to `out` a panel of one cohort, by default of all its sites, and the cohort on it."""
    filters = NO_FILTERS if filters is None else filters
    tables = out / "sites.qc", out / "samples.qc"
    summarize_cohort(raw, populations or {}, *tables, min_sample_call_rate=0.0)
    build_panel(
        {"only": out / "sites.qc"}, out / "panel.tsv", out / "counts.json", PanelFilters(**filters)
    )
    encode_cohort(raw, out / "samples.qc", out / "panel.tsv", out, impute="mode", cohort="only")


def measure_alone(folder: Path, metric: str) -> dict[str, np.ndarray]:
    """The diagonal tile of the cohort encoded in `folder`, measured on the CPU."""
    out = folder / f"{metric}.npz"
    measure_tile(folder, folder, out, select_backend("cpu", 2), metric=metric, missing="pairwise")
    with np.load(out) as arrays:
        counts = {name: tile_counts(arrays, name) for name in tile_outputs(metric)}
        return counts | {"n_sites": arrays["n_sites"]}


def load_people(data: Path, name: str, folder: Path) -> People:
    """Load `data`/`name` from its only VCF and samples.tsv; `folder` takes intermediate files."""
    (vcf,) = (data / name).glob("*.vcf.gz")
    ingest_cohort(vcf, folder / "raw", threads=2)
    filters = fill_config({})["panel"]
    filters.pop("ld_prune", None)
    genome = genome_of_cohorts([folder / "raw.json"])
    filters["exclude_contigs"] = genome.excluded(fill_config({})["contigs"]["exclude"])
    sheet = pd.read_csv(data / name / "samples.tsv", sep="\t", dtype=str).set_index("sample_id")
    # As in a study with labels: Hardy-Weinberg proportions are tested within populations.
    encode_alone(folder / "raw", folder, filters, sheet.population.to_dict())
    sites, _ = load_panel(folder / "panel.tsv")
    related = cohort_relationship([folder / "genotypes"], sites.af.to_numpy(), 2)
    names = list(read_fam(folder / "genotypes")["sample"])
    labels = sheet.loc[names, ["population", "superpopulation"]]
    return People(names, labels, related, len(sites))
