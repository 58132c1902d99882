"""Founders as the reference: who is in it, duplicates, sites, the same bytes, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes.mosaics import make_target, prepare

from popdesic.cohort import check_reference, freeze_founders
from popdesic.cohort.absent import UNSTATED
from popdesic.cohort.copy_haplotypes import CopyOptions
from popdesic.core.errors import UserError
from popdesic.io.frozen_haplotypes import count_haplotypes, open_haplotypes, require_intact
from popdesic.io.genotypes import MISSING

N_SITES, N = 130, 12


@pytest.fixture(scope="module")
def cohort(tmp_path_factory) -> tuple[np.ndarray, dict[str, Path]]:
    """Genotypes, of which those of the last sample repeat the first one's, and files."""
    _, shown, sites = make_target(N_SITES, N, missing=0.03, seed=3)
    shown[:, -1] = shown[:, 0]
    return shown, prepare(tmp_path_factory.mktemp("founders"), shown, sites)


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(check_reference, "MIN_SHARED_SITES", N_SITES)


def freeze(files: dict[str, Path], out: Path, threads: int = 1) -> dict[str, int]:
    given = [files["raw"]], [files["qc_samples"]], files["panel_path"], out, ""
    options = CopyOptions(seed=1, threads=threads)
    return freeze_founders.freeze_founders(*given, options, [UNSTATED])


def test_founders_are_frozen_with_their_calls(cohort, tmp_path, monkeypatch):
    shown, files = cohort
    monkeypatch.setattr(check_reference, "LEAST_FOUNDERS", N)
    counts = freeze(files, tmp_path / "one.npz")
    assert counts == {"founders": N, "in_reference": N, "duplicates": 2, "sites": N_SITES}
    frozen = open_haplotypes(tmp_path / "one.npz")
    require_intact(frozen)
    assert frozen.samples == [f"N{k}" for k in range(N)]
    assert count_haplotypes(frozen.path) == 2 * N
    assert count_haplotypes(tmp_path / "none.npz") == 4000
    (part,) = frozen.parts
    bits = np.unpackbits(part.haplotypes.view(np.uint8), axis=1, bitorder="little")[:, : 2 * N]
    genotypes, called = bits[:, ::2] + bits[:, 1::2], shown != MISSING
    np.testing.assert_array_equal(genotypes[called], shown[called])
    freeze(files, tmp_path / "two.npz", threads=2)
    assert (tmp_path / "two.npz").read_bytes() == (tmp_path / "one.npz").read_bytes()


def test_of_many_founders_some_are_the_reference(cohort, tmp_path, monkeypatch):
    monkeypatch.setattr(check_reference, "LEAST_FOUNDERS", 2)
    monkeypatch.setattr(freeze_founders, "MOST_FOUNDERS", 4)
    counts = freeze(cohort[1], tmp_path / "r.npz")
    assert (counts["founders"], counts["in_reference"]) == (N, 4)
    assert open_haplotypes(tmp_path / "r.npz").samples == ["N0", "N3", "N7", "N11"]


def test_too_few_founders_are_refused(cohort, tmp_path):
    with pytest.raises(UserError, match=f"there are only {N}, fewer than 100; set"):
        freeze(cohort[1], tmp_path / "r.npz")
    assert not (tmp_path / "r.npz").exists()


def test_too_few_snps_are_refused(cohort, tmp_path, monkeypatch):
    monkeypatch.setattr(check_reference, "LEAST_FOUNDERS", N)
    monkeypatch.setattr(check_reference, "MIN_SHARED_SITES", N_SITES + 1)
    said = f"the panel has {N_SITES} biallelic SNPs, fewer than {N_SITES + 1}; set impute.method"
    with pytest.raises(UserError, match=said):
        freeze(cohort[1], tmp_path / "r.npz")
    assert not (tmp_path / "r.npz").exists()


def test_a_founder_that_has_nobody_to_copy_from_is_refused(cohort, tmp_path, monkeypatch):
    monkeypatch.setattr(check_reference, "LEAST_FOUNDERS", N)
    monkeypatch.setattr(freeze_founders, "DUPLICATE_SHARE", 0.0)
    monkeypatch.setattr(freeze_founders, "LEAST_COMPARED", 1)
    with pytest.raises(UserError, match="founder 'N0' has the same genotypes as all others"):
        freeze(cohort[1], tmp_path / "r.npz")
