"""Where scans, PLINK 1.9 and BitEpi rank what is true, or believed, in real and published data.

`mice1814`: heterogeneous-stock mice, black coat against all others (485 of 1 814). Agouti (chr2),
Tyrp1 (chr4) and Tyr (chr7) make it: an agouti, brown or albino mouse is not black whatever the
other two say. Many sites of a locus tell the same, so loci count, not sites. `gametes`: simulated
sets of BitEpi and of scikit-rebate with a planted pair or triple. `asthma1578`: 51 sites of
candidate genes; no interaction is known.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from cyvcf2 import VCF

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.evidence import Prior, candidates_of
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.priority import strength_of
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_data import merge_hits
from popdesic.epistasis.scan_sites import scanner
from popdesic.epistasis.scores import make_scan_data
from popdesic.epistasis.significance import hit_tables
from popdesic.epistasis.single_sites import SiteTests

from .peers import TESTS, run_plink

#: Hits of a scan among which the truth is looked for.
TOP = 2000
Combination = tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """Genotypes int8 (n_sites, n_people), -1 missing, controls first; names and contigs."""

    genotypes: np.ndarray
    n_controls: int
    names: list[str]
    contigs: list[str]

    @classmethod
    def of(cls, genotypes: np.ndarray, case: np.ndarray, names, contigs) -> Study:
        order = np.argsort(case, kind="stable")
        sites = np.ascontiguousarray(genotypes[:, order])
        return cls(sites, int((~case).sum()), list(names), list(contigs))

    @classmethod
    def of_vcf(cls, vcf: Path, sheet: Path, chosen: Path | None = None) -> Study:
        """The sites of a VCF, or those that a file lists; sample_id and phenotype of the sheet."""
        listed = None if chosen is None else set(chosen.read_text().split())
        file = VCF(str(vcf), gts012=True)
        found = [
            (r.ID, r.CHROM.removeprefix("chr"), r.gt_types.astype(np.int8))
            for r in file
            if listed is None or r.ID in listed
        ]
        names, contigs, rows = zip(*found, strict=True)
        genotypes = np.stack(rows)
        genotypes[genotypes == 3] = -1
        phenotype = pd.read_csv(sheet, sep="\t", dtype=str).set_index("sample_id").phenotype
        return cls.of(genotypes, (phenotype.loc[file.samples] == "1").to_numpy(), names, contigs)

    @classmethod
    def of_rebate(cls, path: Path) -> Study:
        """A set of scikit-rebate: the phenotype is the last column; a number above the median."""
        table = pd.read_csv(path, sep="\t")
        phenotype = table.pop(table.columns[-1])
        case = phenotype == 1 if phenotype.nunique() == 2 else phenotype > phenotype.median()
        genotypes = table.fillna(-1).to_numpy(np.int8).T
        return cls.of(genotypes, case.to_numpy(), table.columns, ["1"] * len(genotypes))

    def loci(self, members: Combination) -> Combination:
        """Contigs of some sites, sorted."""
        where = dict(zip(self.names, self.contigs, strict=True))
        return tuple(sorted(where[name] for name in members))

    def tests(self, order: int) -> int:
        varying = sum(len(set(row[row >= 0].tolist())) > 1 for row in self.genotypes)
        return math.comb(varying, order)

    def scan(
        self, order: int, score: str = "interaction", top: int = TOP, *, by_main_effects=False
    ) -> pd.DataFrame:
        """Our hits, best first: names of their sites (`members`), `lr_chi2`, corrected `p`.

        p is that of the chi-square distribution times all tests, as for PLINK's statistics, not the
        `p_interaction` of the workflow, which takes longer. `by_main_effects`: times the tests of
        each hit, in the order of the workflow's list; sites of one contig are in cis, if there are
        several.
        """
        n0, n1 = self.n_controls, self.genotypes.shape[1] - self.n_controls
        every = np.arange(len(self.genotypes))
        words, sites, _ = reorder_sites(lambda part: self.genotypes[part], every, n0)
        backend = CpuBackend(1)
        data = make_scan_data(words, sites, n0, n1, score)
        hits = merge_hits([scanner(backend, order)(data, range(data.n_sites), top)], data.rank, top)
        prior = None
        if by_main_effects:
            case = (np.arange(n0 + n1) >= n0).astype(float)
            null = fit_null(case, np.empty((len(case), 0)), "logistic")
            tests = SiteTests(null).test(self.genotypes[sites["rank"]])
            prior = Prior(strength_of(tests), backend)
            if len(set(self.contigs)) > 1:
                sites = sites.assign(chrom=np.array(self.contigs)[sites["rank"]], pos=0)
        best = candidates_of(hits, words, sites, (n0, n1), prior, tests=self.tests(order), top=top)
        rows = np.sort(data.rank[best.hits.sites], axis=1)
        tested = [interaction_test(hit_tables(self.genotypes[row], n0)) for row in rows]
        lr, _, p = np.array(tested).T
        members = [tuple(self.names[k] for k in row) for row in rows]
        p = np.minimum(1.0, p * best.tests)
        return pd.DataFrame({"members": members, "lr_chi2": lr, "p": p})

    def plink(self, test: str, least_p: float = 0.01) -> pd.DataFrame:
        """PLINK's pairs, best first, in the same columns (`statistic`, corrected `p`)."""
        with tempfile.TemporaryDirectory() as folder:
            found = run_plink(test, self.genotypes, self.n_controls, Path(folder), least_p)
        found = found.sort_values("statistic", ascending=False, kind="stable")
        pairs = found[["site1", "site2"]].to_numpy()
        found["members"] = [tuple(self.names[k] for k in row) for row in pairs]
        return found.assign(p=np.minimum(1.0, found.p * self.tests(2)))


