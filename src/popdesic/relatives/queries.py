"""Queries: search profiles in all cohorts, and compare mixtures with every sample."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.absent import Absent
from ..cohort.encode import encode_cohort
from ..cohort.ingest import ingest_cohort
from ..cohort.panel import load_panel
from ..cohort.planes import load_planes
from ..core.errors import UserError
from ..core.tables import write_table
from ..distance.tiles import limit_in_words, require_one_panel, within_panel
from ..engine.backend import Backend
from ..engine.terms import Planes
from ..io.bed import read_fam
from ..io.call_filters import CallFilters
from . import identity, mixture
from .find_matches import top_matches, top_references
from .matches import TopMatches
from .resolution import Resolution

#: Best matches that are listed for a query.
BEST = 5

QUERY_COLUMNS = ["query", "rank", "match", "match_cohort", "called", "mismatches"]
QUERY_COLUMNS += ["mismatch_share", "log10_rmp", "log10_lr", "verdict"]
MIXTURE_COLUMNS = ["mixture", "rank", "reference", "reference_cohort", "contributors", "called"]
MIXTURE_COLUMNS += ["absent", "absent_share", "log10_lr", "log10_rmne", "random_inclusions"]
MIXTURE_COLUMNS += ["verdict"]


def place_profiles(
    source: Path,
    panel: Path,
    out: Path,
    *,
    haploid: str,
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    threads: int = 1,
    impute: str = "none",
    excluded: Collection[str] = (),
    excluded_contigs: Collection[str] = (),
) -> dict[str, int]:
    """Decode a file of profiles and place it on the panel like a cohort, keeping all samples.

    `haploid`, `filters`, `excluded_contigs`: as in `ingest_cohort`; `impute`: as in
    `encode_cohort`; `excluded`: samples of the file to leave out.

    Raises
    ------
    UserError
        As for a cohort: no biallelic SNP, no panel site, a profile without a called site.
    """
    ingest_cohort(
        source,
        out / "raw",
        haploid=haploid,
        filters=filters,
        excluded=excluded,
        excluded_contigs=excluded_contigs,
        threads=threads,
    )
    names = read_fam(out / "raw")["sample"]
    write_table(out / "samples.tsv", pd.DataFrame({"sample": names, "keep": "yes"}))
    return encode_cohort(
        out / "raw",
        out / "samples.tsv",
        panel,
        out,
        impute=impute,
        cohort=source.name,
        threads=threads,
        absent=Absent("missing"),
        keep_all=True,
    )


class _Database:
    """The memory-mapped planes of all cohorts."""

    def __init__(self, profiles: Path, cohorts: list[Path]):
        self.planes, self.about = load_planes(profiles)
        self.parts: list[tuple[Planes, dict]] = []
        for folder in cohorts:
            planes, about = load_planes(folder)
            require_one_panel(profiles, self.about, folder, about)
            # Imputed genotypes are not evidence: masked if a mask is stored.
            self.parts.append((planes, about))
        self.starts = np.cumsum([0, *(planes.n_samples for planes, _ in self.parts)])

    def locate(self, index: int) -> tuple[str, str, np.ndarray]:
        """Name, cohort and genotypes (1, n_sites) of a sample in the database."""
        part = int(np.searchsorted(self.starts, index, "right")) - 1
        planes, about = self.parts[part]
        row = index - self.starts[part]
        genotypes = identity.genotypes_of(planes, np.array([row]))
        return about["samples"][row], about["cohort"], genotypes

    def require_matches(self, best: TopMatches, min_called: int, what: str) -> None:
        """Raise if a profile shares too few called sites with every sample."""
        limit = limit_in_words(min_called, self.planes.n_sites)
        for name, index in zip(self.about["samples"], best.index, strict=True):
            if index[0] < 0:
                raise UserError(
                    f"{self.about['cohort']}: {what} '{name}' has fewer than "
                    f"{limit} jointly called sites with any of the "
                    f"{self.starts[-1]} samples; genotype it at more panel sites or lower "
                    "distance.min_called."
                )


def search_queries(
    profiles: Path,
    cohorts: list[Path],
    panel: Path,
    out: Path,
    backend: Backend,
    *,
    top: int = BEST,
    min_called: int,
    resolution: Resolution,
    error_rate: float,
    ploidy: int = 2,
) -> pd.DataFrame:
    """The best matches of each query profile among all cohorts.

    Parameters
    ----------
    profiles : Path
        Folder of `place_profiles`.
    cohorts : list of Path
        Folders of `planes.npy`, in sample order.
    out : Path
        `compare/identity.query.tsv`, `top` rows per query, best first.
    resolution : Resolution
        What the panel can distinguish, and how far samples of one person may differ.
    ploidy : int
        Of the study: 2, or 1.

    Raises
    ------
    UserError
        Different panels, or a query without enough jointly called sites with any sample.
    """
    database = _Database(profiles, cohorts)
    af = load_panel(panel)[0].af.to_numpy()
    least = within_panel(min_called, database.planes.n_sites)
    best = TopMatches(database.planes.n_samples, top)
    for (planes, _), start in zip(database.parts, database.starts, strict=False):
        found = top_matches(backend, database.planes, planes, top, least)
        best.merge(found, int(start))
    database.require_matches(best, min_called, "query")
    rows = []
    for query, rank in np.argwhere(best.index >= 0):
        name, cohort, genotypes = database.locate(int(best.index[query, rank]))
        own = identity.genotypes_of(database.planes, np.array([query]))
        rmp, ratio = identity.match_statistics(own, genotypes, af, error_rate, ploidy)
        mismatches, called = int(best.mismatches[query, rank]), int(best.called[query, rank])
        row = (database.about["samples"][query], rank + 1, name, cohort, called, mismatches)
        verdict = resolution.verdict(mismatches, called)
        rows.append((*row, mismatches / called, rmp[0], ratio[0], verdict))
    table = pd.DataFrame(rows, columns=QUERY_COLUMNS)
    write_table(out, table)
    return table


def search_mixtures(
    profiles: Path,
    cohorts: list[Path],
    panel: Path,
    out: Path,
    backend: Backend,
    *,
    top: int = mixture.MOST_REFERENCES,
    min_called: int,
    contributors: int | str = "auto",
    dropout: float = mixture.DROPOUT,
    drop_in: float = mixture.DROP_IN,
) -> pd.DataFrame:
    """Possible contributors to each mixture: the references with fewest absent alleles.

    Parameters
    ----------
    contributors : int or ``auto``
        Number of people in each mixture.
    out : Path
        `compare/mixture.query.tsv`, `top` rows per mixture.
    """
    database = _Database(profiles, cohorts)
    af = load_panel(panel)[0].af.to_numpy()
    least = within_panel(min_called, database.planes.n_sites)
    best = TopMatches(database.planes.n_samples, top)
    for (planes, _), start in zip(database.parts, database.starts, strict=False):
        found = top_references(backend, database.planes, planes, top, least)
        best.merge(found, int(start))
    database.require_matches(best, min_called, "mixture")
    errors = {"dropout": dropout, "drop_in": drop_in}
    rows = []
    for number, name in enumerate(database.about["samples"]):
        shows = identity.genotypes_of(database.planes, np.array([number]))[0]
        people = (
            mixture.count_contributors(shows, af, **errors)
            if contributors == "auto"
            else contributors
        )
        for rank in np.flatnonzero(best.index[number] >= 0):
            reference, cohort, genotypes = database.locate(int(best.index[number, rank]))
            ratio = mixture.likelihood_ratios(shows, genotypes, af, people, **errors)[0]
            absent, called = int(best.mismatches[number, rank]), int(best.called[number, rank])
            jointly = np.where(genotypes[0] >= 0, shows, -1)
            rmne = mixture.log10_rmne(jointly, af, absent)
            row = (name, rank + 1, reference, cohort, people, called, absent, absent / called)
            expected = int(database.starts[-1]) * 10.0**rmne
            rows.append((*row, ratio, rmne, expected, mixture.verdict(ratio)))
    table = pd.DataFrame(rows, columns=MIXTURE_COLUMNS)
    write_table(out, table)
    return table
