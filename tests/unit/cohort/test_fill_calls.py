"""Missing calls filled with imputed genotypes: called ones never change, poor sites stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes.mosaics import make_sites
from support.study import Cohort, write_raw

from popdesic.cohort.encode import CHUNK_SITES
from popdesic.cohort.fill_calls import fill_calls, fill_missing_rows
from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.core.tables import write_npy
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import MISSING, pack_bed, unpack_bed


def draw(n_sites: int, n: int, missing: float, seed: int = 3):
    """Called genotypes, imputed ones that contradict every call, and which sites are good."""
    rng = np.random.default_rng([seed, n_sites, n])
    called = rng.integers(0, 3, (n_sites, n)).astype(np.int8)
    imputed = ((called + 1) % 3).astype(np.int8)
    called[rng.random(called.shape) < missing] = MISSING
    return called, imputed, rng.random(n_sites) < 0.5


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 33])
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_rows_equal_the_obvious(n_sites, n, missing):
    called, imputed, good = draw(n_sites, n, missing)
    filled, counts = fill_missing_rows(pack_bed(called), pack_bed(imputed), good)
    expected = called.copy()
    for site in range(n_sites):
        for sample in range(n):
            if called[site, sample] == MISSING and good[site]:
                expected[site, sample] = imputed[site, sample]
    np.testing.assert_array_equal(filled, pack_bed(expected))
    np.testing.assert_array_equal(counts, (called == MISSING).sum(axis=1))


def write_parts(folder: Path, rows: np.ndarray, r2: np.ndarray, cuts: list[int]):
    """Imputed rows and their r2 in windows that end at `cuts`."""
    paths = [], []
    for k, part in enumerate(np.split(np.arange(len(rows)), cuts)):
        for place, name, values in zip(paths, ("i", "q"), (rows, r2), strict=True):
            write_npy(folder / f"{name}{k}.npy", values[part])
            place.append(folder / f"{name}{k}.npy")
    return paths


def make_files(folder: Path, n_sites: int = 90, n: int = 13):
    called, imputed, _ = draw(n_sites, n, 0.2)
    called[7] = 1  # complete: it has no r2
    sites = make_sites(n_sites)
    sites.loc[60:69, "chrom"] = "chrX"
    rows = [(r.chrom, int(r.pos), f"s{k}", r.ref, r.alt) for k, r in enumerate(sites.itertuples())]
    stem = write_raw(folder / "genotypes", Cohort("c", [f"N{k}" for k in range(n)], rows, called))
    r2 = np.random.default_rng(8).random(n_sites)
    r2[20], r2[21], r2[7] = 0.8, np.nextafter(0.8, 0), np.nan
    return stem, called, imputed, r2


def test_a_cohort_is_filled_where_r2_is_enough_and_everyone_is_diploid(tmp_path):
    stem, called, imputed, r2 = make_files(tmp_path)
    parts = write_parts(tmp_path, pack_bed(imputed), r2, [30, 60, 70])
    out = tmp_path / "imputed"
    counts = fill_calls(stem, *parts, out, cohort="c", min_r2=0.8, haploid=["X", "23"])
    haploid = np.arange(90) // 10 == 6
    good = (r2 >= 0.8) & ~haploid
    missing = called == MISSING
    expected = np.where(missing & good[:, None], imputed, called)
    np.testing.assert_array_equal(unpack_bed(np.array(open_bed(out)), 13), expected)
    np.testing.assert_array_equal(expected[~missing], called[~missing])
    for end in (".bim", ".fam"):
        assert Path(f"{out}{end}").read_bytes() == Path(f"{stem}{end}").read_bytes()
    assert good[20] and not good[21]
    some = missing.any(axis=1)
    assert counts == {
        "missing": missing.sum(),
        "filled": missing[good].sum(),
        "left_missing": missing[~good].sum(),
        "sites_with_missing": some.sum(),
        "sites_below_min_r2": (some & ~good & ~haploid).sum(),
        "sites_haploid": 10,
    }
    assert read_json(Path(f"{out}.json")) == {"cohort": "c", "min_r2": 0.8, "counts": counts}


def test_a_limit_of_zero_fills_all_and_of_one_almost_nothing(tmp_path):
    stem, called, imputed, r2 = make_files(tmp_path)
    parts = write_parts(tmp_path, pack_bed(imputed), r2, [50])
    every = fill_calls(stem, *parts, tmp_path / "all", cohort="c", min_r2=0.0)
    assert every["left_missing"] == 0
    found = unpack_bed(np.array(open_bed(tmp_path / "all")), 13)
    np.testing.assert_array_equal(found, np.where(called == MISSING, imputed, called))
    r2[::2] = 0  # such as sites that only the mode could fill
    write_npy(tmp_path / "zeros.npy", r2)
    zeros = [tmp_path / "zeros.npy"]
    part = fill_calls(stem, parts[0], zeros, tmp_path / "part", cohort="c", min_r2=0.0)
    assert part["left_missing"] == (called[::2] == MISSING).sum()
    none = fill_calls(stem, *parts, tmp_path / "none", cohort="c", min_r2=1.0)
    assert none["filled"] == 0
    assert (tmp_path / "none.bed").read_bytes() == (tmp_path / "genotypes.bed").read_bytes()


def test_more_sites_than_are_read_at_once(tmp_path):
    stem, called, imputed, r2 = make_files(tmp_path, CHUNK_SITES + 65, 2)
    parts = write_parts(tmp_path, pack_bed(imputed), r2, [CHUNK_SITES - 1, CHUNK_SITES])
    fill_calls(stem, *parts, tmp_path / "out", cohort="c", min_r2=0.3)
    good = np.nan_to_num(r2) >= 0.3
    expected = np.where((called == MISSING) & good[:, None], imputed, called)
    np.testing.assert_array_equal(unpack_bed(np.array(open_bed(tmp_path / "out")), 2), expected)


def test_imputed_genotypes_of_another_panel_are_refused(tmp_path):
    stem, _, imputed, r2 = make_files(tmp_path)
    parts = write_parts(tmp_path, pack_bed(imputed), r2, [50])
    for wrong in ((parts[0][:1], parts[1]), (parts[0], parts[1][:1])):
        with pytest.raises(UserError, match="another panel or other samples"):
            fill_calls(stem, *wrong, tmp_path / "out", cohort="c", min_r2=0.8)
