"""Real people on a panel of the default filters, for golden tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from components import cohort_relationship

from popdesic.cohort.define_panel import build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.engine.select import select_backend
from popdesic.geodesic.measure import close_weights
from popdesic.io.bed import read_fam
from popdesic.study.configuration import load_config


@dataclass(frozen=True)
class People:
    """One set: names, labels (`population`, `superpopulation`), relationship."""

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


def load_people(data: Path, name: str, folder: Path) -> People:
    """The set `data`/`name`, its only VCF and samples.tsv; files in between go to `folder`."""
    (vcf,) = (data / name).glob("*.vcf.gz")
    ingest_cohort(vcf, folder / "raw", threads=2)
    paths = [folder / f for f in ("sites.qc", "samples.qc", "panel.tsv", "counts.json")]
    filters = load_config({})["panel"]
    filters.pop("ld_prune", None)
    summarize_cohort(folder / "raw", {}, *paths[:2], min_sample_call_rate=0.0)
    build_panel({"only": paths[0]}, *paths[2:], **filters)
    encode_cohort(folder / "raw", paths[1], paths[2], folder, impute="mode", cohort="only")
    sites, _ = load_panel(paths[2])
    related = cohort_relationship([folder / "genotypes"], sites.af.to_numpy(), 2)
    names = list(read_fam(folder / "genotypes")["sample"])
    sheet = pd.read_csv(data / name / "samples.tsv", sep="\t", dtype=str)
    labels = sheet.set_index("sample_id").loc[names, ["population", "superpopulation"]]
    return People(names, labels, related, len(sites))
