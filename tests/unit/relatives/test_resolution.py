"""What kinship and identity can resolve, on simulated people of known relatedness."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.kinship import (
    People,
    add_families,
    draw_people,
    judge,
    resolution_of,
)
from support.study import Cohort, write_raw

from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.tables import read_table
from popdesic.engine.select import select_backend
from popdesic.ibd.verdict import relation_of
from popdesic.relatives import independence, kinship
from popdesic.relatives.cohorts import Limits, compare_cohorts, join_identity
from popdesic.relatives.independence import cut_genome, measure_resolution, siblings_alike
from popdesic.relatives.resolution import (
    DUPLICATE,
    ERROR_RATE,
    FIRST,
    SECOND,
    load_resolution,
    resolve,
)

BACKEND = select_backend("cpu", 2)
NO_FILTERS = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}
ABOUT = {"panel": "x", "founders": 50, "max_mismatch": 0.02}


# --- the effective number of sites ----------------------------------------------------------------


def independent_people(
    n: int, n_sites: int, copies: int, contigs: int, *, apart: int = 10, seed: int = 1
) -> People:
    """Independent sites of one frequency, each present in `copies` identical copies."""
    rng = np.random.default_rng(seed)
    haplotypes = (rng.random((n, 2, n_sites // copies)) < 0.4).astype(np.int8)
    place = np.arange(n_sites)
    return People(
        np.repeat(haplotypes, copies, axis=2), contigs * place // n_sites, apart * (place + 1)
    )


@pytest.mark.parametrize("contigs", [1, 5, 22])
@pytest.mark.parametrize("copies", [1, 10])
def test_copies_of_a_site_count_once(copies, contigs):
    found = resolution_of(independent_people(120, 4_400, copies, contigs), BACKEND)
    assert found.sites == 4_400
    assert found.effective_sites == pytest.approx(4_400 / copies, rel=0.2)
    assert found.mismatch_sites == pytest.approx(4_400 / copies, rel=0.2)
    assert found.standard_error == pytest.approx(math.sqrt(0.75 / found.effective_sites), rel=1e-5)


def test_the_variance_follows_from_the_haplotypes():
    """3 sum D^2 / (4 (sum pq)^2), D from all haplotypes, minus the bias of a finite sample."""
    people = draw_people(150, 4, 3e6, sites=150)
    found = resolution_of(people, BACKEND)
    haplotypes = people.haplotypes.reshape(-1, people.haplotypes.shape[2]).astype(float)
    covariance = np.cov(haplotypes.T, bias=True)
    near = people.contig[:, None] == people.contig
    diagonal = np.diag(covariance)
    chance = np.outer(diagonal, diagonal) / len(haplotypes)
    squares = (covariance**2 - chance)[near].sum()
    variance = 3 * squares / (4 * diagonal.sum() ** 2)
    assert found.effective_sites == pytest.approx(0.75 / variance, rel=0.35)


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    ("regions", "length", "sites"), [(2, 2e5, 500), (5, 1e6, 300), (22, 2e5, 200), (1, 3e6, 2_000)]
)
def test_kinship_of_strangers_stays_within_the_predicted_spread(regions, length, sites, structured):
    """Upper quantiles of all pairs, most of them people that the measurement did not use.

    They lie near or below the normal ones: KING divides by the smaller heterozygosity.
    """
    people = draw_people(700, regions, length, sites=sites, structured=structured, seed=5)
    found = resolution_of(people, BACKEND)
    kinship = np.nan_to_num(np.triu(judge(people, found, BACKEND).kinship, 1), nan=-1.0)
    for share, z in ((1e-3, 3.09), (1e-4, 3.72)):
        reached = np.sort(kinship, axis=None)[-int(share * 700 * 699 / 2)]
        assert 0.6 < reached / (z * found.standard_error) < 1.1


def test_structure_is_not_mistaken_for_linkage():
    """Three distant populations have as many effective sites as one."""
    rng = np.random.default_rng(4)
    frequency = rng.uniform(0.1, 0.9, (3, 3_000))
    alleles = rng.random((240, 2, 3_000)) < np.repeat(frequency, 80, axis=0)[:, None]
    place = np.arange(3_000)
    people = People(alleles.astype(np.int8), 10 * place // 3_000, place + 1)
    found = resolution_of(people, BACKEND)
    # 3 000 sites of unequal frequencies count as (sum pq)^2 / sum (pq)^2 in each population
    weights = (frequency * (1 - frequency)).T
    equal = weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0)
    assert found.effective_sites == pytest.approx(equal.mean(), rel=0.25)


def test_families_among_the_founders_change_little():
    people = draw_people(90, 10, 1e6, sites=100)
    with_families, _ = add_families(people, 10)
    alone, together = (resolution_of(p, BACKEND) for p in (people, with_families))
    assert together.standard_error == pytest.approx(alone.standard_error, rel=0.2)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_missing_genotypes_count_as_absent_sites(missing, monkeypatch):
    rng = np.random.default_rng(2)
    people = independent_people(80, 2_000, 1, 8)
    genotypes = people.genotypes
    genotypes[rng.random(genotypes.shape) < missing] = -1
    monkeypatch.setattr(People, "genotypes", genotypes)
    found = resolution_of(people, BACKEND)
    assert found.effective_sites == pytest.approx(2_000, rel=0.2)
    called = np.array([2_000, 1_280, 500])
    least = found.least_kinship(called)
    assert least[0] == pytest.approx(found.smallest_kinship)
    assert least[1] == pytest.approx(found.smallest_kinship / 0.8)
    assert least[2] == pytest.approx(found.smallest_kinship * 2)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_few_founders_never_overstate_the_effective_sites(n):
    people = independent_people(n, 600, 1, 3)
    found = resolution_of(people, BACKEND)
    assert found.effective_sites is None if n == 1 else found.effective_sites <= 600
    none = People(np.zeros((n, 2, 70), np.int8), np.zeros(70, int), np.arange(70))
    found = resolution_of(none, BACKEND)
    assert (found.smallest_kinship, found.least_called, found.degrees) == (None, None, [])


def test_blocks_cover_the_genome_and_respect_contigs():
    contigs = np.repeat(["1", "2", "3", "4", "5"], [5_000, 3, 4, 900, 1])
    blocks = cut_genome(contigs, 64)
    assert [b[0] for b in blocks] == [0, *(b[1] for b in blocks[:-1])]
    assert blocks[-1][1] == len(contigs)
    numbers = [number for *_, number in blocks]
    assert len(set(numbers)) == 4  # 2 and 3 are joined
    for first, last, _ in blocks:
        assert len(set(contigs[first:last])) == 1 or set(contigs[first:last]) == {"2", "3"}
    assert 60 <= len(blocks) <= 70
    assert cut_genome(np.array(["1"]), 64) == [(0, 1, 0)]
    scaffolds = cut_genome(np.arange(10_000).astype(str), 64)
    assert len(scaffolds) <= 64


def test_chance_that_siblings_share_a_whole_genome():
    """A quarter of siblings at one locus; each Morgan adds a factor of e^-4."""
    assert siblings_alike(np.array(["1"]), np.array([5])) == 0.25
    whole = siblings_alike(np.array(["1", "1", "2"]), np.array([0, 100_000_000, 7]))
    assert whole == pytest.approx(math.exp(-4) / 16)


# --- limits ---------------------------------------------------------------------------------------


def test_limits_hold_the_error_rate():
    """Normal and binomial tails beyond the limits, summed over all pairs, are below the rate."""
    from scipy.stats import binom, norm

    for sites, founders in itertools.product((500, 5_000, 50_000), (50, 1_000, 20_000)):
        found = resolve(0.75 / sites, 0.4, 0.24 / sites, sites=sites, **ABOUT | {
            "founders": founders
        })  # fmt: skip
        assert found.people == max(founders, 1_000)
        pairs = found.people * (found.people - 1) / 2
        z = found.smallest_kinship / found.standard_error
        assert pairs * norm.sf(z) <= ERROR_RATE
        assert pairs * norm.sf(0.8 * z) > ERROR_RATE  # no stricter than necessary
        least = found.least_called
        assert pairs * binom.cdf(math.floor(0.02 * least), least, 0.4) <= ERROR_RATE
        assert pairs * binom.cdf(math.floor(0.01 * least), least // 2, 0.4) > ERROR_RATE


@pytest.mark.parametrize(
    ("sites", "degrees"),
    [
        (10, []),
        (100, ["duplicate"]),
        (1_000, ["duplicate", "first"]),
        (5_000, ["duplicate", "first", "second"]),
        (20_000, ["duplicate", "first", "second", "third"]),
    ],
)
def test_closer_degrees_need_fewer_sites(sites, degrees):
    found = resolve(0.75 / sites, 0.4, 0.24 / sites, sites=sites, **ABOUT)
    assert found.degrees == degrees


def test_verdicts_of_pairs_equal_those_of_blocks():
    found = resolve(1e-4, 0.4, 1e-4, sites=5_000, **ABOUT)
    rng = np.random.default_rng(3)
    called = rng.integers(1, 5_001, 5_000)
    wrong = (called * rng.uniform(0, 0.04, 5_000)).astype(int)
    wrong[:100], called[:100] = 2, 100  # exactly at the limit
    same = found.same(wrong, called)
    verdicts = [found.verdict(w, c) for w, c in zip(wrong.tolist(), called.tolist(), strict=True)]
    assert same.tolist() == [verdict == "same" for verdict in verdicts]
    assert set(verdicts) == {"same", "different", "too few sites"}
    nothing = resolve(None, None, None, sites=5_000, **ABOUT)
    assert nothing.verdict(0, 5_000) == "too few sites"
    assert not nothing.same(wrong, called).any()
    assert np.isinf(nothing.least_kinship(called)).all()


# --- nulls and relatives --------------------------------------------------------------------------


@pytest.mark.parametrize("structured", [False, True])
def test_no_relative_is_named_on_five_short_regions(structured):
    """A panel on which fixed limits call thousands of strangers close relatives."""
    people = draw_people(300, 5, 2e5, sites=500, structured=structured)
    found = resolution_of(people, BACKEND)
    verdicts = judge(people, found, BACKEND)
    false = verdicts.count(verdicts.kinship >= SECOND)
    print(f"\n{found.sites} sites as {found.effective_sites:.0f}: {false} false pairs before")
    assert false > 1_000
    assert verdicts.count(verdicts.related) == verdicts.count(verdicts.same) == 0
    assert found.degrees == ["duplicate"]
    with_families, pairs = add_families(people, 20)
    verdicts = judge(with_families, found, BACKEND)
    assert {(i, j) for i, j in zip(*np.nonzero(np.triu(verdicts.same, 1)), strict=True)} == set(
        pairs["duplicate"]
    )


def test_one_short_region_cannot_distinguish_people():
    people = draw_people(200, 1, 1e5, sites=500)
    found = resolution_of(people, BACKEND)
    verdicts = judge(people, found, BACKEND)
    assert verdicts.count(verdicts.kinship > DUPLICATE) > 50
    assert found.degrees == [] and found.least_called is None
    assert verdicts.count(verdicts.related) == 0


def test_relatives_are_found_where_sites_suffice():
    people = independent_people(90, 8_800, 2, 22, apart=150_000)
    found = resolution_of(people, BACKEND)
    with_families, pairs = add_families(people, 20)
    verdicts = judge(with_families, found, BACKEND)
    alone = judge(people, found, BACKEND)
    assert alone.count(alone.related) == alone.count(alone.same) == 0
    assert {"duplicate", "first"} <= set(found.degrees)
    for relation in ("duplicate", "parent and child", "full siblings"):
        told = verdicts.same if relation == "duplicate" else verdicts.related
        share = np.mean([told[i, j] for i, j in pairs[relation]])
        assert share >= 0.95, relation
        assert relation == "duplicate" or not any(verdicts.same[i, j] for i, j in pairs[relation])


# --- through the files ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> dict:
    """Founders and newcomers on five short regions; families and duplicates in and between them."""
    folder = tmp_path_factory.mktemp("five")
    people, pairs = add_families(draw_people(120, 5, 2e5, sites=300), 12)
    names = [f"P{k:03d}" for k in range(len(people.genotypes))]
    newcomer = np.arange(len(names)) % 5 == 4
    sites = [
        (str(c + 1), int(p), f"s{k}", "A", "C")
        for k, (c, p) in enumerate(zip(people.contig, people.pos, strict=True))
    ]
    cohorts = [
        Cohort(name, [n for n, m in zip(names, rows, strict=True) if m], sites, g)
        for name, rows, g in (
            ("old", ~newcomer, people.genotypes[~newcomer].T),
            ("new", newcomer, people.genotypes[newcomer].T),
        )
    ]
    for cohort in cohorts:
        raw = write_raw(folder / cohort.name / "raw", cohort)
        summarize_cohort(
            raw,
            {},
            folder / f"{cohort.name}.sites.tsv",
            folder / f"{cohort.name}.samples.tsv",
            min_sample_call_rate=0.0,
        )
    panel = folder / "panel.tsv"
    build_panel(
        {"old": folder / "old.sites.tsv"}, panel, folder / "counts.json", PanelFilters(**NO_FILTERS)
    )
    for cohort in cohorts:
        encode_cohort(
            folder / cohort.name / "raw",
            folder / f"{cohort.name}.samples.tsv",
            panel,
            folder / cohort.name,
            impute="mode",
            cohort=cohort.name,
        )
    found = measure_resolution(
        [folder / "old"], panel, folder / "kinship.json", BACKEND, max_mismatch=0.02
    )
    known = {tuple(sorted((names[i], names[j]))) for i, j in pairs["duplicate"]}
    return {"folder": folder, "panel": panel, "resolution": found, "duplicates": known}


def tiles_of(scene: dict, out: Path, resolution) -> dict[str, list[Path]]:
    limits = Limits(0.0884, 0.005, 20, resolution, top=3)
    tiles = {"kinship": [], "identity": [], "mixture": []}
    af = load_panel(scene["panel"])[0].af.to_numpy()
    for a, b in (("old", "old"), ("old", "new"), ("new", "new")):
        paths = {kind: out / f"{a}{b}.{kind}.tsv" for kind in tiles}
        folders = scene["folder"] / a, scene["folder"] / b
        compare_cohorts(*folders, af, paths, BACKEND, limits)
        for kind, path in paths.items():
            tiles[kind].append(path)
    return tiles


def pairs_of(table: pd.DataFrame, a: str, b: str) -> set[tuple[str, str]]:
    return {tuple(sorted(pair)) for pair in zip(table[a], table[b], strict=True)}


def test_kinship_and_identity_agree_on_duplicates(scene, tmp_path):
    """Whatever the panel resolves, both tables list the same duplicates."""
    honest = scene["resolution"]
    assert load_resolution(scene["folder"] / "kinship.json") == honest
    believed = replace(honest, smallest_kinship=0.01)
    loose = replace(honest, smallest_kinship=0.01, max_mismatch=0.15, least_called=20)
    mute = resolve(None, None, None, **ABOUT | {"sites": honest.sites})
    for number, resolution in enumerate((honest, believed, loose, mute)):
        tiles = tiles_of(scene, tmp_path / str(number), resolution)
        close = kinship.join_pairs(tiles["kinship"], tmp_path / "k.tsv", min_kinship=0.0884)
        sheet = pd.DataFrame({"sample": [f"P{k:03d}" for k in range(300)]})
        join_identity(tiles["identity"], sheet, tmp_path / "i.tsv", top=3)
        found = read_table(tmp_path / "i.tsv")
        same = pairs_of(found[found.verdict == "same"], "query", "match")
        twins = pairs_of(close[close.relation == kinship.SAME], "sample_a", "sample_b")
        assert same == twins
        if resolution is honest:
            assert same == scene["duplicates"]
            assert len(close) == len(same)  # no other pair is close
        if resolution is believed:
            assert len(close) > 500
        if resolution is mute:
            assert close.empty and not same
            assert "too few sites" in set(found.verdict)


def test_axes_leave_out_duplicates_but_no_stranger(scene, tmp_path):
    tiles = tiles_of(scene, tmp_path, scene["resolution"])
    counts = kinship.choose_unrelated(
        tiles["kinship"][:1],
        {"old": scene["folder"] / "old" / "genotypes"},
        tmp_path / "unrelated.tsv",
        max_kinship=0.0884,
        resolution=scene["resolution"],
    )
    within = counts["pairs of relatives"]
    assert counts["founders"] - counts["unrelated"] == within < 12
    used = counts["kinship limit in use (what the panel's sites tell)"]
    limit = scene["resolution"].smallest_kinship
    assert used == ("none, only duplicates" if limit is None else max(limit, 0.0884))
    believed = replace(scene["resolution"], smallest_kinship=0.01)
    tiles = tiles_of(scene, tmp_path / "believed", believed)
    before = kinship.choose_unrelated(
        tiles["kinship"][:1],
        {"old": scene["folder"] / "old" / "genotypes"},
        tmp_path / "before.tsv",
        max_kinship=0.0884,
        resolution=believed,
    )
    print(f"\nfounders that define the axes: {counts['unrelated']}, before {before['unrelated']}")
    assert before["unrelated"] < 0.6 * before["founders"]
    assert before["kinship limit in use (what the panel's sites tell)"] == 0.0884


def test_only_duplicates_are_excluded_as_bridges(scene, tmp_path):
    tiles = tiles_of(scene, tmp_path, scene["resolution"])["kinship"]
    ends = kinship.relatives_but_one(tiles)
    assert len(ends) == len(scene["duplicates"])
    assert all(len(ends & set(pair)) == 1 for pair in scene["duplicates"])


def test_threads_and_order_do_not_change_the_file(scene, tmp_path, monkeypatch):
    """The same bytes with one thread, several threads, and founders alone."""
    args = [scene["folder"] / "old"], scene["panel"]
    first = (scene["folder"] / "kinship.json").read_bytes()
    measure_resolution(*args, tmp_path / "k.json", select_backend("cpu", 1), max_mismatch=0.02)
    assert (tmp_path / "k.json").read_bytes() == first
    monkeypatch.setattr(independence, "MOST_FOUNDERS", 60)
    fewer = measure_resolution(*args, tmp_path / "f.json", BACKEND, max_mismatch=0.02)
    assert fewer.standard_error == pytest.approx(scene["resolution"].standard_error, rel=0.3)
    assert fewer.founders == scene["resolution"].founders


def test_noisy_duplicates_are_first_degree_or_closer_not_parent_and_child():
    assert relation_of(0.45, 0.0, 0.005) == "first degree or closer"
    assert relation_of(FIRST + 0.01, 0.0, 0.005) == "parent and child"
