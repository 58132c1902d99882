"""Epistasis scans of real and simulated data, compared with BitEpi's published tables.

BitEpi ranks by beta (purity of the cells) and alpha (beta minus the best beta with one site fewer);
we scan by K2 or mutual information and list alpha and beta of each hit. The tests compare every
alpha and beta to the six digits that BitEpi prints, check that none of its hits is missed, and
compare the top loci. Sites identical in every sample give exact ties, so loci count, not names.
"""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cyvcf2 import VCF
from oracles.published_scores import all_scores

import popdesic
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.reorder import reorder_sites, split_classes
from popdesic.epistasis.scan_data import Hits, ScanData
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import scale_bits, score_tables
from popdesic.epistasis.significance import bitepi_alpha, bitepi_beta, hit_tables


class Real:
    """A VCF and its phenotypes as scan data; hits are returned as site names."""

    def __init__(self, vcf: Path, sheet: Path, chosen: set[str] | None = None, key="sample_id"):
        file = VCF(str(vcf), gts012=True)
        found = [
            ((r.CHROM, r.POS, r.ID, r.REF, r.ALT[0]), r.gt_types.astype(np.int8))
            for r in file
            if chosen is None or r.ID in chosen
        ]
        samples = pd.read_csv(sheet, sep="\t", dtype=str).set_index(key)
        case = (samples.phenotype.loc[file.samples] == "1").to_numpy()
        order = np.argsort(case, kind="stable")
        genotypes = np.stack([g for _, g in found])[:, order]
        genotypes[genotypes == 3] = -1
        n_controls = int((~case).sum())
        every = np.arange(len(genotypes))
        words, sites, _ = reorder_sites(lambda part: genotypes[part], every, n_controls)
        rank = sites["rank"].to_numpy()
        self.genotypes = genotypes[rank]
        self.sites = [found[k][0] for k in rank]
        self.n_controls = n_controls
        classes = split_classes(words, n_controls, int(case.sum()))
        self.classes, self.rank = classes, rank.astype(np.int32)
        self.row = {site[2]: row for row, site in enumerate(self.sites)}

    def hits(self, order: int, top: int = 1000, score: str = "k2_excess") -> np.ndarray:
        return self.scan(order, top, score).sites

    def scan(self, order: int, top: int, score: str) -> Hits:
        backend = CpuBackend(2)
        tables = score_tables(score, *(one.n_samples for one in self.classes))
        data = ScanData(self.classes, *tables, self.rank)
        scan = partial(scan_pairs if order == 2 else scan_triples, backend)
        return scan(data, range(len(self.sites)), top)

    def names(self, members) -> set[str]:
        return {self.sites[m][2] for m in members}

    def contigs(self, members) -> set[str]:
        return {self.sites[m][0].removeprefix("chr") for m in members}

    def table(self, *names: str) -> np.ndarray:
        return hit_tables(self.genotypes[[self.row[name] for name in names]], self.n_controls)

    def differences(self, path: Path, measure) -> float:
        """Largest difference from BitEpi's published values."""
        published = pd.read_csv(path)
        return max(
            abs(measure(self.table(*names)) - value)
            for value, *names in published.itertuples(index=False)
        )


#: BitEpi prints six digits: half of the last digit, plus rounding of float64 sums.
PRINTED = 5.01e-7


def alpha_of_one(table: np.ndarray) -> float:
    """BitEpi's alpha of a single site: its beta minus that of the empty set."""
    return bitepi_beta(table) - bitepi_beta(table.sum(axis=1, keepdims=True))


MEASURES = {
    "Alpha.1": alpha_of_one,
    "Alpha.2": bitepi_alpha,
    "Alpha.3": bitepi_alpha,
    "Beta.2": bitepi_beta,
    "Beta.3": bitepi_beta,
}


@pytest.fixture(scope="module")
def folder(shared_data) -> Path:
    return shared_data / "mice1814"


@pytest.fixture(scope="module")
def panel(folder) -> Real:
    """Black coat: 14 sites per chromosome and those at the loci of agouti, Tyrp1 and Tyr."""
    chosen = set((folder / "ref_BitEpi_black_triples_panel.snps.txt").read_text().split())
    return Real(folder / "hs_mice.vcf.gz", folder / "samples.tsv", chosen)


