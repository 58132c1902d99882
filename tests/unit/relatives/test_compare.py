"""Kinship, identity and mixtures: slow versions, simulated families, planted mixtures."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.compare import child, king_robust, largest_unrelated
from oracles.reference import draw_genotypes
from support.operands import planes_of
from support.readable import checked
from support.study import Cohort, encode_cohorts, make_cohorts, make_sites, write_raw

from popdesic.cohort.panel import load_panel
from popdesic.core.errors import UserError
from popdesic.core.files import write_json
from popdesic.core.tables import read_table, write_table
from popdesic.distance.fill_rows import update_rows
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.select import select_backend
from popdesic.engine.terms import KINSHIP, Planes
from popdesic.ibd.degrees import DegreeScale
from popdesic.ibd.verdict import KinEvidence, SearchedGenome, judge_pairs, relation_of
from popdesic.relatives import (
    find_matches,
    identity,
    independence,
    kinship,
    matches_cpu,
    mixture,
    queries,
)
from popdesic.relatives.cohorts import (
    Limits,
    compare_cohorts,
    join_identity,
    join_mixture,
    row_work,
)
from popdesic.relatives.find_matches import search_by_blocks, top_matches, top_references
from popdesic.relatives.resolution import resolve
from popdesic.report.figures.compare import draw_comparisons
from popdesic.report.figures.relatives import draw_relatives
from popdesic.report.sections.comparisons import comparison_section

BACKEND = select_backend("cpu", 2)
#: A panel that resolves all relatives, so that the tables hold everything planted.
ABOUT = {"panel": "x", "sites": 900, "founders": 12, "max_mismatch": 0.02}
ALL_TOLD = resolve(1e-6, 0.5, 1e-4, common=800, absent=0.3, **ABOUT)
LIMITS = Limits(0.0884, 0.005, 20, ALL_TOLD, top=2)


def counts_of(a: np.ndarray, b: np.ndarray | None) -> dict[str, np.ndarray]:
    values = BACKEND.bitgemm(planes_of(a), None if b is None else planes_of(b), KINSHIP)
    return dict(zip(KINSHIP.outputs, values, strict=True))


# --- kinship ------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_sites", [1, 17, 64, 130])
def test_kinship_equals_king_robust(n_sites, missing):
    rng = np.random.default_rng(n_sites)
    genotypes = draw_genotypes(rng, 9, n_sites, missing)
    found = kinship.king_robust(counts_of(genotypes, None))
    expected = [[king_robust(a, b) for b in genotypes] for a in genotypes]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def family() -> dict:
    """Three generations by simulated meiosis on 40 contigs: names, genotypes, known degrees."""
    rng = np.random.default_rng(5)
    n_sites = 12_000
    frequency = rng.uniform(0.1, 0.9, n_sites)
    breaks = np.where(np.arange(n_sites) % 300 == 0, 0.5, 0.004)  # 40 contigs of 1.2 Morgan
    founders = ("gf", "gm", "s1", "s2", "x", "y", "z")
    # A person is two rows of founder haplotype numbers, so identity by descent is known.
    people = {
        name: np.repeat([[2 * k], [2 * k + 1]], n_sites, axis=1) for k, name in enumerate(founders)
    }
    people["p1"] = child(people["gm"], people["gf"], breaks, rng)
    people["p2"] = child(people["gm"], people["gf"], breaks, rng)
    people["c1"] = child(people["s1"], people["p1"], breaks, rng)
    people["c2"] = child(people["s2"], people["p2"], breaks, rng)
    people["half"] = child(people["gm"], people["z"], breaks, rng)
    names = list(people)
    alleles = (rng.random((2 * len(founders), n_sites)) < frequency).astype(np.int8)
    descent = np.stack([people[name] for name in names])
    genotypes = alleles[descent, np.arange(n_sites)].sum(axis=1).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    return {"names": names, "genotypes": genotypes, "af": frequency, "descent": descent}


def test_kinship_follows_the_share_identical_by_descent(family):
    """KING-robust follows the realised share of alleles identical by descent, for all pairs."""
    found = kinship.king_robust(counts_of(family["genotypes"], None))
    descent = family["descent"]
    for i in range(len(found)):
        for j in range(i):
            shared = np.mean([descent[i, x] == descent[j, y] for x in (0, 1) for y in (0, 1)])
            assert abs(found[i, j] - shared) < 0.02, (family["names"][i], family["names"][j])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("gf", "p1", "parent and child"),
        ("gm", "half", "parent and child"),
        ("p1", "p2", "full siblings"),
        ("p1", "half", "second degree"),
        ("gf", "c1", "second degree"),
        ("p2", "c1", "second degree"),
        ("x", "y", "distant"),
        ("s1", "p1", "distant"),
    ],
)
def test_degrees_of_a_simulated_family(family, a, b, expected):
    i, j = family["names"].index(a), family["names"].index(b)
    counts = counts_of(family["genotypes"][[i]], family["genotypes"][[j]])
    phi = kinship.king_robust(counts)[0, 0]
    ibs0_share = counts["ibs0"][0, 0] / counts["called"][0, 0]
    parents = kinship.panel_parent_limit(family["af"], 0.005)
    assert relation_of(phi, ibs0_share, parents) == expected


def test_unrelated_sets_are_largest_and_have_no_edge():
    rng = np.random.default_rng(2)
    for _ in range(60):
        n = int(rng.integers(1, 11))
        pairs = [(a, b) for a in range(n) for b in range(a)]
        edges = [pair for pair in pairs if rng.random() < rng.uniform(0, 0.7)]
        kept = kinship.unrelated_set(n, edges)
        assert not any(a in kept and b in kept for a, b in edges)
        assert len(kept) == largest_unrelated(n, edges)
    star = [(0, i) for i in range(1, 100)]  # too large to be solved exactly
    assert kinship.unrelated_set(100, star) == list(range(1, 100))


# --- cohorts ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Two cohorts: a duplicate across them with errors, and a contaminated sample."""
    folder = tmp_path_factory.mktemp("planted")
    north, south = make_cohorts((12, 11), n_sites=900, missing=0.03, seed=4)
    rng = np.random.default_rng(1)
    copy = north.genotypes[:, 3].copy()
    wrong = rng.choice(900, 6, replace=False)
    copy[wrong] = (copy[wrong] + 1) % 3
    south.genotypes[:, 5] = copy
    one, two = south.genotypes[:, 8], north.genotypes[:, 7]
    both = np.where((one < 0) | (two < 0), -1, np.where(one == two, one, 1))
    south.genotypes[:, 8] = both  # every allele of both is seen
    folders = encode_cohorts(folder, [north, south])
    return {"folders": folders, "panel": folder / "panel.tsv", "cohorts": [north, south]}


