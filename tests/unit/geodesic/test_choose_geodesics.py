"""The choice of geodesics: the rule, what it is judged by, and that only founders take part."""

import json

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes import scene
from support.study import Cohort, write_raw

from popdesic.components.define_axes import define_axes
from popdesic.components.relationship import alt_frequency, relationship_among
from popdesic.distance.tiles import pairwise_counts
from popdesic.engine.select import cpu_backend
from popdesic.geodesic import choose_geodesics as module
from popdesic.geodesic.choose_geodesics import (
    choose_geodesics,
    components_to_try,
    default_components,
    draw_people,
)
from popdesic.geodesic.held_out import _Cell, _Half, genome_parts, random_half, unbiased_squares
from popdesic.geodesic.metrics import (
    MARGIN,
    NEAREST,
    PLAIN,
    SAME_ORDER,
    WAYS,
    Evidence,
    Way,
    choose_way,
    ways_of,
)

# --- the rule -----------------------------------------------------------------------------------


def evidence(held_out: dict[Way, float], agreement: float = 0.9, chance: float = 0.01) -> Evidence:
    same = {way: 1.0 if way.is_plain else agreement for way in held_out}
    return Evidence(held_out, same, dict.fromkeys(held_out, chance))


def with_components(k: int | None, **found: float) -> dict[Way, float]:
    """What held-out sites say of k components: nearest, plain and Fermat 1.5 and 2."""
    names = ("nearest", "plain", "fermat15", "fermat2")
    return {way: found.get(name, 0.1) for way, name in zip(ways_of([k]), names, strict=True)}


@pytest.mark.parametrize(
    ("found", "way", "reason"),
    [
        ({"nearest": 0.6, "plain": 0.5}, NEAREST, "nearest"),
        ({"nearest": 0.5, "plain": 0.5 + 0.9 * MARGIN}, NEAREST, "nearest"),
        ({"nearest": 0.5, "plain": 0.5 + 1.1 * MARGIN}, PLAIN, "plain"),
        ({"nearest": 0.4, "plain": 0.5, "fermat2": 0.5 + 0.9 * MARGIN}, PLAIN, "plain"),
        ({"nearest": 0.4, "plain": 0.5, "fermat2": 0.5 + 1.1 * MARGIN}, WAYS[3], "lead"),
        ({"nearest": 0.5, "plain": 0.4, "fermat15": 0.5 + 0.9 * MARGIN}, NEAREST, "nearest"),
        ({"nearest": 0.04, "plain": 0.02, "fermat15": 0.049, "fermat2": 0.0}, PLAIN, "no evidence"),
        ({"nearest": -0.3, "plain": -0.2, "fermat15": 0.0, "fermat2": 0.0}, PLAIN, "no evidence"),
    ],
)
@pytest.mark.parametrize("k", [None, 8])
def test_a_way_has_to_lead_by_the_margin(found, way, reason, k):
    choice = choose_way(evidence(with_components(k, **found)))
    assert choice.reason == reason
    assert choice.way == Way(way.graph, way.alpha, way.neighbors, k)
    assert choice.best.pcs == k and not choice.best.is_plain


@pytest.mark.parametrize(
    ("nearest", "taken"),
    [
        ({8: 0.5, 4: 0.5 + 0.9 * MARGIN}, 8),
        ({8: 0.5, 4: 0.5 + 1.1 * MARGIN}, 4),
        ({8: 0.5, 4: 0.5 + 1.1 * MARGIN, 2: 0.5 + 1.9 * MARGIN}, 4),
        ({1: 0.52, 8: 0.5, 4: 0.51, 2: 0.515}, 1),
        ({8: 0.5, 13: 0.5 + 0.9 * MARGIN}, 8),
        ({8: 0.5, 13: 0.5 + 1.1 * MARGIN}, 13),
        ({13: 0.51, 8: 0.5, 4: 0.508}, 8 + 5 - 9),
        ({13: 0.6}, 13),
    ],
)
def test_other_numbers_of_components_have_to_lead_by_the_margin(nearest, taken):
    found: dict[Way, float] = {}
    for k, value in nearest.items():
        found |= with_components(k, nearest=value, plain=value - 0.02)
    assert choose_way(evidence(found)).way == Way("knn", 1.0, 15, taken)