def bitepi(path: Path) -> list[Combination]:
    """Combinations of a published table of BitEpi, best first."""
    return list(pd.read_csv(path).iloc[:, 1:].itertuples(index=False, name=None))


def rank_of(members: list[Combination], true: Callable[[Combination], bool]) -> int | None:
    """Rank of the first true combination, or None."""
    return next((k for k, one in enumerate(members, 1) if true(one)), None)


def rank_of_loci(study: Study, members: list[Combination], true) -> int | None:
    """Rank of the first true combination among those of different contigs, each set once."""
    seen: list[Combination] = []
    for one in members:
        loci = study.loci(one)
        if len(set(loci)) == len(loci) and loci not in seen:
            seen.append(loci)
            if true(one):
                return len(seen)
    return None


def leading(members: list[Combination], true: Callable[[Combination], bool]) -> int:
    """How many are true before the first that is not."""
    return (rank_of(members, lambda one: not true(one)) or len(members) + 1) - 1


@dataclass(frozen=True)
class Question:
    """A data set, an order, what is true of a hit, and BitEpi's published ranking of it."""

    data: str
    order: int
    truth: str
    study: Callable[[], Study]
    true: Callable[[Study, Combination], bool]
    published: Path | None = None
    peers: bool = True


def questions(data: Path) -> list[Question]:
    """What is asked of the data in this folder."""
    mice, sets, asthma = data / "mice1814", data / "gametes", data / "asthma1578"

    def of_mice(chosen: str) -> Study:
        return Study.of_vcf(
            mice / "hs_mice.vcf.gz", mice / "samples.tsv", mice / f"{chosen}.snps.txt"
        )

    def at(*contigs: str) -> Callable[[Study, Combination], bool]:
        return lambda study, members: study.loci(members) == contigs

    def named(*sites: str) -> Callable[[Study, Combination], bool]:
        return lambda _, members: set(members) == set(sites)

    def simulated() -> Study:
        stem = sets / "bitepi_example123"
        return Study.of_vcf(stem.with_suffix(".vcf.gz"), stem.with_suffix(".samples.tsv"))

    def of_asthma() -> Study:
        return Study.of_vcf(asthma / "asthma.vcf.gz", asthma / "samples.tsv")

    rebate = {
        "GAMETES 0.4H": ("GAMETES_2way_20atts_0.4H_EDM-1_1", ("P1", "P2")),
        "GAMETES 10 % missing": (
            "GAMETES_2way_missing_values_0.1_a_20s_1600her_0.4__maf_0.2_EDM-2_01",
            ("M0P0", "M0P1"),
        ),
        "GAMETES, number > median": (
            "GAMETES_2way_continuous_endpoint_a_20s_1600her_0.4__maf_0.2_EDM-2_01",
            ("M0P0", "M0P1"),
        ),
    }
    published = {
        "panel": mice / "ref_BitEpi_black_triples_panel",
        "all": mice / "ref_BitEpi_black_pairs_all",
        "example": sets / "bitepi_example123_DS",
        "asthma": asthma / "ref_BitEpi_all",
    }

    def alpha(name: str, order: int) -> Path:
        return published[name].with_name(f"{published[name].name}.Alpha.{order}.csv")

    def of_panel() -> Study:
        return of_mice(published["panel"].name)

    def of_all() -> Study:
        return of_mice(published["all"].name)

    pair, triple = ("M1P2", "M1P3"), ("M2P4", "M2P5", "M2P6")
    panel, example, genes = "mice, 286 sites", "BitEpi's example", "asthma, 51 sites"
    found = [
        Question(panel, 2, "chr 2 x 4", of_panel, at("2", "4"), alpha("panel", 2)),
        Question(panel, 3, "chr 2 x 4 x 7", of_panel, at("2", "4", "7"), alpha("panel", 3)),
        Question("mice, all sites", 2, "chr 2 x 4", of_all, at("2", "4"), alpha("all", 2), False),
        Question(example, 2, " x ".join(pair), simulated, named(*pair), alpha("example", 2)),
        Question(example, 3, " x ".join(triple), simulated, named(*triple), alpha("example", 3)),
        Question(genes, 2, "LR's best pair", of_asthma, named(), alpha("asthma", 2)),
        Question(genes, 3, "LR's best triple", of_asthma, named(), alpha("asthma", 3)),
    ]
    for name, (file, sites) in rebate.items():
        path = sets / f"rebate_{file}.tsv.gz"
        read = partial(Study.of_rebate, path)
        found.append(Question(name, 2, " x ".join(sites), read, named(*sites)))
    return found