def compare(planted, a: int, b: int, out: Path, limits: Limits = LIMITS, backend=BACKEND):
    paths = {name: out / f"{a}{b}.{name}.tsv" for name in ("kinship", "identity", "mixture")}
    folders = planted["folders"]
    af = load_panel(planted["panel"])[0].af.to_numpy()
    counts = compare_cohorts(folders[a], folders[b], af, paths, backend, limits)
    return counts, {name: read_table(path) for name, path in paths.items()}, paths


def test_duplicate_and_contamination_across_cohorts_are_found(planted, tmp_path):
    _, tables, _ = compare(planted, 0, 1, tmp_path)
    pairs = tables["kinship"].set_index(["sample_a", "sample_b"]).relation
    assert pairs["N03", "S05"] == "duplicate or identical twin"
    # the contaminated sample, too heterozygous, looks like a relative of several
    assert {b for _, b in pairs.index} == {"S05", "S08"}
    same = tables["identity"][tables["identity"].verdict == "same"]
    assert same[["query", "match"]].to_numpy().tolist() == [["S05", "N03"]]
    assert float(same.log10_lr.iloc[0]) > 100
    hits = tables["mixture"]
    assert hits[["mixture", "reference", "verdict"]].to_numpy().tolist() == [
        ["S08", "N07", "included"]
    ]
    assert int(hits.absent.iloc[0]) == 0


