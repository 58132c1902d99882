"""Principal components of windows: the formulas, an inversion that is found, and nulls."""

from __future__ import annotations

from pathlib import Path

import msprime
import numpy as np
import pandas as pd
import pytest
from oracles.population import lostruct_distances, with_swapped_alleles
from scenes.landscapes.inversions import GenomeScene, genome_with_inversion

from popdesic.core.tables import read_table, write_table
from popdesic.io.bed import write_fam
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.population.local_regions import LEVEL, find_alike_regions
from popdesic.population.local_structure import (
    AXES,
    genome_windows,
    local_table,
    measure_local_structure,
    scale_windows,
    window_components,
    window_distances,
)


def table_of(scene: GenomeScene, size: int = 50, seed: int = 1):
    genotypes = scene.genotypes
    return local_table(
        lambda a, b: genotypes[a:b], scene.sites, genotypes.shape[1], size, seed=seed
    )


def draw(n_sites: int, n: int, missing: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng([seed, n_sites, n])
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.9, (n_sites, 1)), (n_sites, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


# --- formulas ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [17, 64])  # more and fewer people than sites
@pytest.mark.parametrize("n_sites", [15, 33, 65])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_components_and_distances_equal_their_matrices(n, n_sites, missing):
    """The distance is the Frobenius norm of the difference of two matrices of rank AXES."""
    matrices, values, vectors = [], [], []
    for seed in range(4):
        genotypes = draw(n_sites, n, missing, seed)
        x = np.where(genotypes < 0, np.nan, genotypes.astype(float))
        x = np.nan_to_num(x - np.nanmean(x, axis=1, keepdims=True))
        _, s, vt = np.linalg.svd(x, full_matrices=False)
        weights = s[:AXES] ** 2 / (s[:AXES] ** 2).sum()
        matrices.append((vt[:AXES].T * weights) @ vt[:AXES])
        found = window_components(genotypes)
        values.append(found[0])
        vectors.append(found[1])
        np.testing.assert_allclose(found[0], weights, rtol=1e-9)
        np.testing.assert_allclose((found[1] * found[0]) @ found[1].T, matrices[-1], atol=1e-9)
    expected = [[np.linalg.norm(a - b) for b in matrices] for a in matrices]
    found = window_distances(np.array(values), np.array(vectors))
    np.testing.assert_allclose(found, expected, atol=1e-7)


def our_distances(windows: list[np.ndarray]) -> np.ndarray:
    found = [window_components(np.asarray(window, np.int8)) for window in windows]
    return window_distances(np.array([v for v, _ in found]), np.array([w for _, w in found]))


def test_distances_are_those_of_lostruct():
    """Equal where centring people changes nothing; elsewhere they order windows alike.

    lostruct also centres each person over the sites, which depends on which allele is ALT.
    """
    windows = [draw(40, 25, 0.0, seed) for seed in range(6)]
    both = [with_swapped_alleles(window) for window in windows]
    np.testing.assert_allclose(our_distances(both), lostruct_distances(both), atol=1e-7)
    np.testing.assert_allclose(our_distances(both), our_distances(windows), atol=1e-7)
    scene = genome_with_inversion(1, f_st=0.05, inverted=(1200, 1600))
    parts = [scene.genotypes[k : k + 50] for k in range(0, len(scene.genotypes) - 49, 50)]
    ours, theirs = our_distances(parts), lostruct_distances(parts)
    upper = np.triu_indices(len(parts), 1)
    assert np.corrcoef(ours[upper], theirs[upper])[0, 1] > 0.9
    first, second = scale_windows(ours)[:, 0], scale_windows(theirs)[:, 0]
    assert abs(np.corrcoef(first, second)[0, 1]) > 0.9


def test_ref_and_alt_do_not_matter():
    genotypes = draw(60, 30, 0.1)
    swapped = genotypes.copy()
    swapped[::3] = np.where(genotypes[::3] < 0, -1, 2 - genotypes[::3])
    first, second = window_components(genotypes), window_components(swapped)
    both = window_distances(np.array([first[0], second[0]]), np.array([first[1], second[1]]))
    assert both.max() < 1e-6


@pytest.mark.parametrize(
    "genotypes", [np.full((9, 8), -1), np.ones((9, 8)), np.tile(np.arange(8) % 3, (9, 1))]
)
def test_windows_without_two_components_have_none(genotypes):
    values, vectors = window_components(genotypes.astype(np.int8))
    assert np.isnan(values).all() and not vectors.any()


def test_scaling_gives_back_points_of_a_plane():
    points = np.random.default_rng(1).normal(size=(40, 2)) * (3, 1)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    found = scale_windows(distances)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=2), distances, atol=1e-9)
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


def test_windows_divide_contigs_evenly():
    chrom = np.repeat(["1", "2", "3", "4"], [1000, 130, 49, 50])
    windows = genome_windows(chrom, 100)
    sizes = (windows[:, 1] - windows[:, 0]).tolist()
    assert sizes == [100] * 10 + [130] and windows[-1].tolist() == [1000, 1130]
    assert genome_windows(chrom[:0], 100).shape == (0, 2)


