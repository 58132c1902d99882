"""The statistic of the interaction, its bounds and its limits, against slow iterative fitting."""

from __future__ import annotations

import itertools
from functools import partial

import numba
import numpy as np
import pytest
from oracles import epistasis as oracle
from oracles.epistasis import class_information
from scenes.interactions.scenes import draw_structure

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.interaction import (
    degrees_of_freedom,
    interaction_statistics,
    interaction_test,
)
from popdesic.epistasis.interaction_cpu import UNIT, _start, interaction_costs, likelihood
from popdesic.epistasis.products_cpu import RELATIVE_ERROR, product_sums
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_interaction_cpu import MANY, product_excess
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import make_scan_data, score_tables
from popdesic.epistasis.site_tables_cpu import count_tables

BITS = 40


def draw(rng, order: int, n: int, strength: float) -> np.ndarray:
    """A table of n people: Hardy-Weinberg genotypes, log-odds of each combination at random."""
    share = np.ones(1)
    for q in rng.uniform(0.01, 0.5, order):
        share = np.multiply.outer(share, [(1 - q) ** 2, 2 * q * (1 - q), q * q]).ravel()
    risk = 1 / (1 + np.exp(-rng.normal(0, strength, 3**order)))
    cells = np.concatenate([share * (1 - risk), share * risk])
    return rng.multinomial(n, cells / cells.sum()).reshape(2, *(3,) * order)


def tables_of(order: int, n: int, count: int) -> np.ndarray:
    """Without effects, with weak and strong ones, with few combinations, with empty genotypes."""
    rng = np.random.default_rng([order, n])
    found = [draw(rng, order, n, strength) for strength in (0, 0.3, 1, 5) for _ in range(count)]
    for _ in range(count):
        cells = rng.dirichlet(np.full(2 * 3**order, 10 ** rng.uniform(-2, 0)))
        found.append(rng.multinomial(n, cells).reshape(found[0].shape))
    for table in found[::7]:
        table[:, rng.integers(3)] = 0
    return np.array(found)


def half(tables: np.ndarray) -> np.ndarray:
    return -interaction_costs(tables, BITS) / 2**BITS


@pytest.mark.parametrize("n", [20, 100, 1000, 5000, 500_000])
@pytest.mark.parametrize("order", [2, 3])
def test_the_statistic_is_that_of_iterative_fitting(order, n):
    """Never above it, and equal where that converges quickly (the maximum is at finite odds)."""
    tables = tables_of(order, n, 12)
    found = half(tables)
    short, long = (
        np.array([oracle.interaction(table, sweeps) for table in tables]) for sweeps in (150, 300)
    )
    assert (found <= long + 0.51 * UNIT + n * 2.0**-46).all()
    quick = short - long < 1e-9
    assert quick.sum() > len(tables) / 3
    np.testing.assert_allclose(found[quick], long[quick], rtol=0, atol=0.51 * UNIT + 1e-7)


def test_a_maximum_at_infinite_odds_is_reached():
    """Only one table has these margins (Haberman 1974): it is its own fit, LR = 0."""
    table = np.zeros((1, 2, 3, 3), np.int64)
    table[0, 0, :2, :2] = [[0, 40], [70, 30]]
    table[0, 1, :2, :2] = [[60, 25], [35, 0]]
    assert oracle.interaction(table[0], 300) > 0.01, "where iterative fitting is still on its way"
    assert half(table)[0] <= UNIT


@pytest.mark.parametrize("n", [20, 300, 5000, 500_000])
@pytest.mark.parametrize("order", [2, 3])
def test_bounds_are_never_below_the_statistic(order, n):
    tables = tables_of(order, n, 100)
    found = half(tables)
    slack = 0.51 * UNIT + n * 2.0**-46
    assert (independence_bounds(tables) >= found - slack).all()
    assert (kirkwood_bounds(tables) >= found - slack).all()
    assert (product_bounds(tables) >= found - slack).all()


def lower_order_information(tables: np.ndarray) -> np.ndarray:
    """I(S; class) of the best margin S of one site fewer, in nats: float64 (n,)."""
    sites = range(2, tables.ndim)
    return np.max([class_information(tables.sum(axis=site)) for site in sites], axis=0)


