"""Identity by descent of haploids: against the oracle, where the truth is known, under the null."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from oracles import haploid_ibd as slow
from scenes.haploids import haploids

import popdesic
from popdesic.ibd import haploid
from popdesic.ibd.haploid import allele_ratios, haploid_pairs, morgan_steps
from popdesic.ibd.haploid_cpu import fit_block


def fit_one(one, two, af, steps, error=0.001, most=np.inf, iterations=100):
    """A fit of two samples, and where the best path is in IBD."""
    alleles = np.array([one, two], np.int8)
    fits, paths = np.zeros((1, 5)), np.empty((1, len(steps)), np.uint8)
    limits = np.array([most, iterations], np.float64)
    fit_block(alleles, 0, 1, allele_ratios(af, error), steps, limits, fits, paths)
    return fits[0], paths[0].astype(bool)


def tiny(seed: int):
    """Nine sites on two contigs, some missing, some in one place."""
    rng = np.random.default_rng(seed)
    one, two = rng.integers(-1, 2, (2, 9))
    two[:6] = np.where(rng.random(6) < 0.7, one[:6], two[:6])
    steps = rng.exponential(0.2, 9)
    steps[[0, 5]] = np.inf
    steps[[2, 7]] = 0
    return one, two, rng.uniform(0.05, 0.95, 9), steps


@pytest.mark.parametrize("iterations", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_fits_are_sums_over_all_paths(seed, iterations):
    one, two, af, steps = tiny(seed)
    error = [0.001, 0.02, 0.3][seed]
    found, path = fit_one(one, two, af, steps, error, 8.0, iterations)
    true, best = slow.fit(slow.by_all_paths, one, two, af, steps, error, 8.0, iterations)
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-12)  # other orders of sums
    assert path.tolist() == best.tolist()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 200])
def test_fits_equal_recurrences_in_logarithms(n):
    rng = np.random.default_rng(n)
    af = rng.uniform(0.02, 0.98, n)
    one, two = rng.random((2, n)) < af
    two[: n // 2] = one[: n // 2]
    missing = rng.random((2, n)) < 0.05
    one, two = np.where(missing, -1, np.array([one, two]).astype(int))
    steps = rng.exponential(0.01, n)
    steps[[0, n // 3]] = np.inf
    found, path = fit_one(one, two, af, steps, iterations=15)
    true, best = slow.fit(slow.by_logarithms, one, two, af, steps, 0.001, iterations=15)
    np.testing.assert_allclose(found, true, rtol=1e-8, atol=1e-10)  # logarithms cancel
    assert path.tolist() == best.tolist()


def fitted(seed: int):
    """A scene, the tables, true shares of pairs, and where each pair is in IBD as found."""
    scene = haploids(seed)
    options = {"centimorgans": scene.cm, "af": scene.af, "threads": 1}
    pairs, segments = popdesic.haploid_ibd(scene.alleles, scene.positions, scene.contigs, **options)
    shared = np.array(
        [scene.shared(*pair) for pair in pairs[["sample1", "sample2"]].to_numpy().tolist()]
    )
    found = np.zeros_like(shared)
    rows = {pair: k for k, pair in enumerate(zip(pairs.sample1, pairs.sample2, strict=True))}
    for one in segments.itertuples():
        inside = (scene.positions >= one.start) & (scene.positions <= one.end)
        found[rows[one.sample1, one.sample2]] |= inside & (scene.contigs == one.contig)
    return SimpleNamespace(
        scene=scene, pairs=pairs, segments=segments, shared=shared, found=found, options=options
    )


@pytest.fixture(scope="module", params=[11, 12, 13, 14])
def drawn(request):
    return fitted(request.param)


def test_shares_of_clones_and_crosses_are_the_true_ones(drawn):
    true = drawn.shared.mean(axis=1)
    related, clones = true > 0, true == 1
    distance = (drawn.pairs.fraction - true).abs()
    assert clones.sum() == 3 and drawn.pairs.fraction[clones].min() > 0.999
    assert related.sum() >= 28
    assert distance[related].max() < 0.05 and distance[related].mean() < 0.01
    assert drawn.pairs.LOD[true > 0.1].min() > 10
    assert (drawn.found == drawn.shared)[related].mean() > 0.97


def test_strangers_share_nothing(drawn):
    strangers = drawn.shared.sum(axis=1) == 0
    assert strangers.sum() > 150
    pairs = drawn.pairs[strangers]
    assert pairs.fraction.mean() < 0.005 and pairs.fraction.max() < 0.1
    assert pairs.LOD.max() < 3
    assert drawn.found[strangers].mean() < 0.003


def test_segments_are_stretches_of_one_contig_with_their_sites_counted(drawn):
    scene, segments = drawn.scene, drawn.segments
    assert len(segments) > 60
    for one in segments.itertuples():
        inside = (scene.contigs == one.contig) & (scene.positions >= one.start)
        inside &= scene.positions <= one.end
        x, y = scene.alleles[one.sample1, inside], scene.alleles[one.sample2, inside]
        called = (x >= 0) & (y >= 0)
        assert (one.sites, one.differ) == (called.sum(), (called & (x != y)).sum())
        assert one.cM == pytest.approx(np.ptp(scene.cm[inside]))
    clones = segments[(segments.sample1 == 12) & (segments.sample2 == 13)]
    assert clones.contig.tolist() == np.unique(scene.contigs).tolist()


def test_neither_threads_nor_other_samples_nor_parts_change_a_bit(drawn, monkeypatch):
    scene, pairs = drawn.scene, drawn.pairs
    sites = scene.positions, scene.contigs
    options = drawn.options | {"threads": 3}
    monkeypatch.setattr(haploid, "ALLELES_AT_ONCE", 3 * len(scene.cm))
    again, segments = popdesic.haploid_ibd(scene.alleles, *sites, **options)
    assert again.equals(pairs) and segments.equals(drawn.segments)
    some = np.array([1, 3, 12, 15, 18])
    fewer, _ = popdesic.haploid_ibd(scene.alleles[some], *sites, **options)
    own = pairs[pairs.sample1.isin(some) & pairs.sample2.isin(some)]
    columns = ["sites", "differ", "fraction", "generations", "LOD", "iterations"]
    assert fewer[columns].to_numpy().tolist() == own[columns].to_numpy().tolist()


def test_limits_of_the_fit(drawn):
    scene = drawn.scene
    sites = scene.positions, scene.contigs
    capped, _ = popdesic.haploid_ibd(scene.alleles, *sites, **drawn.options, max_generations=2)
    assert capped.generations.max() == 2 < drawn.pairs.generations.max()
    short, _ = popdesic.haploid_ibd(scene.alleles, *sites, **drawn.options, iterations=5)
    assert short.iterations.max() == 5 < drawn.pairs.iterations.max()


def test_a_region_without_recombination_is_no_trap():
    """All of 6 000 sites in one place: the probability of a state would become 0."""
    rng = np.random.default_rng(4)
    af = np.full(6_000, 0.5)
    alleles = (rng.random((2, 6_000)) < af).astype(np.int8)
    alleles[1, :3_000] = alleles[0, :3_000]
    contigs = np.repeat(["a", "b"], 3_000)
    pairs, segments = popdesic.haploid_ibd(
        alleles, np.arange(6_000), contigs, centimorgans=np.zeros(6_000), af=af, threads=1
    )
    assert pairs.fraction[0] == pytest.approx(0.5) and pairs.generations[0] == 1
    assert segments[["contig", "sites", "differ"]].to_numpy().tolist() == [["a", 3_000, 0]]


def test_pairs_with_few_informative_sites_are_not_fitted():
    alleles = np.zeros((10, 40), np.int8)
    alleles[0] = -1
    alleles[1:4, :10] = 1  # three with the minor allele at ten sites
    alleles[3, 9] = -1
    alleles[8:, 20:] = -1
    pairs, segments = popdesic.haploid_ibd(alleles, np.arange(40) * 10_000, threads=1)
    fitted = pairs[pairs.fraction.notna()]
    assert {1, 2} <= {*fitted.sample1} and 0 not in {*fitted.sample1}
    assert not ((fitted.sample1 == 2) & (fitted.sample2 == 3)).any()  # nine sites
    assert not (segments.sample1 == 0).any() and not ((pairs.sample1 == 0) & pairs.sites).any()
    none = pairs[pairs.fraction.isna()]
    assert none[["generations", "LOD"]].isna().all(axis=None) and not none.iterations.any()


def test_one_sample_has_no_pair():
    pairs, segments = popdesic.haploid_ibd([[0, 1, 1]], [1, 2, 3], af=[0.5] * 3)
    assert not len(pairs) and not len(segments)
    assert list(segments) == [
        *("sample1", "sample2", "contig", "start", "end", "cM", "sites", "differ")
    ]


@pytest.mark.parametrize("af", [0.0, 1.0, np.nan])
def test_sites_without_a_second_allele_say_nothing(af):
    assert allele_ratios(np.array([af]), 0.001).tolist() == [[1, 1, 1]]


def test_a_wrong_rate_of_recombination_changes_generations_alone(drawn):
    """Only the product of generations and Morgans is in the model."""
    scene = drawn.scene
    steps = morgan_steps(scene.contigs, scene.cm)
    rows = scene.alleles[[14, 15, 16]]
    options = {"error_rate": 0.001, "max_generations": np.inf, "iterations": 100, "threads": 1}
    once = haploid_pairs(rows, scene.af, steps, **options)
    half = haploid_pairs(rows, scene.af, steps / 2, **options)
    np.testing.assert_allclose(half.fits[:, 0], once.fits[:, 0], atol=0.002)
    np.testing.assert_allclose(half.fits[:, 1], 2 * once.fits[:, 1], rtol=0.02)