@pytest.mark.parametrize("agreement", [SAME_ORDER - 0.001, SAME_ORDER])
def test_geodesics_that_change_no_order_are_plain_distances(agreement):
    found = with_components(8, nearest=0.6, plain=0.5)
    choice = choose_way(evidence(found, agreement))
    same = agreement >= SAME_ORDER
    assert choice.way.is_plain == same
    assert choice.reason == ("same order" if same else "nearest")
    assert choice.best == Way("knn", 1.0, 15, 8)


def test_plain_distances_are_compared_with_geodesics_that_differ():
    found = with_components(None, nearest=0.4, plain=0.6, fermat15=0.6, fermat2=0.5)
    judged = evidence(found)
    judged.agreement[WAYS[2]] = 1.0
    choice = choose_way(judged)
    assert choice.reason == "plain" and choice.way == PLAIN and choice.best == WAYS[3]


@pytest.mark.parametrize("chance", [0.29, 0.31])
def test_what_chance_reaches_is_no_evidence(chance):
    choice = choose_way(evidence(with_components(8, nearest=0.3, plain=0.2), chance=chance))
    assert choice.reason == ("nearest" if chance < 0.3 else "no evidence")


@pytest.mark.parametrize(
    ("pcs", "significant", "held", "tried", "default"),
    [
        ("auto", 0, 30, [1, 2, 4, 8], 2),
        ("auto", 8, 30, [1, 2, 4, 8], 8),
        ("auto", 11, 30, [1, 2, 4, 8, 11], 11),
        ("auto", 44, 44, [1, 2, 4, 8, 20], 20),
        ("auto", 3, 5, [1, 2, 4, 5], 3),
        ("auto", 0, 1, [1], 1),
        (3, 11, 30, [3], 3),
        (30, 11, 12, [12], 12),
    ],
)
def test_numbers_of_components(pcs, significant, held, tried, default):
    assert components_to_try(pcs, significant, held) == tried
    assert default_components(pcs, significant, held) == default


# --- halves and held-out distances --------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_unbiased_squares_are_those_of_frequencies(missing):
    rng = np.random.default_rng(1)
    p, q = rng.uniform(0.1, 0.9, (2, 200_000))
    people = np.array([p, p, q, q])  # two of each population
    genotypes = rng.binomial(2, people.T).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    called = genotypes >= 0
    both = called[:, :, None] & called[:, None]
    difference = (genotypes[:, :, None] - genotypes[:, None].astype(int)) ** 2
    counts = {"squared": (difference * both).sum(axis=0), "called": both.sum(axis=0)}
    found = unbiased_squares(counts, (genotypes == 1).sum(axis=0), len(p)) / len(p)
    assert found[0, 1] == pytest.approx(0, abs=0.02)
    assert found[0, 2:] == pytest.approx([4 * np.mean((p - q) ** 2)] * 2, abs=0.02)


