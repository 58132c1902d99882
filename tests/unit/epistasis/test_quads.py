"""Scans of quads on the CPU against the brute-force oracle, and the test of their interaction."""

import itertools
from dataclasses import replace

import numba
import numpy as np
import pytest
from oracles import epistasis as oracle

import popdesic
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis import scan_cpu
from popdesic.epistasis.hits_cpu import quad_key
from popdesic.epistasis.interaction import degrees_of_freedom
from popdesic.epistasis.interaction_cpu import interaction_costs
from popdesic.epistasis.margins_cpu import alternating_information, margins_of_quad, quad_excess
from popdesic.epistasis.scan_data import MOST_QUAD_SITES
from popdesic.epistasis.scan_sites import scan_quads
from popdesic.epistasis.scores import lr_bits, score_tables
from popdesic.epistasis.site_tables_cpu import count_tables

SCORES = ["k2", "k2_excess", "mutual_information", "gini", "interaction"]


def drawn(score: str, n_sites: int, sizes: tuple[int, int], missing: float = 0.0):
    rng = np.random.default_rng([n_sites, *sizes, int(100 * missing)])
    tables = score_tables(score, *sizes)
    data, states, cases = oracle.random_scan(rng, n_sites, sizes, missing=missing, tables=tables)
    return replace(data, lr_bits=lr_bits(score, sum(sizes))), states, cases


def same(got, want) -> bool:
    return np.array_equal(got.cost, want.cost) and np.array_equal(got.sites, want.sites)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("score", SCORES)
def test_scans_of_quads_equal_the_oracle(score, missing, monkeypatch):
    """With chunks of two sites, so that pairs of sites lie in one chunk and in two."""
    monkeypatch.setattr(scan_cpu, "QUAD_CHUNK", 2)
    data, states, cases = drawn(score, 7, (40, 33), missing)
    for threads, first, top in ((1, range(7), 10), (2, range(1, 3), 1000)):
        want = oracle.scan(data, states, cases, 4, first, top)
        assert same(scan_quads(CpuBackend(threads), data, first, top), want)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 64), (65, 127), (500, 17)])
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_awkward_numbers_of_samples(sizes, missing):
    for score in ("k2", "interaction"):
        data, states, cases = drawn(score, 5, sizes, missing)
        want = oracle.scan(data, states, cases, 4, range(5), 4)
        assert same(scan_quads(CpuBackend(1), data, range(5), 4), want)


@pytest.mark.parametrize("n_sites", range(5))
def test_few_sites_have_few_quads(n_sites):
    data, _, _ = drawn("k2", max(n_sites, 1), (20, 20))
    hits = scan_quads(CpuBackend(1), data.of_sites(slice(0, n_sites)), range(n_sites), 9)
    assert hits.sites.shape == (int(n_sites == 4), 4)


@pytest.mark.parametrize("score", ["k2", "interaction"])
def test_quads_of_two_blocks_of_sites(score):
    """Sites 59 to 69, 64 among them, are those of a scan of them alone."""
    data, states, cases = drawn(score, 69, (30, 34), 0.02)
    last = slice(59, 69)
    want = oracle.scan(data.of_sites(last), states[last], cases, 4, range(10), 30)
    got = scan_quads(CpuBackend(1), data, range(59, 69), 30)
    assert same(got, replace(want, sites=want.sites + 59))


@pytest.mark.parametrize("score", ["k2", "interaction"])
def test_partners_of_quads(score):
    data, states, cases = drawn(score, 9, (50, 31), 0.1)
    data = replace(data, partners=oracle.random_partners(np.random.default_rng(2), 9, 0.2))
    want = oracle.scan(data, states, cases, 4, range(9), 200)
    assert 0 < len(want.cost) < 126
    assert same(scan_quads(CpuBackend(1), data, range(9), 200), want)


def test_ties_and_a_cutoff():
    """Copies of four sites: equal costs by panel order; what costs as much as the cutoff is in."""
    data, states, cases = drawn("k2", 4, (30, 30))
    states = np.repeat(states, 2, axis=0)
    rank = np.array([7, 3, 5, 1, 0, 2, 6, 4], np.int32)
    data = oracle.make_scan(states, cases, rank, data.total, data.part)
    want = oracle.scan(data, states, cases, 4, range(8), 9)
    assert len(set(want.cost.tolist())) < 9
    assert same(scan_quads(CpuBackend(1), data, range(8), 9), want)
    cut = scan_quads(CpuBackend(1), data, range(8), 9, int(want.cost[3]))
    assert same(cut, want) or np.array_equal(cut.cost[:4], want.cost[:4])