# --- truth and nulls -----------------------------------------------------------------------------


@pytest.mark.parametrize("f_st", [0.0, 0.05])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_inversion_is_found_where_it_lies(f_st, seed):
    """In one population and beside three, which order people along the rest of the genome."""
    scene = genome_with_inversion(seed, f_st=f_st, inverted=(1200, 1600))
    table, about = table_of(scene)
    assert about["regions"] == 1 and "reason" not in about
    found = table[table.outlier == "yes"]
    assert found.region.unique().tolist() == ["1"] and found.p.max() <= LEVEL
    # Windows 25 to 32 of 50 sites, and at most one more at an end, which chance may add.
    rows = found.index.to_numpy()
    assert set(range(24, 32)) <= set(rows) <= set(range(23, 33))
    assert (np.diff(rows) == 1).all() and found.chrom.unique().tolist() == ["2"]
    assert (table[table.outlier == "no"].region == "NA").all()


def test_faint_likeness_far_along_the_genome_is_no_region():
    """As recent admixture makes it: beyond chance, but no arrangement of its own."""
    rng = np.random.default_rng(4)
    contig = np.repeat(["1", "2"], 100)
    axis = np.repeat([0.0, 0.3, 0.0], [30, 40, 130])
    assert find_alike_regions(drawn_likeness(rng, axis), contig) == []
    (found,) = find_alike_regions(drawn_likeness(rng, 2 * axis), contig)
    assert found[:2] == (30, 70)


def test_two_inversions_are_two_regions():
    scene = genome_with_inversion(5, inverted=(300, 650))
    other = genome_with_inversion(6, inverted=(2500, 2800))
    genotypes = scene.genotypes.copy()
    genotypes[2000:] = other.genotypes[2000:]
    table, about = table_of(GenomeScene(genotypes, scene.sites))
    assert about["regions"] == 2
    marked = set(table[table.outlier == "yes"].window)
    inside = {*range(7, 14), *range(51, 57)}
    assert inside <= marked and len(marked - inside) <= 4


@pytest.mark.parametrize("f_st", [0.0, 0.05])
def test_a_genome_without_one_is_silent(f_st):
    """At most LEVEL of them have a region: of 20, three or more have a chance of 7.5 %."""
    found = [table_of(genome_with_inversion(k, f_st=f_st))[1]["regions"] > 0 for k in range(20)]
    assert sum(found) <= 3


def test_windows_in_ld_with_their_neighbours_are_silent():
    """One population with recombination: windows share haplotypes with their neighbours."""
    found = 0
    for seed in range(1, 9):
        trees = msprime.sim_ancestry(
            30,
            population_size=10_000,
            sequence_length=4e6,
            recombination_rate=1e-8,
            random_seed=seed,
        )
        trees = msprime.sim_mutations(
            trees, rate=1e-8, model=msprime.BinaryMutationModel(), random_seed=seed
        )
        alleles = trees.genotype_matrix()
        genotypes = (alleles[:, ::2] + alleles[:, 1::2]).astype(np.int8)
        af = genotypes.mean(axis=1) / 2
        kept = np.minimum(af, 1 - af) >= 0.05
        pos = trees.tables.sites.position[kept].astype(int) + 1
        sites = pd.DataFrame({"chrom": "1", "pos": pos})
        found += table_of(GenomeScene(genotypes[kept], sites), size=100)[1]["regions"] > 0
    assert found <= 2


def drawn_likeness(rng: np.random.Generator, axis: np.ndarray) -> np.ndarray:
    """Chance likeness of windows, and that of windows on one side of an axis."""
    n = len(axis)
    chance = rng.normal(size=(n, n)) * 0.03
    return chance + chance.T + np.outer(axis, axis)


def test_a_few_windows_alone_are_no_region():
    """LD makes neighbours alike; only likeness beyond it counts."""
    contig = np.repeat(["1", "2"], 100)
    axis = np.zeros(200)
    assert find_alike_regions(drawn_likeness(np.random.default_rng(2), axis), contig) == []
    axis[50] = 1
    assert find_alike_regions(drawn_likeness(np.random.default_rng(2), axis), contig) == []
    axis[50:54] = 0.6
    axis[50] = 0.6
    assert find_alike_regions(drawn_likeness(np.random.default_rng(2), axis), contig) == []
    axis[50:57] = 0.6
    (found,) = find_alike_regions(drawn_likeness(np.random.default_rng(2), axis), contig)
    assert found[:2] == (50, 57) and found[2] <= LEVEL


def test_a_region_that_leaves_too_few_windows_is_not_called():
    """There is no rest of the genome to compare with."""
    axis = np.repeat([0.6, 0.0], [7, 10])
    likeness = drawn_likeness(np.random.default_rng(2), axis)
    contig = np.repeat("1", 17)
    assert len(find_alike_regions(likeness, contig)) == 1
    assert find_alike_regions(likeness[:16, :16], contig[:16]) == []


