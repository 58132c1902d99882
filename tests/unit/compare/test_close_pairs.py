"""Close relatives of all cohorts at once equal the table joined from tiles of pairs of cohorts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_compare import child
from study import Cohort, encode_cohorts, make_cohorts

from popdesic.cohort.panel import load_panel
from popdesic.compare.close_pairs import find_close_pairs
from popdesic.compare.cohorts import Limits, compare_cohorts
from popdesic.compare.kinship import join_pairs
from popdesic.compare.resolution import resolve
from popdesic.engine.select import cpu_backend
from popdesic.io.errors import UserError
from popdesic.io.tables import write_table

BACKEND = cpu_backend(2)
N_SITES, MIN_CALLED, ERROR_RATE = 900, 200, 0.005
ALL_TOLD = resolve(1e-6, 0.5, 1e-4, panel="x", sites=N_SITES, founders=12, max_mismatch=0.02)
SOME_TOLD = resolve(5e-4, 0.5, 1e-4, panel="x", sites=N_SITES, founders=12, max_mismatch=0.02)
NO_LIMIT = replace(ALL_TOLD, smallest_kinship=-1.0)
RESOLUTIONS = {
    "all relatives": ALL_TOLD,
    "some relatives": SOME_TOLD,
    "no relatives": replace(ALL_TOLD, smallest_kinship=None),
    "no identity": replace(ALL_TOLD, least_called=None),
}


def with_families(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """The last people become children, grandchildren and a copy of the first; some lose calls."""
    found = np.maximum(cohort.genotypes, 0)
    haplotypes = np.stack([found > 0, found > 1]).astype(np.int8).transpose(2, 0, 1)
    breaks = np.full(N_SITES, 0.02)
    haplotypes[-1] = haplotypes[1]
    haplotypes[-2] = child(haplotypes[0], haplotypes[1], breaks, rng)
    haplotypes[-3] = child(haplotypes[0], haplotypes[1], breaks, rng)
    haplotypes[-4] = child(haplotypes[-2], haplotypes[2], breaks, rng)
    genotypes = haplotypes.sum(axis=1).T.astype(np.int8)
    genotypes[cohort.genotypes < 0] = -1
    genotypes[rng.random(N_SITES) < 0.6, -5] = -1
    genotypes[rng.random(N_SITES) < 0.9, -6] = -1  # too few calls to be compared
    return replace(cohort, genotypes=genotypes)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(2)
    cohorts = make_cohorts((30, 25, 41), n_sites=N_SITES, missing=0.05, seed=7)
    cohorts[2] = replace(cohorts[2], genotypes=np.maximum(cohorts[2].genotypes, 0))
    cohorts = [with_families(cohorts[0], rng), with_families(cohorts[1], rng), cohorts[2]]
    cohorts[2].genotypes[:, 4] = cohorts[0].genotypes[:, 0]  # the same person in two cohorts
    return encode_cohorts(folder, cohorts), folder / "panel.tsv"


def joined(study, out, resolution, min_kinship: float) -> bytes:
    """The table of all tiles, as the rules make it."""
    folders, panel = study
    frequencies = load_panel(panel)[0].af.to_numpy()
    limits = Limits(min_kinship, 2, ERROR_RATE, 0.02, 0.05, 0.01, MIN_CALLED, resolution)
    tiles = []
    for i, a in enumerate(folders):
        for b in folders[i:]:
            paths = {n: out / f"{a.name}.{b.name}.{n}" for n in ("kinship", "identity", "mixture")}
            compare_cohorts(a, b, frequencies, paths, BACKEND, limits)
            tiles.append(paths["kinship"])
    join_pairs(tiles, out / "joined.tsv")
    return (out / "joined.tsv").read_bytes()


@pytest.mark.parametrize("name", RESOLUTIONS)
@pytest.mark.parametrize("min_kinship", [0.0442, 0.177])
def test_the_table_of_the_tiles(study, tmp_path, name, min_kinship):
    expected = joined(study, tmp_path, RESOLUTIONS[name], min_kinship)
    options = {"min_kinship": min_kinship, "min_called": MIN_CALLED, "error_rate": ERROR_RATE}
    out = tmp_path / "close.tsv"
    table = find_close_pairs(*study, BACKEND, **options, resolution=RESOLUTIONS[name])
    write_table(out, table)
    assert out.read_bytes() == expected
    same = {("N01", "N29"), ("S01", "S24"), ("N00", "W04")}
    pairs = set(zip(table.sample_a, table.sample_b, strict=True))
    if name != "no relatives":
        assert pairs >= same | {("N00", "N28"), ("N27", "N28"), ("N26", "N28")}
        assert "N24" not in {*table.sample_a, *table.sample_b}
    else:
        assert pairs == same


def test_pairs_of_a_cohort_of_clones_are_left_out(tmp_path):
    rng = np.random.default_rng(4)
    cohorts = make_cohorts((30, 12), n_sites=N_SITES, missing=0.0, seed=7)
    cohorts[0] = with_families(cohorts[0], rng)
    clones = np.repeat(cohorts[1].genotypes[:, :1], 12, axis=1)
    clones[(clones == 1) & (rng.random(clones.shape) < 0.4)] = 0
    planes = encode_cohorts(tmp_path, [cohorts[0], replace(cohorts[1], genotypes=clones)])
    options = {"min_kinship": 0.177, "min_called": MIN_CALLED, "error_rate": ERROR_RATE}
    folders = planes, tmp_path / "panel.tsv"
    table = find_close_pairs(*folders, BACKEND, **options, resolution=SOME_TOLD)
    assert {*table.cohort_a, *table.cohort_b} == {"north"}
    assert ("N00", "N28") in set(zip(table.sample_a, table.sample_b, strict=True))
    assert joined(folders, tmp_path, SOME_TOLD, 0.177) == written(table, tmp_path / "close.tsv")


def written(table, path) -> bytes:
    write_table(path, table)
    return path.read_bytes()


def test_more_relatives_than_a_table_holds(study):
    options = {"min_kinship": -1.0, "min_called": 1, "error_rate": ERROR_RATE}
    with pytest.raises(UserError, match=r"more than 96 of the pairs of 96 samples .* raise the"):
        find_close_pairs(*study, BACKEND, **options, resolution=NO_LIMIT, most=96)