def test_halves_are_the_sums_of_their_parts(rng):
    """Sites without a called genotype, or with one allele among these people, count for nobody."""
    n, n_sites = 30, 500
    genotypes = rng.integers(0, 3, (n_sites, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.2] = -1
    genotypes[::7] = np.where(genotypes[::7] < 0, -1, rng.integers(0, 2) * 2)
    genotypes[::50] = -1
    genotypes[:, 3] = -1
    part = rng.integers(0, 3, n_sites)

    def cell(rows: np.ndarray) -> _Cell:
        own = genotypes[rows]
        return _Cell.of(lambda a, b: own[a:b], len(own), n, cpu_backend(), 1, "euclidean")

    whole = _Half([cell(part >= 0)])
    summed = _Half([cell(part == k) for k in range(3)])
    expected = relationship_among(lambda a, b: genotypes[a:b], [n], alt_frequency(genotypes))
    for half in (whole, summed):
        np.testing.assert_allclose(half.relationship, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(half.squares, whole.squares)
        assert half.n_sites == n_sites


def test_unbiased_squares_by_hand():
    """(4 - 0) + (1 - 1) + (0 - 1 - 1) + (1 - 1); infinite where nothing is jointly called."""
    counts = {"squared": np.array([[0, 6], [6, 0]]), "called": np.full((2, 2), 4)}
    assert unbiased_squares(counts, np.array([2, 2]), 4)[0, 1] == 6 - 2 - 2
    counts["called"] = np.diag([4, 4])
    assert unbiased_squares(counts, np.array([2, 2]), 4)[0, 1] == np.inf


def sites_of(spans: dict[str, int], n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(c, pos) for c, span in spans.items() for pos in np.sort(rng.integers(1, span, n))]
    return pd.DataFrame(rows, columns=["chrom", "pos"])


def test_many_contigs_stay_whole():
    sites = sites_of({f"chr{k}": 1000 * k for k in range(1, 13)}, 40, 2)
    parts = genome_parts(sites)
    assert len(set(parts)) == 12
    assert pd.DataFrame({"c": sites.chrom, "p": parts}).drop_duplicates().shape == (12, 2)


def test_few_contigs_are_cut_into_segments_of_equal_length():
    sites = sites_of({"1": 30_000_000, "2": 10_000_000, "3": 100_000}, 3000, 3)
    parts = genome_parts(sites)
    by_contig = pd.Series(parts).groupby(sites.chrom.to_numpy()).nunique()
    assert by_contig.to_dict() == {"1": 15, "2": 5, "3": 1}
    widths = sites.pos.groupby(parts).agg(np.ptp)
    assert widths.max() < 2_100_000 and widths[:-1].min() > 1_900_000
    alone = genome_parts(sites[sites.chrom == "1"])
    assert len(set(alone)) == 20 and (np.diff(alone) >= 0).all()
    assert set(genome_parts(sites.iloc[[0]])) == {0}


@pytest.mark.parametrize("seed", range(5))
def test_a_half_has_whole_parts_and_half_of_the_sites(seed):
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.arange(14), rng.integers(1, 90, 14))
    half = random_half(parts, rng)
    for part in range(14):
        assert len(set(half[parts == part])) == 1
    assert 0.2 < half.mean() < 0.8
    two = np.repeat([0, 1], [1, 99])
    assert random_half(two, rng).sum() in (1, 99)


# --- a study ------------------------------------------------------------------------------------


class Study:
    """A scene's people in cohorts on a panel; writes what `choose_geodesics` reads."""

    def __init__(self, folder, drawn, cohorts: dict[str, np.ndarray], **asked):
        self.folder = folder
        self.sites = pd.DataFrame({"chrom": drawn.chrom, "pos": drawn.pos})
        rows = [
            (c, p, f"rs{k}", "A", "C")
            for k, (c, p) in enumerate(zip(drawn.chrom, drawn.pos, strict=True))
        ]
        self.prefixes = []
        for name, who in cohorts.items():
            cohort = Cohort(name, list(drawn.samples[who]), rows, drawn.genotypes[:, who])
            self.prefixes.append(write_raw(folder / name / "genotypes", cohort))
        table = self.sites.assign(
            id=[row[2] for row in rows], ref="A", alt="C", af=0.5, mode=0, n_called=9
        )
        (folder / "sites.tsv").write_text(
            f"# panel x, {len(table)} sites\n" + table.to_csv(sep="\t", index=False)
        )
        options = {"unrelated": None, "components": "auto", "pcs": "auto", "ld_prune": []}
        define_axes(
            self.prefixes,
            folder / "sites.tsv",
            **options | {"regions": []} | asked,
            out={
                "axes": folder / "axes.npz",
                "about": folder / "axes.json",
                "loadings": folder / "loadings.tsv",
            },
        )

    def choose(self, prefixes=None, **asked) -> dict:
        options = {"spaces": ["genotypes", "pcs"], "pcs": "auto", "metric": "euclidean"} | asked
        found = choose_geodesics(
            prefixes or self.prefixes,
            self.folder / "axes.npz",
            self.folder / "axes.json",
            self.folder / "sites.tsv",
            **options,
            out=self.folder / "choice.json",
        )
        assert json.loads((self.folder / "choice.json").read_text()) == found
        return found


def split(rng, n: int, names: str) -> dict[str, np.ndarray]:
    """Everyone in a random order, in cohorts of random sizes."""
    cohort = rng.integers(0, len(names), n)
    order = rng.permutation(n)
    return {name: order[cohort[order] == k] for k, name in enumerate(names)}


@pytest.fixture(scope="module")
def grid():
    return scene("grid", 21, side=8, sites=600)


@pytest.fixture(scope="module")
def on_grid(grid, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    study = Study(folder, grid, {"one": np.arange(len(grid.samples))})
    return study, study.choose(), (folder / "choice.json").read_bytes()


def test_a_study_on_a_grid(on_grid, grid):
    _, found, _ = on_grid
    choice = found["pcs"]
    assert (choice["graph"], choice["alpha"], choice["neighbors"]) == ("knn", 1.0, 15)
    assert choice["reason"] == "nearest" and choice["pcs"] in (2, 4, 8)
    assert choice["rank_correlation"] == choice["best"]
    better = choice["best"] > choice["plain"]
    assert ("better than" if better else "practically as well as") in choice["why"]
    assert choice["agreement"] < SAME_ORDER
    assert "nearest neighbours" in choice["why"] and f"{choice['plain']:.3f}" in choice["why"]
    assert choice["people"] == len(grid.samples) and choice["sites"] == 600
    # four ways each of 1, 2, 4 and 8 components, and of the significant ones if there are more
    assert len(choice["held_out"]) in (16, 20) and len(found["genotypes"]["held_out"]) == 4
    assert found["genotypes"]["pcs"] is None
    rows = {(r["graph"], r["alpha"], r["pcs"]): r for r in choice["held_out"]}
    chosen = rows[choice["graph"], choice["alpha"], choice["pcs"]]
    assert chosen["rank_correlation"] == choice["best"]
    assert chosen["agreement"] == choice["agreement"]


def test_the_order_of_samples_and_cohorts_plays_no_role(on_grid, grid, tmp_path, monkeypatch):
    study, _, expected = on_grid
    cohorts = split(np.random.default_rng(22), len(grid.samples), "uvw")
    other = Study(tmp_path, grid, cohorts)
    # how many components are significant is tested with signs that are drawn in sample order
    (tmp_path / "axes.json").write_bytes((study.folder / "axes.json").read_bytes())
    other.choose(other.prefixes[::-1])
    assert (tmp_path / "choice.json").read_bytes() == expected
    # and of a draw of them
    monkeypatch.setattr(module, "MOST_PEOPLE", 100)
    assert study.choose() == other.choose()
    assert study.choose()["pcs"]["people"] == 100
    monkeypatch.undo()
    study.choose()


def test_samples_that_define_no_axes_play_no_role(on_grid, grid, tmp_path):
    """Relatives among the founders, and newcomers, are in no draw."""
    study, _, _ = on_grid
    outside = np.random.default_rng(23).random(len(grid.samples)) < 0.3
    inside = np.flatnonzero(~outside)
    alone = Study(tmp_path / "alone", grid, {"one": inside})
    names = grid.samples[outside]
    table = pd.DataFrame({"sample": grid.samples, "unrelated": "yes"})
    table.loc[table["sample"].isin(names), "unrelated"] = "no"
    (tmp_path / "unrelated.tsv").write_text(table.to_csv(sep="\t", index=False))
    everyone = split(np.random.default_rng(24), len(grid.samples), "xy")
    among = Study(tmp_path / "among", grid, everyone, unrelated=tmp_path / "unrelated.tsv")
    assert among.choose() == alone.choose()
    assert among.choose() != study.choose()


def test_a_draw_depends_on_names_alone():
    names = {f"S{k}" for k in range(3_000)}
    drawn = draw_people(names)
    assert drawn == sorted(drawn)
    assert len(drawn) == module.MOST_PEOPLE
    without = draw_people(names - {drawn[0]})
    assert len(set(without) - set(drawn)) == 1
    assert draw_people({"b", "a"}) == ["a", "b"]


def test_a_single_contig_is_cut(on_grid, grid):
    changed = Scenery(grid, chrom=np.full(600, "7"), pos=1 + 10_000 * np.arange(600))
    found = changed.choose(on_grid[0].folder / "single")
    assert found["pcs"]["reason"] == "nearest"
    same_place = Scenery(grid, chrom=np.full(600, "7"), pos=np.full(600, 10))
    found = same_place.choose(on_grid[0].folder / "place")
    assert found["pcs"]["reason"] == "too few" and "too close together" in found["pcs"]["why"]


class Scenery:
    """A scene with other positions."""

    def __init__(self, drawn, **changes):
        vars(self).update(vars(drawn) | changes)

    def choose(self, folder) -> dict:
        return Study(folder, self, {"one": np.arange(len(self.samples))}).choose(spaces=["pcs"])


@pytest.mark.parametrize(("people", "sites"), [(49, 600), (150, 99)])
def test_too_little_data(grid, tmp_path, people, sites):
    """Plain distances of the significant components, at least two."""
    few = Scenery(
        grid,
        genotypes=grid.genotypes[:sites, :people],
        samples=grid.samples[:people],
        chrom=grid.chrom[:sites],
        pos=grid.pos[:sites],
    )
    study = Study(tmp_path, few, {"one": np.arange(people)})
    for space, choice in study.choose().items():
        assert (choice["graph"], choice["alpha"], choice["reason"]) == ("complete", 1.0, "too few")
        assert str(min(people, sites)) in choice["why"] and choice["held_out"] == []
        significant = json.loads((tmp_path / "axes.json").read_text())["significant"]
        assert choice["pcs"] == (max(2, significant) if space == "pcs" else None)
    assert study.choose(pcs=3)["pcs"]["pcs"] == 3


def test_one_population_has_plain_distances(tmp_path):
    drawn = scene("panmixia", 31, people=120, sites=900)
    found = Study(tmp_path, drawn, {"one": np.arange(120)}).choose()
    for choice in found.values():
        assert (choice["graph"], choice["alpha"], choice["reason"]) == (
            "complete",
            1.0,
            "no evidence",
        )
        assert "next to nothing" in choice["why"]
    assert found["pcs"]["pcs"] == 2


@pytest.mark.parametrize("metric", ["manhattan", "normalized"])
def test_distances_of_genotypes_are_of_the_metric(on_grid, metric):
    found = on_grid[0].choose(spaces=["genotypes"], metric=metric)["genotypes"]
    plain = [row for row in found["held_out"] if row["graph"] == "complete" and row["alpha"] == 1]
    (other,) = [
        row
        for row in on_grid[1]["genotypes"]["held_out"]
        if row["graph"] == "complete" and row["alpha"] == 1
    ]
    assert plain[0]["rank_correlation"] != other["rank_correlation"]
    assert plain[0]["rank_correlation"] == pytest.approx(other["rank_correlation"], abs=0.15)


def test_a_sample_without_calls_in_a_half_is_far_away(grid, tmp_path):
    genotypes = grid.genotypes.copy()
    genotypes[np.isin(grid.chrom, [str(k) for k in range(1, 20)]), 5] = -1
    genotypes[np.random.default_rng(32).random(genotypes.shape) < 0.02] = -1
    holey = Scenery(grid, genotypes=genotypes)
    found = Study(tmp_path, holey, {"one": np.arange(len(grid.samples))}).choose()
    assert found["pcs"]["reason"] == "nearest"
    assert all(np.isfinite(r["rank_correlation"]) for c in found.values() for r in c["held_out"])


def test_the_counts_are_those_of_the_distances(grid):
    """Held-out squares come from the kernel that measures distances."""
    from popdesic.api.packing import pack

    planes = pack(grid.genotypes.T[:30])
    counts = pairwise_counts(planes, None, cpu_backend(1), metric="euclidean", missing="pairwise")
    found = unbiased_squares(counts, (grid.genotypes[:, :30] == 1).sum(axis=0), 600)
    a, b = grid.genotypes[:, 3].astype(int), grid.genotypes[:, 7].astype(int)
    assert found[3, 7] == ((a - b) ** 2).sum() - (a == 1).sum() - (b == 1).sum()
