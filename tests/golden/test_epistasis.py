"""Epistasis scans of real and published data beside BitEpi's own tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cyvcf2 import VCF
from popdesic.backend import ScanData
from popdesic.backend.cpu import CpuBackend
from popdesic.epistasis import split_classes
from popdesic.reorder import _rank_genotypes, pack_states
from popdesic.scores import score_tables
from popdesic.significance import bitepi_alpha, bitepi_beta, hit_tables


class Real:
    """A VCF and its phenotypes as scan data; hits come back as site names."""

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
        states, _ = _rank_genotypes(genotypes)
        rank = np.argsort((states != 3).sum(axis=1), kind="stable")
        self.genotypes = genotypes[rank]
        self.sites = [found[k][0] for k in rank]
        n_controls = int((~case).sum())
        self.n_controls = n_controls
        classes = split_classes(pack_states(states[rank], n_controls), n_controls, int(case.sum()))
        tables = score_tables("k2", len(case))
        self.data = ScanData(classes, *tables, rank.astype(np.int32))

    def hits(self, order: int, top: int = 1000) -> list[tuple[int, ...]]:
        backend = CpuBackend(2)
        scan = backend.scan_pairs if order == 2 else backend.scan_triples
        return [tuple(row) for row in scan(self.data, range(len(self.sites)), top).sites]

    def names(self, members) -> set[str]:
        return {self.sites[m][2] for m in members}

    def contigs(self, members) -> set[str]:
        return {self.sites[m][0].removeprefix("chr") for m in members}

    def table(self, *names: str) -> np.ndarray:
        rows = [[s[2] for s in self.sites].index(name) for name in names]
        return hit_tables(self.genotypes[rows], self.n_controls)


@pytest.fixture(scope="module")
def mice(shared_data) -> tuple[Real, Path]:
    folder = shared_data / "mice1814"
    chosen = set((folder / "ref_BitEpi_black_triples_thin40.snps.txt").read_text().split())
    return Real(folder / "hs_mice.vcf.gz", folder / "samples.tsv", chosen), folder


def test_best_pair_is_that_of_bitepi(mice):
    """By K2 as by BitEpi's beta."""
    real, folder = mice
    best = pd.read_csv(folder / "ref_BitEpi_black_triples_thin40.Beta.2.csv").iloc[0]
    assert real.names(real.hits(2, 1)[0]) == {best.SNP_A, best.SNP_B}


def test_alpha_and_beta_are_those_of_bitepi(mice):
    real, folder = mice
    for kind, measure in (("Alpha", bitepi_alpha), ("Beta", bitepi_beta)):
        for order in (2, 3):
            path = folder / f"ref_BitEpi_black_triples_thin40.{kind}.{order}.csv"
            for value, *names in pd.read_csv(path).head(50).itertuples(index=False):
                assert measure(real.table(*names)) == pytest.approx(value, abs=2e-6)


def test_planted_pair_is_found(shared_data):
    folder = shared_data / "gametes"
    real = Real(
        folder / "bitepi_example123.vcf.gz",
        folder / "bitepi_example123.samples.tsv",
        key=pd.read_csv(folder / "bitepi_example123.samples.tsv", sep="\t", nrows=1).columns[0],
    )
    pairs = sorted(real.hits(2), key=lambda hit: -bitepi_alpha(real.table(*real.names(hit))))
    assert real.names(pairs[0]) == {"M1P2", "M1P3"}