def independence_bounds(tables: np.ndarray) -> np.ndarray:
    """Bound 1 of LR / 2 in nats, float64 (n,): conditional independence given the best margin."""
    return class_information(tables) - lower_order_information(tables)


def kirkwood_bounds(tables: np.ndarray) -> np.ndarray:
    """Bound 2 of LR / 2 in nats, float64 (n,): where fits start."""
    order, out = tables.ndim - 2, np.zeros(len(tables))
    for t, table in enumerate(tables.reshape(len(tables), 2, -1).astype(float)):
        if table.sum(axis=1).all():
            out[t] = start_of(table, order)
    return out


@numba.njit
def start_of(counts, order):
    eta, residual, weight = np.empty((3, counts.shape[1]))
    saturated = _start(counts, order, eta)
    return saturated - likelihood(counts, counts.shape[1], eta, residual, weight)


def product_bounds(tables: np.ndarray) -> np.ndarray:
    """BOOST's bound in nats: the alternating sum of information, and the normaliser."""
    order, sites = tables.ndim - 2, range(2, tables.ndim)
    found = class_information(tables) - sum(class_information(tables.sum(axis=a)) for a in sites)
    if order == 3:
        pairs = itertools.combinations(sites, 2)
        found += sum(class_information(tables.sum(axis=pair)) for pair in pairs)
    for k, table in enumerate(tables.reshape(len(tables), 2, -1).astype(float)):
        if table.sum(axis=1).all():
            found[k] += product_excess(table, order)
    return found


@numba.njit
def sums_of(cells, order, sizes, out):
    product_sums(cells, order, sizes[0], sizes[1], out, cells.shape[2])


@pytest.mark.parametrize("n", [20, 300, 5000, 500_000])
@pytest.mark.parametrize("order", [2, 3])
def test_vectors_of_products_are_those_of_float64(order, n):
    """sum q - n in float32 is never below n ln(sum q / n), and sum q is right to its error."""
    tables = tables_of(order, n, 100).reshape(-1, 2, 3**order)
    tables = tables[tables.sum(axis=2).all(axis=1)]
    found = np.zeros(64, np.float32)
    for table in tables:
        lanes = np.zeros((2, 27, 64), np.int32)  # all lanes have this table, but for the last
        lanes[:, : 3**order, :63] = table[:, :, None]
        sums_of(lanes, order, table.sum(axis=1), found)
        people = table.sum()
        want = people * np.exp(product_excess(table.astype(float), order) / people)
        np.testing.assert_allclose(found[:63], want, rtol=RELATIVE_ERROR)
        assert found[63] == 0


@pytest.mark.parametrize("order", [2, 3])
def test_scans_of_structured_populations_list_what_all_tables_say(order):
    """There whole blocks pass the filter by information, and are bounded by the products."""
    n_sites, top = {2: 150, 3: 45}[order], 60
    genotypes, case, _ = draw_structure(np.random.default_rng(order), 700, n_sites)
    states = genotypes.T[:, np.argsort(case, kind="stable")]
    ordered = np.sort(case)
    sizes = int((~case).sum()), int(case.sum())
    words, sites, _ = reorder_sites(lambda part: states[part], np.arange(n_sites), sizes[0])
    data = make_scan_data(words, sites, *sizes, "interaction", None)
    backend = CpuBackend(1)
    scan = partial(scan_pairs if order == 2 else scan_triples, backend)
    hits = scan(data, range(data.n_sites), top)
    members = np.array(list(itertools.combinations(range(data.n_sites), order)))
    of_site = states[sites["rank"].to_numpy()]
    weights = 3 ** np.arange(order)[::-1]
    tables = np.stack(
        [
            np.bincount(weights @ of_site[row] + 3**order * ordered, minlength=2 * 3**order)
            for row in members
        ]
    ).reshape(-1, 2, 3**order)
    cost = interaction_costs(tables, data.lr_bits)
    np.testing.assert_array_equal(hits.cost, np.sort(cost)[:top])
    passing = independence_bounds(tables.reshape(-1, 2, *(3,) * order)) * 2.0**data.lr_bits
    assert (passing >= -hits.cost[-1]).mean() > {2: 0.01, 3: MANY / 64}[order]


@pytest.mark.parametrize("order", [2, 3])
def test_one_normaliser_for_each_combination_is_no_worse(order):
    """Up to the shrinkage of one person, which matters in none of these tables."""
    rng = np.random.default_rng(order)
    tables = rng.integers(200, 2000, (200, 2, *(3,) * order))
    assert (kirkwood_bounds(tables) <= product_bounds(tables) + 0.01).all()


