"""The path of each rare site: tables that equal the terms, and costs that decide."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.awkward_terms import TERMS

from popdesic.engine import bitgemm_plan, layout, rare_sites_plan
from popdesic.engine.rare_sites_plan import (
    DENSE,
    HALF,
    PAIRS,
    CostModel,
    SideCounts,
    SiteCosts,
    SiteTable,
)
from popdesic.engine.terms import PRODUCT, SQUARED
from popdesic.engine.variants import ShapeClass

COSTS = SiteCosts(dense=1e-4, pair=1e-3, row=1e-2, rows=1e-6, move=1e-9)


@pytest.mark.parametrize("complete", (True, False))
@pytest.mark.parametrize("name", [*TERMS, "product"])
def test_tables_equal_the_terms(name, complete):
    """Carriers, margins and the half form give every output for every pair of genotypes."""
    terms = PRODUCT if name == "product" else TERMS[name]
    for plan in (
        bitgemm_plan.plan_products(terms, complete),
        bitgemm_plan.plan_xor(terms, complete),
    ):
        if plan is None:
            continue
        table = SiteTable.of(plan)
        for x, y in plan.genotype_pairs():
            found = table.constant.copy()
            found += table.rows[:, x - 1] if x else 0
            found += table.columns[:, y - 1] if y else 0
            found += table.pairs[:, x - 1, y - 1] if x and y else 0
            assert found.tolist() == plan.slot_values(x, y)
            if table.half:
                one, carried = table.half
                product = one * (x == 1) * (y == 1)
                product += carried * ((x == 2) * (y >= 1) + (x >= 1) * (y == 2))
                assert [product] == plan.slot_values(x, y)
    assert SiteTable.of(bitgemm_plan.plan_products(SQUARED, True)).half == (-1, -2)


@pytest.fixture
def side() -> SideCounts:
    rng = np.random.default_rng(5)
    carriers = rng.integers(0, 400, 200).astype(np.float32)
    return SideCounts(carriers, (carriers // 8).astype(np.float32), 16, 512)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("half", [True, False])
def test_each_site_takes_the_cheapest_path(side, half, symmetric):
    model = CostModel(COSTS, half, 3, symmetric)
    seconds = model.weigh(side, side)
    way = model.ways(seconds, 0.0, forced=True)
    assert (np.choose(way, seconds) == np.min(seconds, axis=0)).all()
    assert (HALF in way) == half
    assert {PAIRS, DENSE} <= set(way.tolist()) or half
    # computed by hand for the site with the fewest carriers
    at = int(side.carriers.argmin())
    n, triangle = float(side.carriers[at]), 0.5 if symmetric else 1
    assert seconds[0][at] == pytest.approx(COSTS.pair * (n * n * triangle + 2 * n))
    assert seconds[2][at] == pytest.approx(COSTS.dense * 512**2 * triangle)


def test_the_half_path_is_used_only_where_it_saves_more_than_it_costs(side):
    model = CostModel(COSTS, True, 3, True)
    seconds = model.weigh(side, side)
    cheapest = model.ways(seconds, 0.0, forced=True)
    saved = float((np.minimum(seconds[0], seconds[2]) - seconds[1])[cheapest == HALF].sum())
    assert saved > 0
    assert (model.ways(seconds, 0.99 * saved, forced=False) == cheapest).all()
    assert HALF not in model.ways(seconds, 1.01 * saved, forced=False)
    assert HALF in model.ways(seconds, 1.01 * saved, forced=True)


def test_sorting_pays_where_most_sites_are_rare(side):
    common = SideCounts(np.full(200, 5e4, np.float32), np.full(200, 1e4, np.float32), 16, 512)
    model = CostModel(COSTS, True, 3, True)
    for counts, gain in ((side, True), (common, False)):
        seconds = model.weigh(counts, counts)
        assert model.gains(seconds, model.bringing(512, 512), 0.01, 100) is gain
    assert not model.gains(model.weigh(side, side), 0.0, 0.01, 10**15)  # transposing costs too much


def test_small_problems_are_not_sorted():
    assert rare_sites_plan.pays(ShapeClass.of(4096, 4096, 1 << 20, True, True))
    assert not rare_sites_plan.pays(ShapeClass.of(1000, 1000, 1 << 20, True, True))
    assert not rare_sites_plan.pays(ShapeClass.of(4096, 4096, 1 << 12, True, True))


@pytest.mark.parametrize("name", TERMS)
def test_sums_fit_the_accumulators_on_every_path(name):
    plan = bitgemm_plan.plan_products(TERMS[name], True)
    limit = rare_sites_plan.site_limit(plan, SiteTable.of(plan))
    assert 0 < limit <= plan.site_limit
    assert limit * np.abs(SiteTable.of(plan).pairs).max(initial=0) <= layout.INT32_MAX


def test_the_half_path_needs_one_product():
    plan = bitgemm_plan.plan_products(SQUARED, True)
    weight = SiteTable.of(plan).half[0]
    half = rare_sites_plan.half_plan(plan, weight)
    for x in range(3):
        for y in range(3):
            assert half.slot_values(x, y) == [weight * (x == 1) * (y == 1)]