def rare_sites(folder: Path, n: int, sites: int, common: int, seed: int) -> dict:
    """A cohort of which `common` sites vary in many samples and all others in one or two.

    Sample 1 carries all alleles of sample 0 besides its own.
    """
    rng = np.random.default_rng(seed)
    cohort = make_cohorts((n,), n_sites=sites, missing=0.0, seed=seed)[0]
    copies = rng.integers(1, 3, sites)
    copies[rng.permutation(sites)[:common]] = rng.integers(n // 3, n, common)
    alleles = np.zeros((sites, 2 * n), np.int8)
    for site, carried in enumerate(copies):
        alleles[site, rng.permutation(2 * n)[:carried]] = 1
    genotypes = alleles[:, 0::2] + alleles[:, 1::2]
    one, two = genotypes[:, 0], genotypes[:, 1]
    genotypes[:, 1] = np.where(one == two, one, 1)
    cohort.genotypes[:] = genotypes
    return {"folders": encode_cohorts(folder, [cohort]), "panel": folder / "panel.tsv"}


def resolution_of(study: dict, out: Path):
    return independence.measure_resolution(
        study["folders"], study["panel"], out, BACKEND, max_mismatch=0.005
    )


def test_rare_sites_do_not_make_everyone_a_mixture(tmp_path):
    """At sites where nearly everyone has two REF alleles nobody lacks an allele of another."""
    study = rare_sites(tmp_path, 60, 4_000, common=300, seed=3)
    limits = replace(LIMITS, resolution=resolution_of(study, tmp_path / "kinship.json"))
    assert limits.resolution.least_common <= 300 == limits.resolution.common_sites
    _, tables, _ = compare(study, 0, 0, tmp_path, limits)
    found = tables["mixture"][["mixture", "reference", "verdict"]]
    assert found.to_numpy().tolist() == [["N01", "N00", "included"]]


@pytest.mark.parametrize("common", [0, 4])
def test_contamination_is_not_sought_where_sites_cannot_tell(tmp_path, common, monkeypatch):
    """No pair is judged, so that thousands of samples with a handful of sites end at once."""
    study = rare_sites(tmp_path, 60, common or 2_000, common=common, seed=3)
    limits = replace(LIMITS, resolution=resolution_of(study, tmp_path / "kinship.json"))
    assert limits.resolution.least_common is None
    needed = limits.resolution.needed_common
    assert needed is None or needed > limits.resolution.common_sites
    assert (needed is not None) == (common > 0), "a page can say how many it takes"
    monkeypatch.setattr(mixture, "likelihood_ratios", None)
    limits = replace(limits, min_called=0)
    assert compare(study, 0, 0, tmp_path, limits)[1]["mixture"].empty


def test_references_of_a_mixture_are_bounded(tmp_path):
    """A sample that is heterozygous everywhere has the alleles of all others."""
    cohort = make_cohorts((40,), n_sites=600, missing=0.0, seed=4)[0]
    cohort.genotypes[:, 7] = 1
    study = {"folders": encode_cohorts(tmp_path, [cohort]), "panel": tmp_path / "panel.tsv"}
    limits = replace(LIMITS, resolution=replace(ALL_TOLD, common_sites=600))
    table = compare(study, 0, 0, tmp_path, limits)[1]["mixture"]
    assert set(table.mixture) == {"N07"}
    assert len(table) == mixture.MOST_REFERENCES


def test_the_limit_over_all_sites_is_that_at_common_ones_where_all_are_common():
    rng = np.random.default_rng(1)
    af = rng.uniform(0.05, 0.95, 500)
    assert mixture.screening_limit(af, 0.02) == pytest.approx(0.02, rel=1e-12)
    assert mixture.screening_limit(rng.uniform(0, 0.04, 9), 0.02) < 0
    # true contributors lose heterozygotes alone: spread over the sites as those are
    af = np.r_[af, rng.uniform(0, 0.05, 4_500)]
    het = rng.random((400, len(af))) < 2 * af * (1 - af)
    lost = het & (rng.random(het.shape) < 0.05)
    common = mixture.common_sites(af)
    at_common = lost[:, common].sum() / common.sum() / len(lost)
    expected = mixture.screening_limit(af, at_common)
    assert lost.mean() == pytest.approx(expected, rel=0.03)


def test_a_row_holds_the_tables_of_its_pairs(planted, tmp_path):
    """The same bytes as pair by pair; changed limits compute them again, nothing else does."""
    folders = {folder.name: folder for folder in planted["folders"]}
    out = tmp_path / "results/compare/tiles/south/row.json"

    def run(limits: Limits) -> dict[str, int]:
        pairs, code = [("north", "south"), ("south", "south")], "1"
        work = row_work(out, pairs, folders, planted["panel"], limits, code)
        return update_rows([work], folders, lambda _: BACKEND)

    counts = run(LIMITS)
    assert (counts["tiles computed"], counts["tiles kept"]) == (2, 0)
    assert counts["pairs"] == 12 * 11 + 11 * 10 // 2
    for pair, other in (((0, 1), "north"), ((1, 1), "south")):
        _, _, alone = compare(planted, *pair, tmp_path)
        for kind, path in alone.items():
            assert (out.parent / f"{other}.{kind}.tsv").read_bytes() == path.read_bytes()
    assert json.loads(out.read_text())["cohort"] == "south"
    assert run(LIMITS)["tiles computed"] == 0
    (out.parent / "north.mixture.tsv").unlink()
    assert run(LIMITS)["tiles computed"] == 1
    assert run(replace(LIMITS, top=1))["tiles computed"] == 2
    other = replace(ALL_TOLD, max_mismatch=0.03)
    assert run(replace(LIMITS, resolution=other))["tiles computed"] == 2


def test_tables_of_one_cohort_against_itself(planted, tmp_path):
    counts, tables, _ = compare(planted, 1, 1, tmp_path)
    assert counts["pairs"] == 11 * 10 // 2
    table = tables["identity"]
    assert (table["query"] != table["match"]).all()
    genotypes = planted["cohorts"][1].genotypes.T
    names = planted["cohorts"][1].samples
    for query, rows in table.groupby("query"):
        q = genotypes[names.index(query)]
        shares = []
        for name, other in zip(names, genotypes, strict=True):
            both = (q >= 0) & (other >= 0)
            if name != query:
                shares.append((np.floor((q != other)[both].mean() * 2**20), names.index(name)))
        best = [names[i] for _, i in sorted(shares)[:2]]
        assert rows["match"].tolist() == best


def test_blocks_of_any_size_give_the_same_bytes(planted, tmp_path, monkeypatch):
    _, _, whole = compare(planted, 1, 1, tmp_path / "whole")
    monkeypatch.setattr("popdesic.relatives.screen_cpu.BLOCK_SAMPLES", 4)
    _, _, blocks = compare(planted, 1, 1, tmp_path / "blocks")
    for name in whole:
        assert whole[name].read_bytes() == blocks[name].read_bytes(), name


def test_pairs_with_too_few_jointly_called_sites_are_left_out(planted, tmp_path):
    limits = Limits(-10.0, 0.005, 901, ALL_TOLD, top=1)
    counts, tables, _ = compare(planted, 0, 1, tmp_path, limits)
    assert counts["pairs with too few jointly called sites"] == 12 * 11
    assert all(table.empty for table in tables.values())


@pytest.mark.parametrize("top", [1, 3])
def test_matches_are_joined_some_rows_at_a_time(planted, tmp_path, monkeypatch, top):
    tiles = [compare(planted, a, b, tmp_path)[2]["identity"] for a, b in ((1, 1), (0, 0), (0, 1))]
    names = [name for c in planted["cohorts"] for name in c.samples]
    sheet = pd.DataFrame({"sample": names})
    join_identity(tiles, sheet, tmp_path / "whole.tsv", top=top)
    monkeypatch.setattr("popdesic.relatives.cohorts.MOST_ROWS", 1)
    join_identity(tiles, sheet, tmp_path / "parts.tsv", top=top)
    assert (tmp_path / "whole.tsv").read_bytes() == (tmp_path / "parts.tsv").read_bytes()


def test_joined_tables_name_swaps(planted, tmp_path):
    tiles = [compare(planted, a, b, tmp_path)[2] for a, b in ((0, 0), (0, 1), (1, 1))]
    sheet = pd.DataFrame(
        [(name, "M" if name == "N03" else "F") for c in planted["cohorts"] for name in c.samples],
        columns=["sample", "sex"],
    )
    table = join_identity([t["identity"] for t in tiles], sheet, tmp_path / "identity.tsv", top=1)
    assert len(table) == 23
    assert table["query"].tolist() == sheet["sample"].tolist()
    conflicts = table[table.conflict != "none"]
    assert conflicts[["query", "match", "conflict"]].to_numpy().tolist() == [["S05", "N03", "sex"]]
    assert len(join_mixture([t["mixture"] for t in tiles], tmp_path / "mixture.tsv")) == 1
    pairs = kinship.join_pairs([t["kinship"] for t in tiles], tmp_path / "kinship.tsv")
    assert pairs.kinship.astype(float).is_monotonic_decreasing


# --- identity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_profiles", [1, 3, 40, 150])
@pytest.mark.parametrize("search", [top_matches, search_by_blocks])
def test_search_equals_sorting_all_profiles(search, n_profiles, missing, monkeypatch):
    """With few sites there are many ties; the earlier profile wins, whatever the block size."""
    monkeypatch.setattr(find_matches, "BLOCK_PROFILES", 7)
    rng = np.random.default_rng(n_profiles)
    a, b = draw_genotypes(rng, 4, 5, missing), draw_genotypes(rng, n_profiles, 5, missing)
    found = search(
        BACKEND,
        planes_of(a, masked=missing > 0),
        planes_of(b, masked=missing > 0),
        k=3,
        min_called=2,
    )
    for row, query in enumerate(a):
        ranked = []
        for index, profile in enumerate(b):
            both = (query >= 0) & (profile >= 0)
            wrong = int((query != profile)[both].sum())
            if both.sum() >= 2:
                ranked.append((wrong * 2**20 // int(both.sum()), index, wrong, int(both.sum())))
        expected = sorted(ranked)[:3]
        kept = found.index[row] >= 0
        assert found.index[row][kept].tolist() == [r[1] for r in expected]
        assert found.mismatches[row][kept].tolist() == [r[2] for r in expected]
        assert found.called[row][kept].tolist() == [r[3] for r in expected]


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 129, 257, 1024])
@pytest.mark.parametrize("missing", [(0, 0), (0.2, 0.2), (0.2, 0), (0, 0.2)])
@pytest.mark.parametrize("search", [top_matches, top_references])
def test_search_in_tiles_equals_search_by_products(search, n_sites, missing, tmp_path, monkeypatch):
    """Also of a memory map, by several threads in short tasks, with values filled in."""
    monkeypatch.setattr(matches_cpu, "TASK_PROFILES", 70)
    rng = np.random.default_rng(n_sites)
    a, b = draw_genotypes(rng, 9, n_sites, missing[0]), draw_genotypes(rng, 400, n_sites)
    b[rng.random(b.shape) < missing[1]] = -1
    queries = planes_of(a, fill=rng.integers(0, 3, a.shape), masked=missing[0] > 0)
    database = planes_of(b, fill=rng.integers(0, 3, b.shape), masked=missing[1] > 0)
    np.save(tmp_path / "planes.npy", database.words)
    mapped = Planes(np.load(tmp_path / "planes.npy", mmap_mode="r"), n_sites)
    least = n_sites * 2 // 3
    mixed = search is top_references
    slow = search_by_blocks(BACKEND, queries, database, 7, least, mixed=mixed)
    for threads, profiles in ((1, database), (3, mapped)):
        found = search(CpuBackend(threads), queries, profiles, 7, least)
        np.testing.assert_array_equal(found.index, slow.index)
        for name in ("key", "mismatches", "called"):
            there = np.where(slow.index >= 0, getattr(slow, name), getattr(found, name))
            np.testing.assert_array_equal(getattr(found, name), there, name)


def test_match_statistics_by_hand():
    query = np.array([[0, 1, 2, -1]], np.int8)
    found = np.array([[0, 2, 2, 1]], np.int8)
    af = np.array([0.1, 0.2, 0.3, 0.4])
    rmp, ratio = identity.match_statistics(query, found, af, 0.01)
    assert rmp[0] == pytest.approx(math.log10(0.81 * 0.32 * 0.09))
    expected = math.log10(0.99 / 0.81) + math.log10(0.005 / 0.04) + math.log10(0.99 / 0.09)
    assert ratio[0] == pytest.approx(expected)
    # Haploids: one allele a site, and one other to mistake it for.
    query, found = np.array([[0, 2, 2, -1]], np.int8), np.array([[0, 0, 2, 2]], np.int8)
    rmp, ratio = identity.match_statistics(query, found, af, 0.01, ploidy=1)
    assert rmp[0] == pytest.approx(math.log10(0.9 * 0.2 * 0.3))
    expected = math.log10(0.99 / 0.9) + math.log10(0.01 / 0.8) + math.log10(0.99 / 0.3)
    assert ratio[0] == pytest.approx(expected)


# --- mixtures -----------------------------------------------------------------------------------


def mix(people: np.ndarray, rng, dropout: float = 0.0, drop_in: float = 0.0) -> np.ndarray:
    """Alleles seen in a mixture of several people's genotypes (n, n_sites), as a genotype."""
    n_sites = people.shape[1]
    shows = []
    for copies in (people, 2 - people):
        seen = np.zeros(n_sites, bool)
        for person in copies:
            for copy in range(2):
                seen |= (person > copy) & (rng.random(n_sites) >= dropout)
        shows.append(seen | (rng.random(n_sites) < drop_in))
    alt, ref = shows
    return np.where(alt & ref, 1, np.where(alt, 2, np.where(ref, 0, -1))).astype(np.int8)


@pytest.mark.parametrize("contributors", [2, 3, 4, 5])
def test_planted_mixtures(contributors):
    """Contributors are included and others excluded, with dropout 3 % and drop-in 0.5 %."""
    rng = np.random.default_rng(contributors)
    af = rng.uniform(0.05, 0.5, 3_000)
    people = rng.binomial(2, af, (60, len(af))).astype(np.int8)
    mixed = mix(people[:contributors], rng, 0.03, 0.005)
    errors = {"dropout": 0.03, "drop_in": 0.005}
    assert mixture.count_contributors(mixed, af, **errors) == contributors
    ratios = mixture.likelihood_ratios(mixed, people, af, contributors, **errors)
    verdicts = [mixture.verdict(ratio) for ratio in ratios]
    assert verdicts[:contributors] == ["included"] * contributors
    assert verdicts[contributors:] == ["excluded"] * (60 - contributors)


def test_evidence_probabilities_sum_to_one_and_the_ratio_averages_to_one():
    """Summed over all evidence, and over the reference's genotype under the unknown hypothesis."""
    p = np.array([0.3])
    errors = {"dropout": 0.1, "drop_in": 0.05}
    total = np.zeros(3)
    for shown in (0, 1, 2):
        known, unknown = mixture.evidence_tables(np.array([shown]), p, 3, **errors)
        prior = np.array([0.49, 0.42, 0.09])
        assert (10 ** known[0] * prior).sum() == pytest.approx(10 ** unknown[0])
        total += 10 ** known[0]
    # the remainder is that nothing is seen: all three drop out, nothing drops in
    nothing = np.array([0.1**6 * 0.95 * 0.95] * 3)
    assert total == pytest.approx(1 - nothing, rel=0.02)


def test_a_brother_scores_between_contributors_and_strangers(family):
    """A contributor's brother is far more often taken for a contributor than a stranger is."""
    rng = np.random.default_rng(3)
    names, genotypes = family["names"], np.maximum(family["genotypes"], 0)
    mixed = mix(genotypes[[names.index("p1"), names.index("x")]], rng)
    errors = {"dropout": 0.01, "drop_in": 0.01}
    ratios = mixture.likelihood_ratios(mixed, genotypes, family["af"], 2, **errors)
    of = dict(zip(names, ratios, strict=True))
    assert min(of["p1"], of["x"]) > 100
    strangers = max(of["y"], of["z"], of["s2"])
    assert of["p2"] > strangers + 100  # the brother scores between contributors and strangers
    assert of["p1"] > of["p2"]


def test_rmne_bounds_the_share_of_random_inclusions():
    rng = np.random.default_rng(8)
    af = rng.uniform(0.1, 0.5, 30)
    mixed = rng.integers(0, 3, 30).astype(np.int8)
    people = rng.binomial(2, af, (40_000, 30))
    absent = ((people >= 1) & (mixed == 0)) | ((people <= 1) & (mixed == 2))
    for allowed in (0, 1, 4):
        share = (absent.sum(axis=1) <= allowed).mean()
        bound = 10 ** mixture.log10_rmne(mixed, af, allowed)
        assert share <= bound * 1.1 + 1e-4
        assert bound <= 1
    exact = np.prod(np.where(mixed == 0, (1 - af) ** 2, np.where(mixed == 2, af**2, 1.0)))
    assert 10 ** mixture.log10_rmne(mixed, af, 0) == pytest.approx(exact)
    assert mixture.log10_rmne(mixed, af, 30) == 0.0


# --- queries ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def query_folder(planted, tmp_path_factory):
    """Query profiles (one of them N02 with errors) and a mixture of N01 and S02 on the panel."""
    folder = tmp_path_factory.mktemp("query")
    north, south = planted["cohorts"]
    rng = np.random.default_rng(6)
    known = north.genotypes[:, 2].copy()
    known[rng.choice(900, 5, replace=False)] = 1
    both = np.stack([north.genotypes[:, 1], south.genotypes[:, 2]])
    mixed = np.where((both < 0).any(axis=0), -1, mix(np.maximum(both, 0), rng))
    stranger = draw_genotypes(rng, 1, 900)[0]
    cohort = Cohort(
        "q", ["known", "mixed", "new"], make_sites(900), np.stack([known, mixed, stranger], axis=1)
    )
    write_raw(folder / "q", cohort)
    queries.place_profiles(folder / "q", planted["panel"], folder / "placed", haploid="error")
    return folder / "placed"


def test_queries_find_their_person(planted, query_folder, tmp_path):
    table = queries.search_queries(
        query_folder,
        planted["folders"],
        planted["panel"],
        tmp_path / "found.tsv",
        BACKEND,
        top=3,
        min_called=20,
        resolution=ALL_TOLD,
        error_rate=0.005,
    )
    assert len(table) == 9
    same = table[table.verdict == "same"]
    assert same[["query", "rank", "match"]].to_numpy().tolist() == [["known", 1, "N02"]]


def test_mixtures_find_their_contributors(planted, query_folder, tmp_path):
    table = queries.search_mixtures(
        query_folder,
        planted["folders"],
        planted["panel"],
        tmp_path / "found.tsv",
        BACKEND,
        top=23,
        min_called=20,
        contributors=2,
        dropout=0.02,
        drop_in=0.01,
    )
    mixed = table[table.mixture == "mixed"]
    included = mixed[mixed.verdict == "included"]
    assert set(included.reference) == {"N01", "S02"}
    assert mixed["rank"].tolist() == list(range(1, 24))


def test_query_without_joint_sites_gives_a_one_sentence_error(planted, query_folder, tmp_path):
    with pytest.raises(UserError, match=r"'known' has fewer than .* = 900 jointly called sites"):
        queries.search_queries(
            query_folder,
            planted["folders"],
            planted["panel"],
            tmp_path / "found.tsv",
            BACKEND,
            top=1,
            min_called=900,
            resolution=ALL_TOLD,
            error_rate=0.005,
        )


def test_query_without_overlap_gives_a_one_sentence_error(planted, tmp_path):
    sites = [("9", 5 + k, "x", "A", "C") for k in range(4)]
    write_raw(tmp_path / "q", Cohort("q", ["a"], sites, np.zeros((4, 1), np.int8)))
    with pytest.raises(UserError, match="shares no site with the panel"):
        queries.place_profiles(tmp_path / "q", planted["panel"], tmp_path / "p", haploid="error")


# --- report and figures -------------------------------------------------------------------------


def test_report_section_and_figures(planted, tmp_path):
    """Figures have the same bytes twice; the page's tables hold what was planted."""
    tiles = [compare(planted, a, b, tmp_path)[2] for a, b in ((0, 0), (0, 1), (1, 1))]
    results, figures = tmp_path / "results", tmp_path / "figures"
    out = results / "compare"
    sheet = pd.DataFrame({"sample": [n for c in planted["cohorts"] for n in c.samples]})
    kinship.join_pairs([t["kinship"] for t in tiles], out / "kinship.tsv")
    join_identity([t["identity"] for t in tiles], sheet, out / "identity.tsv", top=1)
    join_mixture([t["mixture"] for t in tiles], out / "mixture.tsv")
    decay = pd.DataFrame({"from_bp": [10, 100], "to_bp": [100, 1000], "pairs": [5, 7]})
    decay.assign(mean_r2=[0.5, 0.2]).to_csv(tmp_path / "decay.tsv", sep="\t", index=False)
    r2 = np.array([[1, 0.5], [0.5, np.nan]], np.float32)
    np.savez(tmp_path / "region.npz", chrom=np.array("1"), pos=np.array([5, 900]), r2=r2)
    tables = {"decay": tmp_path / "decay.tsv", "region": tmp_path / "region.npz"}
    found = KinEvidence(king=read_table(out / "kinship.tsv"))
    judged = judge_pairs(found, SearchedGenome(DegreeScale(np.array([20.0]), 0.0)))
    write_table(out / "relatives.tsv", judged)
    about = {"tells": False, "searched_cm": 20.0, "least_cm": 1_000.0, "differ": 0}
    write_json(out / "relatives.json", about | {"relations": {}, "why": {}, "sources": ["king"]})
    for folder in (figures, tmp_path / "again"):
        with checked():
            assert draw_comparisons(tables, folder) == ["ld_decay", "ld_region"]
            files = {"king": out / "kinship.tsv"}
            draw_relatives(["kinship"], out / "relatives.tsv", files, folder)
    for path in figures.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name
    section = comparison_section(results, figures, ["kinship", "identity", "mixture", "ld"])
    assert [text.name for text in section["figures"]] == ["kinship", "ld_decay", "ld_region"]
    assert section["identity"]["rows"][0]["match"] == "N03"
    assert section["mixture"]["n"] == 1
    assert comparison_section(results, figures, []) is None
    assert comparison_section(tmp_path / "nothing", tmp_path / "none", ["kinship", "ld"]) is None