@pytest.mark.parametrize(("order", "first", "second"), [(2, 0.8, 0.2), (3, 4.5, 0.6)])
def test_bounds_are_tight_where_nothing_interacts(order, first, second):
    """Mean excess in nats for common variants: most tables are ruled out without a fit."""
    rng = np.random.default_rng(order)
    tables = []
    for _ in range(400):
        genotypes = rng.binomial(2, rng.uniform(0.2, 0.5, (order, 1)), (order, 3000))
        risk = 1 / (1 + np.exp(-(genotypes * rng.normal(0, 0.3, (order, 1))).sum(axis=0)))
        index = [(rng.random(3000) < risk).astype(int), *genotypes]
        tables.append(
            np.bincount(
                np.ravel_multi_index(index, (2, *(3,) * order)), minlength=2 * 3**order
            ).reshape(2, *(3,) * order)
        )
    tables = np.array(tables)
    found = half(tables)
    assert (kirkwood_bounds(tables) - found).mean() < second
    assert (product_bounds(tables) - found).mean() < second
    excess = (independence_bounds(tables) - found).mean()
    assert first / 4 < excess < 20 * first, excess


def test_a_cutoff_only_leaves_out_what_costs_more():
    tables = tables_of(3, 1000, 30)
    whole = interaction_costs(tables, BITS)
    for cutoff in np.quantile(whole, [0.05, 0.2, 0.4]).astype(np.int64):
        some = interaction_costs(tables, BITS, int(cutoff), threads=2)
        left = some != np.iinfo(np.int64).max
        assert (some[left] == whole[left]).all() and left[whole <= cutoff].all()
        assert not left.all()


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("order", [2, 3])
def test_tables_are_counted_from_the_planes(order, missing):
    rng = np.random.default_rng(order)
    tables = score_tables("interaction", 127, 203)
    data, states, cases = oracle.random_scan(rng, 7, (127, 203), missing=missing, tables=tables)
    sites = np.array(list(itertools.combinations(range(7), order)))
    want = [oracle.table(states, cases, tuple(row)).reshape(2, -1) for row in sites]
    assert np.array_equal(count_tables(data, sites, threads=2), want)


def test_degrees_of_freedom():
    rng = np.random.default_rng(1)
    full = rng.integers(1, 9, (2, 3, 3))
    assert degrees_of_freedom(full) == 4
    assert degrees_of_freedom(rng.integers(1, 9, (2, 3, 3, 3))) == 8
    no_genotype, empty_cell, pure = full.copy(), full.copy(), full.copy()
    no_genotype[:, 2] = 0
    assert degrees_of_freedom(no_genotype) == 2, "(rows - 1)(columns - 1) of those that occur"
    empty_cell[:, 2, 2] = 0
    assert degrees_of_freedom(empty_cell) == 3
    pure[0, 1] = 0
    assert degrees_of_freedom(pure) == 4, "people of one class count as others do"
    diagonal = full * np.eye(3, dtype=int)
    assert interaction_test(diagonal) == (0.0, 0, 1.0), "no combination is left to differ"
    assert degrees_of_freedom(0 * full) == 0
    whole = np.zeros((2, 3, 3, 3), np.int64)
    whole[:, :2, :2, :2] = 5
    assert degrees_of_freedom(whole) == 1


def test_null_statistics_follow_chi_square():
    """Two additive effects and no interaction: the mean of LR is its degrees of freedom."""
    rng = np.random.default_rng(2)
    for order in (2, 3):
        tables = []
        for _ in range(300):
            genotypes = rng.binomial(2, 0.45, (order, 4000))
            risk = 1 / (1 + np.exp(1 - 0.5 * genotypes[0] - 0.4 * genotypes[1]))
            index = [(rng.random(4000) < risk).astype(int), *genotypes]
            cell = np.ravel_multi_index(index, (2, *(3,) * order))
            tables.append(np.bincount(cell, minlength=2 * 3**order).reshape(2, *(3,) * order))
        freedom = 2**order
        mean = interaction_statistics(np.array(tables)).mean()
        assert abs(mean - freedom) < 4 * np.sqrt(2 * freedom / 300)
