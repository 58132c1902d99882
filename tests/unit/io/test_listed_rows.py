"""A .bed of lists has the rows of the .bed that it stands for, in fewer bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles.lists import read_lists
from oracles.reference import bed_bytes
from support.study import Cohort, make_sites, write_raw

from popdesic.cohort import site_counts
from popdesic.cohort.site_counts import add_calls, count_groups_at, count_placed
from popdesic.core.errors import UserError
from popdesic.core.files import bytes_meant, has_lists
from popdesic.io import listed_rows
from popdesic.io.bed import ChosenSamples, forget_pages, open_bed, open_cohort
from popdesic.io.genotypes import pack_bed
from popdesic.io.listed_rows import BLOCK, ListedRows, RowsFile, write_again


@pytest.fixture(autouse=True)
def small_files_may_have_lists(monkeypatch):
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 1)


def draw_rare(rng, n_sites: int, n_samples: int) -> np.ndarray:
    """Genotypes of which most are rare; some sites have the rare allele as REF, some are common."""
    frequency = np.exp(rng.uniform(np.log(0.3 / n_samples), np.log(0.3), n_sites)) ** 1.5
    genotypes = rng.binomial(2, frequency[:, None], (n_sites, n_samples)).astype(np.int8)
    turned = rng.random(n_sites) < 0.3
    genotypes[turned] = 2 - genotypes[turned]
    missing = rng.random(n_sites) ** 6
    genotypes[rng.random(genotypes.shape) < missing[:, None]] = -1
    for value, site in zip((-1, 0, 1, 2), rng.permutation(n_sites), strict=False):
        genotypes[site] = value
    return genotypes


def write(path: Path, genotypes: np.ndarray, parts: int = 1) -> bytes:
    with RowsFile(path, genotypes.shape[1]) as file:
        for part in np.array_split(pack_bed(genotypes), parts):
            file.add(part)
    return path.read_bytes()


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 200])
@pytest.mark.parametrize("n_samples", [9, 31, 32, 33, 127, 130, 700])
def test_lists_are_the_rows(tmp_path, n_sites, n_samples):
    rng = np.random.default_rng(1000 * n_samples + n_sites)
    genotypes = draw_rare(rng, n_sites, n_samples)
    genotypes[0] = 0  # the choice of the file is made by the first row
    content = write(tmp_path / "a.bed", genotypes)
    assert has_lists(tmp_path / "a.bed")
    for parts in (2, 7):
        assert write(tmp_path / "b.bed", genotypes, min(parts, n_sites)) == content
    found, sizes = read_lists(tmp_path / "a.bed")
    np.testing.assert_array_equal(found, genotypes)
    rows = pack_bed(genotypes)
    assert max(sizes) <= rows.shape[1] + 1 and sizes[0] == 1
    opened = ListedRows(tmp_path / "a.bed", n_samples, n_sites)
    assert opened.shape == rows.shape and len(opened) == n_sites
    shuffled = rng.permutation(n_sites)
    chosen = [slice(None), slice(1, n_sites - 1), slice(None, None, -3), shuffled, shuffled % 2 > 0]
    for which in [*chosen, np.array([], np.int64), np.array([0, 0, -1]), n_sites - 1]:
        np.testing.assert_array_equal(opened[which], rows[which])
    for wrong in (n_sites, [-n_sites - 1]):
        with pytest.raises(IndexError):
            opened[wrong]
    assert bytes_meant(tmp_path / "a.bed") == 3 + rows.size


def test_a_singleton_takes_four_bytes_where_a_row_takes_fifty_thousand(tmp_path):
    n = 200_000
    rows = np.full((3 * BLOCK, n // 4), 255, np.uint8)
    rows[np.arange(len(rows)), np.arange(len(rows)) * 250 + 1] = 0b11111110  # one heterozygote
    with RowsFile(tmp_path / "a.bed", n) as file:
        file.add(rows)
    assert (tmp_path / "a.bed").stat().st_size <= 15 + 4 * 8 + 4 * len(rows) + 8 * 4
    np.testing.assert_array_equal(ListedRows(tmp_path / "a.bed", n, len(rows))[:], rows)


def test_common_sites_and_small_files_stay_a_bed(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    common = rng.integers(-1, 3, (50, 90)).astype(np.int8)
    rare = np.zeros((50, 90), np.int8)
    rare[:, 7] = 1
    assert write(tmp_path / "a.bed", common) == bed_bytes(common)
    both = np.concatenate([common, rare])
    assert write(tmp_path / "a.bed", both) == bed_bytes(both)  # the first row decides
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 40 * 23)
    turned = write(tmp_path / "a.bed", both[::-1])
    assert has_lists(tmp_path / "a.bed")
    assert [write(tmp_path / "b.bed", both[::-1], k) for k in (3, 11, 100)] == [turned] * 3
    np.testing.assert_array_equal(read_lists(tmp_path / "a.bed")[0], both[::-1])
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 101 * 23)
    for parts in (1, 3):
        assert write(tmp_path / "a.bed", both[::-1], parts) == bed_bytes(both[::-1])


def write_cohort(folder: Path, genotypes: np.ndarray) -> Path:
    names = [f"s{k}" for k in range(genotypes.shape[1])]
    prefix = write_raw(folder / "raw", Cohort("c", names, make_sites(len(genotypes)), genotypes))
    n_sites, n_samples = genotypes.shape
    write_again(folder / "raw.bed", open_bed(prefix), np.arange(n_sites), n_samples)
    return prefix


def test_a_cohort_of_lists_is_opened_as_any_other(tmp_path):
    genotypes = draw_rare(np.random.default_rng(3), 100, 83)
    genotypes[0] = 0
    prefix = write_cohort(tmp_path, genotypes)
    assert isinstance(open_bed(prefix), ListedRows)
    names = [f"s{k}" for k in range(83) if k % 5]
    some, fam = open_cohort(prefix, names)
    assert isinstance(some, ChosenSamples) and fam["sample"].tolist() == names
    few = np.ascontiguousarray(genotypes[:, [k for k in range(83) if k % 5]])
    np.testing.assert_array_equal(some[10:90], pack_bed(few)[10:90])
    forget_pages(some)
    np.testing.assert_array_equal(some[:], pack_bed(few))


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("n_samples", [31, 32, 33, 130])
def test_counts_of_lists_are_those_of_genotypes(tmp_path, n_sites, n_samples):
    rng = np.random.default_rng(n_samples * n_sites)
    genotypes = draw_rare(rng, n_sites, n_samples)
    genotypes[0] = 0
    rows = open_bed(write_cohort(tmp_path, genotypes))
    group = rng.integers(-1, 3, n_samples)
    states = np.stack([genotypes == value for value in (0, 1, 2, -1)], axis=-1)
    for first in {0, n_sites // 3, max(0, n_sites - 70)}:
        for last in {n_sites, (first + n_sites + 1) // 2}:
            by_sample = rng.integers(0, 9, (n_samples, 4))
            expected = by_sample + states[first:last].sum(axis=0)
            add_calls(rows, first, last, by_sample)
            np.testing.assert_array_equal(by_sample, expected)
            found = count_groups_at(rows, first, last, group, 3)
            by_site = [states[first:last][:, group == g].sum(axis=1) for g in range(3)]
            np.testing.assert_array_equal(found, np.stack(by_site, axis=1))


@pytest.mark.parametrize("passed", [1, 1000])
def test_counts_at_other_sites_are_those_of_their_genotypes(tmp_path, monkeypatch, passed):
    """In another order, REF and ALT exchanged, some absent; sites may lie far apart in the file."""
    monkeypatch.setattr(site_counts, "SITES_A_TASK", 7)
    monkeypatch.setattr(site_counts, "MOST_PASSED", passed)
    rng = np.random.default_rng(passed)
    genotypes = draw_rare(rng, 200, 45)
    genotypes[0] = 0
    rows, group = open_bed(write_cohort(tmp_path, genotypes)), rng.integers(-1, 3, 45)
    source = np.r_[rng.integers(-1, 200, 90), np.full(8, -1), np.arange(30, 60)]
    turned = (rng.random(len(source)) < 0.3) & (source >= 0)
    own = np.where(source[:, None] < 0, -1, genotypes[source])
    own[turned] = np.where(own[turned] < 0, -1, 2 - own[turned])
    states = np.stack([own == value for value in (0, 1, 2, -1)], axis=-1)
    wanted = np.stack([states[:, group == g].sum(axis=1) for g in range(3)], axis=1)
    for threads in (1, 2):
        found = count_placed(rows, source, turned, group, 3, threads)
        np.testing.assert_array_equal(found, wanted)


def test_cut_and_damaged_lists_are_one_sentence(tmp_path):
    """A damaged number can be another valid one; nothing else than rows or a sentence comes out."""
    rng = np.random.default_rng(5)
    genotypes = draw_rare(rng, 70, 150)
    genotypes[0] = 0
    bed = write_cohort(tmp_path, genotypes).with_suffix(".bed")
    whole = bed.read_bytes()
    refused = 0
    for size in range(15, len(whole), 7):
        bed.write_bytes(whole[:size])
        with pytest.raises(UserError, match=r"raw.bed does not have the 70 sites of its .bim; del"):
            open_bed(tmp_path / "raw")
        assert bytes_meant(bed) in (size, 3 + 70 * 38)
    for _ in range(600):
        content = bytearray(whole)
        for at in rng.integers(15, len(whole), rng.integers(1, 4)):
            content[at] = rng.integers(0, 256)
        bed.write_bytes(content)
        try:
            found = open_bed(tmp_path / "raw")
            by_sample = np.zeros((150, 4), np.int64)
            found.count(0, 70, np.full(150, -1), 0, by_sample)
            assert found[rng.permutation(70)].shape == (70, 38)
        except UserError as error:
            refused += 1
            assert str(error).startswith(f"{bed} ") and "delete it and run again." in str(error)
    assert 200 < refused < 600
    bed.write_bytes(whole)
    np.testing.assert_array_equal(open_bed(tmp_path / "raw")[:], pack_bed(genotypes))