@pytest.fixture(scope="module")
def simulated(shared_data) -> Real:
    stem = shared_data / "gametes" / "bitepi_example123"
    return Real(stem.with_suffix(".vcf.gz"), stem.with_suffix(".samples.tsv"))


@pytest.mark.parametrize("table", MEASURES)
def test_alpha_and_beta_of_the_black_coat_equal_those_of_bitepi(panel, folder, table):
    path = folder / f"ref_BitEpi_black_triples_panel.{table}.csv"
    assert panel.differences(path, MEASURES[table]) < PRINTED


@pytest.mark.parametrize("table", ["Alpha.1", "Alpha.2", "Alpha.3"])
def test_alphas_of_the_simulated_set_equal_those_of_bitepi(simulated, shared_data, table):
    path = shared_data / "gametes" / f"bitepi_example123_DS.{table}.csv"
    assert simulated.differences(path, MEASURES[table]) < PRINTED


@pytest.mark.parametrize(
    ("order", "loci", "bitepi", "by_score"),
    [
        (2, {"2", "4"}, 9, {"k2_excess": 9, "mutual_information": 9}),
        (3, {"2", "4", "7"}, 18, {"k2_excess": 18, "mutual_information": 18}),
    ],
)
def test_black_coat_maps_to_chromosomes_2_and_4_and_triples_add_7(
    panel, folder, order, loci, bitepi, by_score
):
    """Number of hits there before the first elsewhere; without centring K2 has 12 triples."""
    published = pd.read_csv(folder / f"ref_BitEpi_black_triples_panel.Beta.{order}.csv")
    names = [row[1:] for row in published.itertuples(index=False)]
    found = [[panel.row[name] for name in members] for members in names]
    for hits, least in [(found, bitepi)] + [
        (panel.hits(order, 100, score), least) for score, least in by_score.items()
    ]:
        elsewhere = [panel.contigs(hit) != loci for hit in hits]
        assert elsewhere.index(True) == least
        # The same six combinations lead under every measure.
        leading = {frozenset(panel.names(hit)) for hit in hits[:6]}
        assert leading == {frozenset(members) for members in names[:6]}


def test_all_pairs_of_bitepi_are_found(panel, folder):
    """A scan that keeps all pairs has the published thousand as its top thousand by beta."""
    n = len(panel.sites)
    hits = panel.hits(2, n * n)
    assert len(hits) == n * (n - 1) // 2
    states = panel.genotypes
    cell = 3 * states[hits[:, 0]] + states[hits[:, 1]]
    counts = np.stack([(cell == k).sum(axis=1) for k in range(9)])
    cases = np.stack([(cell[:, panel.n_controls :] == k).sum(axis=1) for k in range(9)])
    purity = (cases**2 + (counts - cases) ** 2) / np.maximum(counts, 1)
    beta = np.sort(purity.sum(axis=0) / states.shape[1])[::-1]
    published = pd.read_csv(folder / "ref_BitEpi_black_triples_panel.Beta.2.csv").Beta
    assert np.abs(beta[: len(published)] - published).max() < PRINTED


def test_planted_models_are_found(simulated):
    """By K2 the single site leads both scans; alpha separates the planted pair and triple."""
    for order, model in ((2, {"M1P2", "M1P3"}), (3, {"M2P4", "M2P5", "M2P6"})):
        hits = simulated.hits(order, 2500)
        assert simulated.names(hits[0]) >= {"M0P1"}
        best = max(hits, key=lambda hit: bitepi_alpha(simulated.table(*simulated.names(hit))))
        assert simulated.names(best) == model
    planted = {"M1P2", "M1P3", "M0P1"}  # the planted pair and the planted single site
    assert simulated.names(simulated.hits(3, 1)[0]) == planted


