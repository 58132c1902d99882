"""Sites added by pairs of carriers on the CPU: the same integers, where the model says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.reference import draw_genotypes, evaluate_terms
from scenes import awkward_terms
from support.operands import planes_of

from popdesic.engine import backend_cpu, carrier_sums_cpu, carrier_sums_plan
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.carrier_sums_plan import COMMON, FIELD_BITS, FIELDS, CarrierCosts, dense_ns
from popdesic.engine.terms import KINSHIP, PRODUCT, SQUARED, SQUARED_SUMS, Planes, Terms

TERMS = awkward_terms.TERMS | {"kinship": KINSHIP, "product": PRODUCT, "sums": SQUARED_SUMS}
#: Sizes around a word, a vector and a byte.
SITES = (1, 15, 16, 17, 33, 63, 64, 65, 511, 513)


def draw_rare(rng, n: int, n_sites: int, missing: float) -> np.ndarray:
    """Genotypes of common sites, and of sites with no, one or few carriers of either allele."""
    genotypes = draw_genotypes(rng, n, n_sites, 0)
    rare = np.flatnonzero(rng.random(n_sites) < 0.8)
    genotypes[:, rare] = rng.choice([0, 2], len(rare))
    for _ in range(2):
        who = rng.integers(0, n, len(rare))
        genotypes[who, rare] = rng.integers(0, 3, len(rare))
    genotypes[rng.random(genotypes.shape) < missing * rng.choice([0, 1, 3], n_sites)] = -1
    return genotypes


@pytest.fixture(params=["by cost", "all"])
def way(request, monkeypatch) -> str:
    """Any size is looked at; sites go their way by costs, or all are added by carriers.

    The costs of dense products are those of 512-bit vectors, whatever CPU this is.
    """
    monkeypatch.setattr(
        backend_cpu, "dense_ns", lambda forms, lanes, popcount: dense_ns(forms, 8, True)
    )
    monkeypatch.setattr(carrier_sums_plan, "LEAST_NS", 0)
    monkeypatch.setattr(carrier_sums_plan, "LEAST_GAIN", -np.inf)
    if request.param == "all":
        monkeypatch.setattr(carrier_sums_plan, "PAIR_NS", 0)
        monkeypatch.setattr(carrier_sums_plan, "CARRIER_NS", 0)
    else:  # so that some sites of some dozen samples are rare
        monkeypatch.setattr(carrier_sums_plan, "PAIR_NS", 0.05)
        monkeypatch.setattr(carrier_sums_plan, "CARRIER_NS", 0)
    return request.param


@pytest.fixture
def listed(monkeypatch) -> list[int]:
    """Numbers of sites that were added by carriers, of each range."""
    numbers: list[int] = []
    found = carrier_sums_cpu.SplitSites.of

    def of(way, n_words):
        sites = found(way, n_words)
        numbers.append(len(sites.listed))
        return sites

    monkeypatch.setattr(carrier_sums_cpu.SplitSites, "of", of)
    return numbers


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("terms", TERMS)
def test_every_number_of_sites(way, listed, terms, missing):
    for n_sites in SITES:
        rng = np.random.default_rng(n_sites)
        a, b = (draw_rare(rng, n, n_sites, missing) for n in (5, 9))
        planes = [
            planes_of(g, fill=rng.integers(0, 3, g.shape), masked=missing > 0) for g in (a, b)
        ]
        found = CpuBackend(1).bitgemm(*planes, TERMS[terms])
        np.testing.assert_array_equal(found, evaluate_terms(a, b, TERMS[terms]))
    assert sum(listed) == sum(SITES) if way == "all" else 0 < sum(listed) < sum(SITES)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("terms", TERMS)
def test_block_against_itself(way, listed, terms, missing):
    """Also below the diagonal, where rows and columns of one-sided terms change places."""
    for n_samples in (1, 2, 7, 8, 9, 33):
        rng = np.random.default_rng(n_samples)
        genotypes = draw_rare(rng, n_samples, 133, missing)
        planes = planes_of(genotypes, masked=missing > 0)
        found = CpuBackend(2).bitgemm(planes, None, TERMS[terms])
        np.testing.assert_array_equal(found, evaluate_terms(genotypes, genotypes, TERMS[terms]))
    assert sum(listed) > 0


@pytest.mark.parametrize("terms", ["squared_ibs0", "ld"])
def test_complete_against_masked_all_missing_and_monomorphic(way, terms):
    rng = np.random.default_rng(3)
    a, b = draw_rare(rng, 9, 333, 0), draw_rare(rng, 6, 333, 0.3)
    b[0], b[1], b[2], a[0], a[1] = -1, 0, 2, 2, 0
    b[:, 5], b[:, 6], a[:, 6] = -1, 2, 2
    for x, y in ((a, b), (b, a)):
        found = CpuBackend(1).bitgemm(planes_of(x), planes_of(y), TERMS[terms])
        np.testing.assert_array_equal(found, evaluate_terms(x, y, TERMS[terms]))


def test_ranges_threads_layouts_and_full_accumulators(way, listed, monkeypatch):
    """Several ranges of words, views of any stride, rows with more carriers than a field holds."""
    rng = np.random.default_rng(4)
    genotypes = draw_rare(rng, 17, 64 * 130 + 3, 0.05)
    planes = planes_of(genotypes)
    words = np.asfortranarray(planes.words)
    words.flags.writeable = False
    expected = evaluate_terms(genotypes, genotypes, KINSHIP)
    monkeypatch.setattr(carrier_sums_plan, "RANGE_BYTES", 1)
    tables = carrier_sums_plan.carrier_tables
    monkeypatch.setattr(
        "popdesic.engine.backend_cpu.carrier_tables",
        lambda *given: replace(tables(*given), limit=5),
    )
    for threads in (1, 3):
        found = CpuBackend(threads).bitgemm(Planes(words, planes.n_sites), None, KINSHIP)
        np.testing.assert_array_equal(found, expected)
    assert len(listed) == 6


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("terms", TERMS)
def test_tables_equal_the_terms(terms, same, complete):
    """Constant, margins and pairs give every output at every pair of genotypes."""
    tables = carrier_sums_plan.carrier_tables(TERMS[terms], same, complete)
    half = 2 ** (FIELD_BITS - 1)
    shifts = FIELD_BITS * np.arange(FIELDS)
    biased = tables.packed[..., None] + (half << shifts).sum()
    fields = ((biased >> shifts) & (2 * half - 1)) - half  # (n_accumulators, 8, 4, FIELDS)
    fields = np.moveaxis(fields, 3, 1).reshape(-1, 2, 4, 4)
    fields = np.concatenate([fields, np.zeros((1, 2, 4, 4), np.int64)])  # number -1
    genotypes = range(3 if complete else 4)
    for k, x, y in ((k, x, y) for k in range(2) for x in genotypes for y in genotypes):
        margins = tables.constant[:, k] + tables.rows[:, 4 * k + x]
        found = margins + tables.columns[:, 4 * k + y] + fields[tables.upper, k, x, y]
        assert found.tolist() == [
            TERMS[terms].value(o, x, y) for o in range(len(TERMS[terms].outputs))
        ]
        if same:
            turned = fields[tables.lower, k, x, y]
            np.testing.assert_array_equal(turned, fields[tables.upper, k, y, x])
        if COMMON[k] in (x, y):
            assert not fields[:, k, x, y].any()


@pytest.mark.parametrize(
    ("terms", "complete", "n"), [(SQUARED, True, 1), (SQUARED, False, 1), (KINSHIP, False, 2)]
)
def test_few_accumulators(terms: Terms, complete, n):
    assert len(carrier_sums_plan.carrier_tables(terms, True, complete).packed) == n


def test_model_takes_rare_sites_alone():
    """1 % of 2 000 carry a site: by carriers; 20 %: dense. Nearly all: against ALT."""
    costs = CarrierCosts(2000, 2000, True, 4e-3, (2, 2), 1, 2)
    others = np.array([[20, 400, 1990, 2000, 0], [2000, 1900, 10, 0, 2000]])
    way, saved = costs.choose(others, others)
    assert way.tolist() == [1, 0, 2, 2, 1]
    assert saved == pytest.approx(4 * 4e-3 * 2e6 - 1.4 * (200 + 50) - 25 * (20 + 10), rel=1e-6)
    for n_sites, long in ((1000, False), (100_000, True)):
        assert carrier_sums_plan.long_enough(2000, 2000, True, 4e-3, n_sites) == long
    whole = costs.dense * costs.pairs * 1e6
    assert costs.gains(whole / 2, 1_000_000) and not costs.gains(whole / 20, 1_000_000)


@pytest.mark.parametrize("rare", [True, False])
def test_sites_are_sorted_where_that_pays(rare, listed, monkeypatch):
    """With the costs as they are: a block of rare sites is, one of common sites is not."""
    monkeypatch.setattr(carrier_sums_plan, "LEAST_NS", 1e6)
    rng = np.random.default_rng(5)
    genotypes = (rng.random((700, 64 * 80)) < (0.004 if rare else 0.3)).astype(np.int8)
    found = CpuBackend(1).bitgemm(planes_of(genotypes), None, SQUARED)
    numbers = genotypes.astype(np.int64)
    squares = (numbers**2).sum(axis=1)
    np.testing.assert_array_equal(found[0], squares[:, None] + squares - 2 * numbers @ numbers.T)
    assert (sum(listed) > 5000) == rare
