"""Imputation of a cohort by copying: most probable genotypes, shared sites, bytes of a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.mosaics import make_haplotypes, make_sites, make_target
from support.phased_files import write_vcf

from popdesic.cohort import phased_targets
from popdesic.cohort.check_reference import first_sites
from popdesic.cohort.copy_cohort import copy_sites, likely_alleles
from popdesic.cohort.copy_haplotypes import CopyOptions, own_samples
from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.cohort.shared_sites import share_sites
from popdesic.copying.copying_plan import DOSE_UNITS
from popdesic.core.errors import UserError
from popdesic.io.frozen_haplotypes import HaplotypePanel, open_haplotypes
from popdesic.io.genotypes import MISSING

N_SITES, N_REFERENCE = 120, 20


def freeze(folder: Path, sites: pd.DataFrame, haplotypes: np.ndarray) -> HaplotypePanel:
    records = [
        f"{s.chrom} {s.pos} . {s.ref} {s.alt} "
        + " ".join(f"{a}|{b}" for a, b in zip(row[::2], row[1::2], strict=True))
        for s, row in zip(sites.itertuples(), haplotypes, strict=True)
    ]
    names = [f"r{k}" for k in range(haplotypes.shape[1] // 2)]
    freeze_haplotypes(write_vcf(folder / "r.vcf", names, records), folder / "r.npz")
    return open_haplotypes(folder / "r.npz")


@pytest.fixture
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory) -> HaplotypePanel:
    haplotypes = make_haplotypes(N_SITES, 2 * N_REFERENCE, 50)
    return freeze(tmp_path_factory.mktemp("reference"), make_sites(N_SITES), haplotypes)


def test_the_most_probable_genotype_by_hand():
    units = np.array([0, 1, DOSE_UNITS // 4, 14_000, DOSE_UNITS // 2, 20_000, DOSE_UNITS])
    first, second = (grid.ravel()[None] for grid in np.meshgrid(units, units))
    found = likely_alleles(first, second)[0]
    for a, b, pair in zip(first[0], second[0], found.tolist(), strict=True):
        p, q = a / DOSE_UNITS, b / DOSE_UNITS
        chances = [(1 - p) * (1 - q), p * (1 - q) + q * (1 - p), p * q]
        assert chances[sum(pair)] == max(chances)
        if sum(pair) == 1:
            assert pair == [int(a > b), int(a <= b)]


def test_a_sample_has_the_same_bytes_alone_and_among_others(frozen, tmp_path, few_sites):
    truth, shown, sites = make_target(N_SITES, 9, seed=4)
    shared = share_sites(frozen, sites)
    names = [*(f"s{k}" for k in range(8)), "r3"]

    def run(chosen: list[int], threads: int = 1, start: int = 0):
        given, called = [names[k] for k in chosen], shown[start:, chosen]
        own = own_samples(given, frozen.samples)
        options = CopyOptions(seed=7, threads=threads)
        (found,) = copy_sites(shared, called, start, given, own, options, tmp_path)
        return found

    whole = run(list(range(9)))
    hidden = shown == MISSING
    assert (whole.alleles.sum(axis=2) == truth)[hidden].mean() > 0.9
    np.testing.assert_array_equal(whole.alleles.sum(axis=2)[~hidden], shown[~hidden])
    for chosen, threads in (([8, 2, 5], 2), ([5], 1)):
        some = run(chosen, threads)
        for name in ("alleles", "dosage", "left_out"):
            np.testing.assert_array_equal(
                getattr(some, name)[:, [-1]], getattr(whole, name)[:, [5]]
            )
    np.testing.assert_array_equal(run([0], start=60).sites, np.arange(60, N_SITES))


def test_alleles_of_a_reference_the_other_way_round_give_the_same(frozen, tmp_path, few_sites):
    _, shown, sites = make_target(N_SITES, 6, seed=5)
    turned = make_sites(N_SITES)
    which = np.arange(N_SITES) % 3 == 0
    turned.loc[which, ["ref", "alt"]] = turned.loc[which, ["alt", "ref"]].to_numpy()
    haplotypes = make_haplotypes(N_SITES, 2 * N_REFERENCE, 50)
    haplotypes[which] = 1 - haplotypes[which]
    other = freeze(tmp_path, turned, haplotypes)
    names = [f"s{k}" for k in range(6)]
    found = []
    for reference in (frozen, other):
        shared = share_sites(reference, sites)
        given = shared, shown, 0, names, {}, CopyOptions(), tmp_path
        found += list(copy_sites(*given))
    one, two = found
    # Only the start of a phase depends on which allele is called ALT.
    assert (one.alleles.sum(axis=2) == two.alleles.sum(axis=2)).mean() > 0.97
    assert np.abs(one.dosage - two.dosage).mean() < 0.05
    called = shown != MISSING
    for each in found:
        assert (each.left_out == shown)[which[:, None] & called].mean() > 0.9


def test_panels_that_do_not_suit_are_refused(frozen):
    sites = make_sites(N_SITES)
    with pytest.raises(UserError, match=r"the panel shares 120 sites .* fewer than 1000"):
        share_sites(frozen, sites)
    with pytest.raises(UserError, match="the panel shares no contig with the reference"):
        share_sites(frozen, sites.assign(chrom="9"))
    with pytest.raises(UserError, match="different genome builds"):
        share_sites(frozen, sites.assign(ref="G", alt="C"))
    with pytest.raises(UserError, match="on contig '1' only 3 of 120 sites"):
        share_sites(frozen, sites.assign(pos=sites.pos + (np.arange(N_SITES) > 2)))


def test_first_sites_are_those_of_the_reference(frozen):
    folder = frozen.path.parent
    for name in ("r.npz", "r.vcf"):
        found = first_sites([name], folder)
        pd.testing.assert_frame_equal(found, make_sites(N_SITES), check_dtype=False)
    with pytest.raises(UserError, match=r"give a frozen reference a name that ends in .npz"):
        (folder / "r.bin").write_bytes((folder / "r.npz").read_bytes())
        first_sites(["r.bin"], folder)
    with pytest.raises(UserError, match=r"names 2 files, and r\.npz is frozen; a frozen"):
        first_sites(["r.npz", "r.vcf"], folder)