@pytest.mark.parametrize("order", [2, 3])
def test_best_by_the_formulas_of_the_papers(simulated, order):
    """BitEpi's example, all combinations by a slow program of its own: the same best hundred."""
    n, controls = simulated.genotypes.shape[1], simulated.n_controls
    case = np.arange(n) >= controls
    members, published = all_scores(simulated.genotypes, case.astype(int), order)
    for score, sign in (("k2", 1), ("mutual_information", -1), ("gini", 1)):
        values = sign * published[score]
        best = np.argsort(values, kind="stable")[:100]
        hits = simulated.scan(order, 100, score)
        ours = np.diff(hits.cost / 2.0 ** scale_bits(n))
        unit = {"k2": 1, "mutual_information": n, "gini": n / 2}[score]
        assert ours == pytest.approx(np.diff(values[best]) * unit, abs=1e-6)
        first = values[best] < values[best[-1]] - 1e-12
        wanted = {tuple(row) for row in members[best[first]].tolist()}
        assert {tuple(row) for row in hits.sites[first].tolist()} == wanted


def test_gini_ranks_as_a_run_of_bitepi(simulated, shared_data, require_command, tmp_path):
    """Its beta, by its own program, as g++ builds it."""
    require_command("BitEpi", "build it of BitEpi.cpp and csvparser.c of github.com/aehrc/BitEpi")
    stem = shared_data / "gametes" / "bitepi_example123_DS"
    command = f"BitEpi -i {stem} -bfile -o {tmp_path / 'out'} -t 1 -sort -b2 100 -b3 100"
    subprocess.run(command.split(), check=True, capture_output=True, cwd=tmp_path)
    for order in (2, 3):
        table = pd.read_csv(tmp_path / f"out.Beta.{order}.csv")
        hits = simulated.hits(order, 100, "gini")
        ours = [bitepi_beta(simulated.table(*simulated.names(hit))) for hit in hits]
        assert np.abs(table.Beta.to_numpy() - ours).max() < PRINTED
        wanted = [frozenset(row[1:]) for row in table.itertuples(index=False)]
        sure = table.Beta > table.Beta.iloc[-1] + 2 * PRINTED
        assert {frozenset(simulated.names(hit)) for hit in hits[sure]} == {
            names for names, one in zip(wanted, sure, strict=True) if one
        }


def test_interactions_of_pairs_equal_those_of_boost_in_plink(tmp_path, require_command):
    """All pairs of `plink1.9 --fast-epistasis boost`, to the digits that it prints.

    PLINK counts four degrees of freedom also where a combination of genotypes does not occur.
    """
    require_command("plink1.9")
    rng = np.random.default_rng(1)
    n, n_sites = 1500, 14
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.5, n_sites), (n, n_sites))
    odds = 0.6 * genotypes[:, 0] + 0.8 * (genotypes[:, 2] > 0) * (genotypes[:, 3] > 0) - 1
    case = rng.random(n) < 1 / (1 + np.exp(-odds))
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    letters = np.array(["A A", "A C", "C C", "0 0"])[genotypes]
    with open(tmp_path / "a.ped", "w") as file:
        for k, row in enumerate(letters):
            file.write(f"f{k} i{k} 0 0 1 {1 + int(case[k])} {' '.join(row)}\n")
    (tmp_path / "a.map").write_text("".join(f"{k + 1} {k} 0 1000\n" for k in range(n_sites)))
    command = "plink1.9 --file a --fast-epistasis boost --epi1 1 --allow-no-sex --out a"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    theirs = pd.read_csv(tmp_path / "a.epi.cc", sep=r"\s+").set_index(["SNP1", "SNP2"])
    ours = popdesic.scan(genotypes, case, top=1000, max_r2=1, device="cpu").set_index(
        ["site1", "site2"]
    )
    assert len(theirs) == len(ours) == n_sites * (n_sites - 1) // 2
    joined = ours.join(theirs.rename_axis(["site1", "site2"]))
    assert (joined.lr_chi2 - joined.STAT).abs().max() < 5.1e-5
    tables = [
        joined[name].str.split(",", expand=True).astype(int) for name in ("controls", "cases")
    ]
    absent = (tables[0] + tables[1] == 0).sum(axis=1)
    assert (joined.lr_df == joined.DF - absent).all() and 0 < (absent > 0).sum() < 20
    same = joined[absent == 0]
    assert (same.lr_p - same.P).abs().max() < 5.1e-5
