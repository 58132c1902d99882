"""Targets of imputation on the sites of a haplotype panel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.phased_files import phased_records, write_vcf

from popdesic.cohort import phased_targets
from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.cohort.phased_targets import Targets, read_targets
from popdesic.core.errors import UserError
from popdesic.io.frozen_haplotypes import HaplotypePanel, open_haplotypes

PAIRS = ("AC", "AG", "CT", "GT")
TURN = str.maketrans("ACGT", "TGCA")


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)


def frozen(folder: Path, records: list[str], n_samples: int = 2) -> HaplotypePanel:
    names = [f"r{k}" for k in range(n_samples)]
    freeze_haplotypes(write_vcf(folder / "r.vcf", names, records), folder / "r.npz")
    return open_haplotypes(folder / "r.npz")


def placed(folder: Path, panel: HaplotypePanel, records: list[str], n_samples: int = 1) -> Targets:
    names = [f"t{k}" for k in range(n_samples)]
    return read_targets(write_vcf(folder / "t.vcf", names, records), panel)


def test_sites_are_placed_and_swapped_ones_turned(tmp_path):
    records = [
        "1 10 . A C 0|0 0|1",
        "1 20 . A G 0|0 0|1",
        "1 30 . A C 0|0 0|1",
        "1 30 . A G 0|0 1|1",
    ]
    panel = frozen(tmp_path, [*records, "2 10 . A C 0|0 0|1"])
    calls = ["chr1 20 . G A 0|1", "chr1 25 . A C 1|1", "chr1 30 . A G .|1", "chr1 30 . A C 1|0"]
    targets = placed(tmp_path, panel, calls)
    first, second = targets.parts
    assert first.rows.tolist() == [1, 2, 3] and second.rows.tolist() == []
    assert first.alleles.tolist() == [[1, 1, -1], [0, 0, 1]]
    assert first.alleles.dtype == np.int8 and first.owner.tolist() == [0, 0]
    assert second.alleles.shape == (2, 0)
    assert targets.counts["panel_sites_found"] == 3 and targets.counts["swapped_turned"] == 1


def test_a_call_without_phase_is_told_and_half_of_one_is_missing(tmp_path):
    panel = frozen(tmp_path, ["1 10 . A C 0|0 0|1", "1 20 . A C 0|0 0|1"])
    targets = placed(tmp_path, panel, ["1 10 . A C ./1 1/1", "1 20 . A C . 0|1"], 2)
    assert targets.parts[0].alleles.tolist() == [[-1, -1], [-1, -1], [1, 0], [1, 1]]
    assert targets.parts[0].unphased.tolist() == [False, False]
    records = ["1 10 . A C 0|1 1/1 0/1 0/0", "1 20 . A C 0/1 0|1 1/. ./."]
    targets = placed(tmp_path, panel, [*records, "1 30 . A C 0/1 0/1 0/1 0/1"], 4)
    assert targets.parts[0].unphased.tolist() == [True, False, True, False]
    assert targets.parts[0].alleles[4:6].tolist() == [[0, -1], [1, -1]]


def test_the_other_strand_is_turned_and_doubtful_sites_left_out(tmp_path):
    pairs = [PAIRS[k % 4] for k in range(100)] + ["AT", "CG"]
    records = [f"1 {k + 1} . {a} {b} 0|0 0|1" for k, (a, b) in enumerate(pairs)]
    panel = frozen(tmp_path, records)
    turned = [pair.translate(TURN) for pair in pairs]
    calls = [f"1 {k + 1} . {a} {b} 0|1" for k, (a, b) in enumerate(turned)]
    targets = placed(tmp_path, panel, calls)
    assert targets.parts[0].rows.tolist() == [*range(100)]
    assert (targets.parts[0].alleles == [[0], [1]]).all()
    assert targets.counts["strand_turned"] == 100


def test_another_build_is_refused(tmp_path):
    rng = np.random.default_rng(3)
    both = []
    for _ in range(2):
        pairs = rng.permuted(np.tile([*"ACGT"], (400, 1)), axis=1)[:, :2]
        both.append([f"1 {k + 1} . {a} {b} 0|0 0|1" for k, (a, b) in enumerate(pairs)])
    with pytest.raises(UserError, match="different genome builds"):
        placed(tmp_path, frozen(tmp_path, both[0]), both[1], 2)


def test_too_small_an_overlap_is_refused(tmp_path, monkeypatch):
    panel = frozen(tmp_path, ["1 10 . A C 0|0 0|1", "2 10 . A C 0|0 0|1"])
    own = phased_records(np.zeros((30, 2), int), np.arange(11, 41), "2")
    with pytest.raises(UserError, match=r"on contig '2' only 1 of 31 sites \(3\.2%\) are in"):
        placed(tmp_path, panel, ["1 10 . A C 0|0", "2 10 . A C 0|1", *own])
    assert len(placed(tmp_path, panel, ["2 10 . A C 0|1", *own[:18]]).parts[1].rows) == 1
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1000)
    with pytest.raises(UserError, match=r"shares 1 sites with .* fewer than 1000 .of 1 shared pos"):
        placed(tmp_path, panel, ["1 10 . A C 0|1"])
    with pytest.raises(UserError, match=r"its contigs are 3, those of the reference are 1, 2"):
        placed(tmp_path, panel, ["3 10 . A C 0|1"])


def test_a_contig_that_the_reference_lacks_is_left_out(tmp_path, caplog):
    panel = frozen(tmp_path, ["1 10 . A C 0|0 0|1"])
    targets = placed(tmp_path, panel, ["1 10 . A C 0|1", "3 10 . A C 0|1"])
    assert targets.parts[0].rows.tolist() == [0]
    assert "the reference lacks 3; 1 sites left out" in caplog.text


def test_a_file_without_snps_is_refused(tmp_path):
    panel = frozen(tmp_path, phased_records(np.array([[0, 1, 1, 0]]), [100]))
    with pytest.raises(UserError, match=r"t\.vcf has no biallelic SNP"):
        placed(tmp_path, panel, [])


def test_haploid_males(tmp_path):
    records = ["X 1 . A C 0|1 1", "X 2 . A C 0|0 0", "X 3 . A C 0|0 1|1"]
    panel = frozen(tmp_path, records)  # the last is a part of its own
    calls = ["X 1 . A C 1 0|1 .", "X 2 . A C . 1|1 .", "X 3 . A C 0|1 0|0 1|1"]
    targets = placed(tmp_path, panel, calls, 3)
    first, second = targets.parts
    assert first.owner.tolist() == [0, 1, 1, 2, 2]
    assert first.alleles.tolist() == [[1, -1], [0, 1], [1, 1], [-1, -1], [-1, -1]]
    assert second.owner.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(UserError, match="sample 't0' are haploid at 1 sites and diploid at 1"):
        placed(tmp_path, panel, ["X 1 . A C 1", "X 2 . A C 0|1"])
