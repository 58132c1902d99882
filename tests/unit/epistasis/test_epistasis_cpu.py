"""Pair and triple scans on the CPU against the brute-force oracle."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles import epistasis as oracle
from scipy.special import gammaln, xlogy

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.extract_cpu import extract_bits, extract_by_loop
from popdesic.epistasis.cells_cpu import WIDE, cost_bound, sum_logs
from popdesic.epistasis.interaction_cpu import interaction_costs
from popdesic.epistasis.scan_data import cell_cost
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import lr_bits, scale_bits, score_tables, table_cost


def scan(backend, order):
    return partial(scan_pairs if order == 2 else scan_triples, backend)


@pytest.mark.parametrize("missing", [0.0, 0.02, 0.4])
@pytest.mark.parametrize("n_samples", [(1, 1), (1, 64), (40, 33), (65, 127), (500, 600)])
@pytest.mark.parametrize(
    ("threads", "score"),
    [(1, "k2"), (2, "mutual_information"), (1, "interaction"), (2, "interaction")],
)
def test_scans_equal_the_oracle(missing, n_samples, threads, score):
    rng = np.random.default_rng([*n_samples, int(100 * missing)])
    tables = score_tables(score, *n_samples)
    n_sites = 9 if sum(n_samples) < 500 else 6
    data, states, cases = oracle.random_scan(
        rng, n_sites, n_samples, missing=missing, tables=tables
    )
    data = replace(data, lr_bits=lr_bits(score, sum(n_samples)))
    for order in (2, 3):
        for first, top in ((range(n_sites), 10), (range(1, 4), 1000)):
            want = oracle.scan(data, states, cases, order, first, top)
            got = scan(CpuBackend(threads), order)(data, first, top)
            assert np.array_equal(got.cost, want.cost)
            assert np.array_equal(got.sites, want.sites)


@pytest.mark.parametrize("missing", [0.0, 0.01])
def test_more_carriers_of_a_genotype_than_sixteen_bits_hold(missing):
    rng = np.random.default_rng(5)
    tables, thirds = score_tables("k2", 230_003, 50_001), (1 / 3, 1 / 3, 1 / 3)
    data, states, cases = oracle.random_scan(
        rng, 3, (230_003, 50_001), missing=missing, frequencies=thirds, tables=tables
    )
    states[2] = states[0]  # nor do pairs of genotypes fit
    data = oracle.make_scan(states, cases, data.rank, *tables)
    for order in (2, 3):
        want = oracle.scan(data, states, cases, order, range(3), 5)
        got = scan(CpuBackend(2), order)(data, range(3), 5)
        assert np.array_equal(got.cost, want.cost) and np.array_equal(got.sites, want.sites)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
def test_sites_with_and_without_missing_beside_each_other(score):
    rng = np.random.default_rng(3)
    tables = score_tables(score, 70, 80)
    data, states, cases = oracle.random_scan(rng, 8, (70, 80), missing=0.2, tables=tables)
    states[::2][states[::2] == 2] = 3
    data = oracle.make_scan(states, cases, data.rank, *tables)
    data = replace(data, lr_bits=lr_bits(score, 150))
    want = oracle.scan(data, states, cases, 3, range(8), 60)
    got = scan_triples(CpuBackend(1), data, range(8), 60)
    assert np.array_equal(got.cost, want.cost) and np.array_equal(got.sites, want.sites)


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("max_r2", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
def test_only_permitted_partners(score, max_r2, missing):
    rng = np.random.default_rng(4)
    tables = score_tables(score, 40, 50)
    data, states, cases = oracle.random_scan(rng, 12, (40, 50), missing=missing, tables=tables)
    same = rng.random((6, 90)) < 0.7
    states[1::2] = np.where(same, states[::2], states[1::2])
    data = replace(oracle.make_scan(states, cases, data.rank, *tables), lr_bits=lr_bits(score, 90))
    for partners in (None, oracle.random_partners(rng, 12, max_r2)):
        data = replace(data, partners=partners)
        for order in (2, 3):
            want = oracle.scan(data, states, cases, order, range(12), 500)
            got = scan(CpuBackend(2), order)(data, range(12), 500)
            assert len(want.cost) > 5
            assert np.array_equal(got.cost, want.cost) and np.array_equal(got.sites, want.sites)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.01])
@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
def test_units_blocks_and_ties(order, missing, score):
    """More sites than a block, copies of sites (exact ties), scans in parts and as a whole."""
    rng = np.random.default_rng(6)
    tables = score_tables(score, 60, 70)
    data, states, cases = oracle.random_scan(rng, 150, (60, 70), missing=missing, tables=tables)
    states[70:] = states[:80]
    data = oracle.make_scan(states, cases, rng.permutation(150).astype(np.int32), *tables)
    data = replace(data, lr_bits=lr_bits(score, 130))
    whole = scan(CpuBackend(2), order)(data, range(150), 40)
    parts = [scan(CpuBackend(1), order)(data, range(a, a + 30), 40) for a in range(0, 150, 30)]
    cost = np.concatenate([p.cost for p in parts])
    sites = np.concatenate([p.sites for p in parts])
    keys = [(c, *sorted(data.rank[s])) for c, s in zip(cost, sites, strict=True)]
    best = sorted(range(len(keys)), key=keys.__getitem__)[:40]
    assert np.array_equal(whole.cost, cost[best]) and np.array_equal(whole.sites, sites[best])
    for value, members in zip(whole.cost, whole.sites, strict=True):
        counts = oracle.table(states, cases, tuple(members))
        if score != "interaction":
            assert value == oracle.cost(counts, *tables)
        else:
            assert value == interaction_costs(counts[None], data.lr_bits)[0]
    cut = scan(CpuBackend(1), order)(data, range(150), 40, cutoff=int(whole.cost[4]))
    n = int((whole.cost <= whole.cost[4]).sum())
    assert np.array_equal(cut.sites[:n], whole.sites[:n])


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information", "gini"])
def test_integer_scores_equal_float64(score):
    rng = np.random.default_rng(7)
    table = rng.integers(0, 400, (2, 27))
    n0, n1 = table.sum(axis=1)
    total, part = score_tables(score, n0, n1)
    n = table.sum(axis=0)
    ways = gammaln(n + 1) - gammaln(table[0] + 1) - gammaln(table[1] + 1)
    if score == "k2":
        want = sum(ways + np.log(n + 1))
        want -= gammaln(n0 + n1 + 2) - gammaln(n0 + 1) - gammaln(n1 + 1)
    elif score == "k2_excess":
        want = sum(ways) - sum(oracle.mean_log_ways(size, n0, n1) for size in n)
    elif score == "gini":
        want = (table[0] * table[1] / n).sum() - n0 * n1 / (n0 + n1)
    else:
        want = (xlogy(n, n) - xlogy(table, table).sum(axis=0)).sum()
        want -= xlogy(n0 + n1, n0 + n1) - xlogy(n0, n0) - xlogy(n1, n1)
    found = int(table_cost(table, total, part)) / 2 ** scale_bits(int(table.sum()))
    # entries of K2 excess are rounded to 2**-20 nats
    assert found == pytest.approx(want, rel=1e-9, abs=28 * 2.0**-21 * (score == "k2_excess"))


def test_scale_leaves_room_for_the_largest_studies():
    assert scale_bits(500_000) == 40
    total, part = score_tables("k2", 1_500_000, 500_000)
    assert total.max() > 0 and part.min() >= 0


def test_portable_bit_extraction():
    rng = np.random.default_rng(8)
    for word, mask in rng.integers(0, 2**64, (50, 2), dtype=np.uint64):
        bits = [(int(word) >> k) & 1 for k in range(64) if int(mask) >> k & 1]
        want = sum(bit << k for k, bit in enumerate(bits))
        assert extract_by_loop(word, mask) == extract_bits(word, mask) == want


def bounds_of(tables: np.ndarray, total, part):
    """Bound and exact cost of tables int32 (2, n_cells, k), both in the bound's unit."""
    n_cells, k = tables.shape[1:]
    bound = cost_bound(total, part, n_cells)
    cells = np.zeros((2, n_cells, -(-k // WIDE) * WIDE), np.int32)
    cells[:, :, :k] = tables
    sums = np.zeros((2, cells.shape[2]), np.int32)
    found = np.zeros(cells.shape[2], np.float32)
    betas = np.float32(bound.beta_total), np.float32(bound.beta_part)
    sum_logs(cells, n_cells, *betas, sums, found, cells.shape[2])
    assert np.array_equal(sums[:, :k], tables.sum(axis=1))
    exact = cell_cost(*tables, total, part).sum(axis=0)
    return found[:k].astype(float) - bound.slack, exact * bound.scale


def draw_tables(rng, n_samples: int, n_cells: int, k: int = 300) -> np.ndarray:
    """Tables of at most `n_samples`, from evenly spread to concentrated in few cells."""
    tables = np.empty((k, 2 * n_cells), np.int32)
    for row in tables:
        p = rng.dirichlet(np.full(2 * n_cells, 10.0 ** rng.uniform(-3, 2)))
        n = n_samples if rng.random() < 0.8 else rng.integers(n_samples + 1)
        row[:] = rng.multinomial(n, p)
    return np.moveaxis(tables.reshape(k, 2, n_cells), 0, 2)


@pytest.mark.parametrize("n_samples", [1, 2, 17, 130, 4096, 200_000])
@pytest.mark.parametrize("n_cells", [9, 27])
@pytest.mark.parametrize(
    ("score", "share"),
    [
        ("k2", 0.5),
        ("k2_excess", 0.5),
        ("k2_excess", 0.02),
        ("mutual_information", 0.5),
        ("gini", 0.3),
    ],
)
def test_bound_is_never_above_the_cost(score, share, n_cells, n_samples):
    rng = np.random.default_rng([n_samples, n_cells])
    tables = draw_tables(rng, n_samples, n_cells)
    n_cases = int(n_samples * share)
    bound, exact = bounds_of(tables, *score_tables(score, n_samples - n_cases, n_cases))
    assert (bound <= exact).all()
    if n_samples == 4096:
        # Tight enough to be useful, in bits; K2 gives a constant to all but empty cells.
        assert (exact - bound).max() < (n_cells if "k2" in score else 3)


@pytest.mark.parametrize("seed", range(8))
def test_bound_holds_for_any_tables(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    total, part = (rng.integers(0, 1 << int(rng.integers(3, 45)), n + 1) for _ in range(2))
    if seed % 2:
        part = score_tables("k2", n // 2, n - n // 2)[1]
    bound, exact = bounds_of(draw_tables(rng, n, 27), total, part)
    assert (bound <= exact).all()


def test_scan_with_tables_that_the_bound_does_not_know():
    rng = np.random.default_rng(11)
    tables = tuple(rng.integers(0, 1 << 40, 121) for _ in range(2))
    data, states, cases = oracle.random_scan(rng, 8, (50, 70), missing=0.05, tables=tables)
    for order in (2, 3):
        want = oracle.scan(data, states, cases, order, range(8), 5)
        got = scan(CpuBackend(1), order)(data, range(8), 5)
        assert np.array_equal(got.cost, want.cost) and np.array_equal(got.sites, want.sites)


@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_an_interaction_is_found_beside_a_strong_main_effect(missing):
    """K2 fills its list with pairs of the strong site; the interaction leads its own list."""
    rng = np.random.default_rng(12)
    genotypes = rng.binomial(2, 0.4, (90, 1200))
    xor = (genotypes[20] > 0) ^ (genotypes[60] > 0)
    risk = 1 / (1 + np.exp(2.5 - 2.5 * genotypes[5] - 0.9 * xor))
    cases = rng.random(1200) < risk
    order = np.argsort(cases, kind="stable")
    states = np.where(genotypes[:, order] == 2, 3, genotypes[:, order]).astype(np.int8)
    states[rng.random(states.shape) < missing] = 2
    rank, leading = np.arange(90, dtype=np.int32), {}
    classes = int((~cases).sum()), int(cases.sum())
    for score in ("k2", "interaction"):
        data = oracle.make_scan(states, cases[order], rank, *score_tables(score, *classes))
        data = replace(data, lr_bits=lr_bits(score, 1200))
        leading[score] = scan_pairs(CpuBackend(1), data, range(90), 50).sites
    assert leading["interaction"][0].tolist() == [20, 60]
    assert (leading["k2"] == 5).any(axis=1).all()


def test_costs_of_interactions_leave_room_for_the_largest_studies():
    table = np.random.default_rng(1).integers(1_000_000, 20_000_000, (2, 3, 3))
    bits = lr_bits("interaction", int(table.sum()))
    cost = int(table_cost(table.reshape(2, 9), *score_tables("k2", 4, 5), bits))
    assert -cost / 2**bits == pytest.approx(oracle.interaction(table), rel=1e-11)