def answers(question: Question, plink: bool) -> Iterator[tuple]:
    """Rows of the table: tool, rank of the truth, by loci, leading, statistic, corrected p."""
    study, order = question.study(), question.order
    ours = study.scan(order)
    best = set(ours.members[0])

    def true(members: Combination) -> bool:
        if question.truth.startswith("LR's"):
            return set(members) == best
        return question.true(study, members)

    def row(tool: str, members: list[Combination], statistic=None, p=None) -> tuple:
        rank = rank_of(members, true)
        shown = ["", ""]
        if rank is not None and statistic is not None:
            shown = [f"{statistic[rank - 1]:.1f}", f"{p[rank - 1]:.2g}"]
        said = str(rank) if rank else f"not in {len(members)}"
        loci = rank_of_loci(study, members, true) if question.truth.startswith("chr") else None
        return (tool, said, loci or "", leading(members, true), *shown)

    yield row("LR", list(ours.members), ours.lr_chi2, ours.p)
    ours = study.scan(order, by_main_effects=True)
    yield row("prior", list(ours.members), ours.lr_chi2, ours.p)
    for tool, score in (("K2", "k2_excess"), ("MI", "mutual_information")):
        yield row(tool, list(study.scan(order, score).members))
    if order == 2 and plink and question.peers:
        for test in TESTS:
            found = study.plink(test).reset_index(drop=True)
            yield row(test, list(found.members), found.statistic, found.p)
    if question.published is not None:
        yield row("BitEpi alpha", bitepi(question.published))


def print_real(data: Path, plink: bool, quick: bool) -> None:
    """Print one table for all questions; `quick`: for those of 20 sites.

    rank: of the first true combination in the tool's list; loci: the same among combinations of
    different chromosomes, each set of chromosomes once; leading: true combinations before the first
    other one; statistic and p, corrected for all tests, of the first true one.
    """
    from timing import print_table  # beside the benchmarks

    if not data.is_dir():
        raise SystemExit(f"Error: {data} is not a folder; give that of the real data.")
    rows = [
        (question.data, question.truth, *row)
        for question in questions(data)
        if not quick or question.data.startswith("GAMETES")
        for row in answers(question, plink)
    ]
    header = ("data", "truth", "tool", "rank", "loci", "leading", "statistic", "p, all tests")
    print_table("Ranks of what is true", header, rows)