def test_a_key_holds_the_largest_ranks():
    ranks = np.arange(MOST_QUAD_SITES - 4, MOST_QUAD_SITES, dtype=np.int32)
    assert quad_key(ranks, 3, 1, 0, 2) == sum(
        int(rank) << (15 * k) for k, rank in enumerate(ranks[::-1])
    )
    assert quad_key(ranks, 3, 1, 0, 2) < 2**60


def quad_tables(n: int, count: int) -> np.ndarray:
    """Tables of n people with effects of all orders: int64 (count, 2, 81)."""
    rng = np.random.default_rng(n)
    out = []
    for _ in range(count):
        shares = [rng.dirichlet((2, 2, 2)) for _ in range(4)]
        people = rng.multinomial(n, np.einsum("a,b,c,d->abcd", *shares).ravel())
        odds = rng.normal(0, 0.5, (3,) * 3)[..., None] + rng.normal(0, 0.5, (3,) * 4)
        cases = rng.binomial(people, 1 / (1 + np.exp(-odds.ravel())))
        out.append([people - cases, cases])
    return np.array(out)


@numba.njit
def bound_of(counts, part, cost, scale):
    margin = margins_of_quad(counts)
    return alternating_information(margin, part, cost) * scale + quad_excess(counts, margin)


@pytest.mark.parametrize("n", [40, 600, 20_000])
def test_the_statistic_is_that_of_iterative_fitting(n):
    """It is never above that of the oracle, which stops before the maximum, nor far below."""
    tables = quad_tables(n, 4)
    got = -interaction_costs(tables, 40) / 2.0**40
    want = [oracle.interaction(table.reshape(2, 3, 3, 3, 3)) for table in tables]
    assert (got <= np.array(want) + 2e-6).all()
    np.testing.assert_allclose(got, want, atol=1e-4 if n == 20_000 else 0.02)


@pytest.mark.parametrize("n", [40, 600, 20_000])
def test_the_bound_by_all_margins_is_never_below_the_statistic(n):
    tables = quad_tables(n, 20)
    total, part = score_tables("interaction", n, 0)
    scale = 2.0 ** -lr_bits("interaction", n)
    for table, cost in zip(tables, interaction_costs(tables, 40), strict=True):
        entries = total[table.sum(axis=0)] - part[table[0]] - part[table[1]]
        bound = bound_of(table.astype(float), part, int(entries.sum()), scale)
        half = -cost / 2.0**40
        assert half - 1e-5 <= bound <= 3 * half + 20


def test_tables_of_four_sites_are_counted_from_the_planes():
    data, states, cases = drawn("k2", 5, (70, 61), 0.1)
    sites = np.array(list(itertools.combinations(range(5), 4)))
    want = [oracle.table(states, cases, tuple(row)).reshape(2, 81) for row in sites]
    assert np.array_equal(count_tables(data, sites), want)


def test_degrees_of_freedom_of_quads():
    whole = np.ones((2, 3, 3, 3, 3), int)
    assert degrees_of_freedom(whole) == 16
    whole[:, 2] = 0  # two genotypes of one site
    assert degrees_of_freedom(whole) == 8


def study(seed: int, effect: float):
    """Genotypes, and cases whose odds depend on four sites together and on no three of them."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, 0.4, (1200, 10))
    odd = (genotypes[:, [1, 4, 6, 9]] == 1).sum(axis=1) % 2
    return genotypes, rng.random(1200) < 0.5 + effect * (2 * odd - 1)


def test_a_pure_interaction_of_four_sites_is_found():
    hit = popdesic.scan(*study(1, 0.13), order=4, top=1, device="cpu", threads=1).iloc[0]
    assert [hit[f"site{k}"] for k in range(1, 5)] == [1, 4, 6, 9]
    assert hit.p_interaction < 1e-5 and hit.p_conditional < 1e-5
    assert hit.main1 > -4 and hit.best_pair_score > -10  # of 2 and 8 degrees of freedom
    assert hit.interaction_gain > 20


def test_without_an_interaction_of_four_sites_none_is_found():
    for seed in (2, 3):
        hit = popdesic.scan(*study(seed, 0.0), order=4, top=1, device="cpu", threads=1).iloc[0]
        assert hit.p_interaction > 0.05