def test_runs_do_not_reach_from_one_contig_to_the_next():
    axis = np.zeros(200)
    axis[94:106] = 0.6
    likeness = drawn_likeness(np.random.default_rng(3), axis)
    (whole,) = find_alike_regions(likeness, np.repeat("1", 200))
    assert whole[0] in (93, 94) and whole[1] in (106, 107)
    halves = find_alike_regions(likeness, np.repeat(["1", "2"], 100))
    assert [half[0] // 100 for half in sorted(halves)] == [0, 1]
    assert all(first // 100 == (end - 1) // 100 for first, end, _ in halves)


# --- files ---------------------------------------------------------------------------------------


def write_cohorts(folder: Path, genotypes: np.ndarray, sites: pd.DataFrame, sizes) -> list[Path]:
    """Cohorts of consecutive people as encode_cohort writes them, and the panel."""
    panel = sites.assign(id=".", ref="A", alt="C", af=0.5, mode=1, n_called=10)
    text = panel.to_csv(sep="\t", index=False)
    (folder / "sites.tsv").write_text("# panel abc\n" + text)
    prefixes, first = [], 0
    for k, size in enumerate(sizes):
        prefix = folder / f"c{k}"
        rows = pack_bed(np.ascontiguousarray(genotypes[:, first : first + size]))
        prefix.with_suffix(".bed").write_bytes(BED_MAGIC + rows.tobytes())
        names = [f"s{j}" for j in range(first, first + size)]
        write_fam(
            prefix,
            pd.DataFrame(
                {"sample": names, **dict.fromkeys(("family", "father", "mother"), "0")}
                | {"sex": "NA", "phenotype": "NA"}
            ),
        )
        prefixes.append(prefix)
        first += size
    return prefixes


def measured(folder: Path, prefixes: list[Path], unrelated: Path | None = None, **options):
    about = measure_local_structure(
        *(prefixes, folder / "sites.tsv", unrelated),
        **{"sites": 50, "x_contigs": ["X"], "seed": 1} | options,
        table_out=folder / "local_pca.tsv",
        summary_out=folder / "local_pca.json",
    )
    return read_table(folder / "local_pca.tsv"), about


def test_cohorts_are_read_as_one_and_relatives_left_out(tmp_path):
    scene = genome_with_inversion(4, inverted=(1200, 1600))
    n = scene.genotypes.shape[1]
    prefixes = write_cohorts(tmp_path, scene.genotypes, scene.sites, (n - 41, 41))
    table, about = measured(tmp_path, prefixes)
    expected, _ = table_of(scene)
    assert about["people"] == n and about["regions"] == 1
    np.testing.assert_allclose(table.mds1.astype(float), expected.mds1, rtol=1e-5, atol=1e-9)
    unrelated = tmp_path / "unrelated.tsv"
    marks = ["yes" if k % 3 else "no" for k in range(n)]
    names = [f"s{k}" for k in range(n)]
    write_table(unrelated, pd.DataFrame({"sample": names, "unrelated": marks}))
    table, about = measured(tmp_path, prefixes, unrelated)
    kept = np.arange(n) % 3 > 0
    expected, _ = table_of(GenomeScene(scene.genotypes[:, kept], scene.sites))
    assert about["people"] == kept.sum()
    np.testing.assert_allclose(table.mds1.astype(float), expected.mds1, rtol=1e-5, atol=1e-9)


def test_many_people_are_a_part_that_names_decide(tmp_path, monkeypatch):
    monkeypatch.setattr("popdesic.population.local_structure.MOST_PEOPLE", 40)
    scene = genome_with_inversion(4, inverted=(1200, 1600))
    prefixes = write_cohorts(tmp_path, scene.genotypes, scene.sites, (60, 40))
    first, about = measured(tmp_path, prefixes)
    assert about["people"] == 40
    other, _ = measured(tmp_path, prefixes[::-1])
    assert first.mds1.tolist() == other.mds1.tolist() or np.allclose(
        np.abs(first.mds1.astype(float)), np.abs(other.mds1.astype(float)), atol=1e-6
    )


def test_x_is_left_out(tmp_path):
    scene = genome_with_inversion(4)
    sites = scene.sites.assign(chrom=scene.sites.chrom.replace("4", "X"))
    prefixes = write_cohorts(tmp_path, scene.genotypes, sites, (100,))
    table, _ = measured(tmp_path, prefixes)
    assert table.chrom.unique().tolist() == ["1", "2", "3"]
    assert len(measured(tmp_path, prefixes, x_contigs=[])[0]) == 80


@pytest.mark.parametrize(
    "people, size, words",
    [(19, 50, "19 unrelated founders are too few"), (100, 400, "8 windows are too few")],
)
def test_too_little_says_nothing_in_one_sentence(people, size, words):
    scene = genome_with_inversion(1, inverted=(1200, 1600))
    table, about = table_of(GenomeScene(scene.genotypes[:, :people], scene.sites), size)
    assert about["reason"].startswith(words) and not about["regions"]
    assert (table.outlier == "NA").all() and table.mds1.isna().all()


def test_windows_grow_on_large_panels(monkeypatch):
    monkeypatch.setattr("popdesic.population.local_structure.MOST_WINDOWS", 40)
    table, about = table_of(genome_with_inversion(1))
    assert about["window_sites"] == 100 and len(table) == 40
