"""p of a table's interaction, against enumeration of all tables and against plain draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from popdesic.epistasis.grouped_tables_cpu import (
    association_terms,
    half_statistics,
    indicators,
    interaction_terms,
)
from popdesic.epistasis.importance_sampling import DRAWS, chi_square_p, fit_table_null, tail_p
from popdesic.epistasis.interaction import degrees_of_freedom
from popdesic.epistasis.interaction_cpu import UNIT, interaction_costs

BITS = 40


def drawn_table(rng, order: int, maf, n: int = 1000, offsets=(0.0,)) -> np.ndarray:
    """Table of n people whose log-odds are the first site's effect and an offset: (2, cells, B)."""
    genotypes = rng.binomial(2, np.reshape(maf, (-1, 1)), (order, n))
    which = rng.integers(0, len(offsets), n)
    odds = 0.4 * genotypes[0] - 0.3 + np.array(offsets)[which]
    case = (rng.random(n) < expit(odds)).astype(int)
    cell = np.ravel_multi_index(tuple(genotypes), (3,) * order)
    shape = (2, 3**order, len(offsets))
    return np.bincount(
        np.ravel_multi_index((case, cell, which), shape), minlength=np.prod(shape)
    ).reshape(shape)


def plain_share(null, least: float, draws: int) -> float:
    """Share of plain draws from the null model that reach LR / 2 = least."""
    rng, people = np.random.default_rng(99), null.people.ravel()
    risk, found = expit(null.log_odds.ravel()), 0
    for _ in range(draws // 10_000):
        cases = rng.binomial(people, risk, (10_000, len(people)))
        tables = np.stack([people - cases, cases], axis=1)
        start = null.log_odds.ravel()
        half = half_statistics(tables, null.offsets, start, null.terms, least=least - 1e-6)
        found += int((half >= least - 1e-6).sum())
    return found / draws


@pytest.mark.parametrize("order", [2, 3])
def test_without_offsets_the_statistic_is_that_of_the_scan(order):
    rng = np.random.default_rng(order)
    for maf in (0.05, 0.2, 0.45):
        table = drawn_table(rng, order, [maf] * order)
        want = -interaction_costs(table.reshape(1, 2, -1), BITS)[0] / 2**BITS
        assert fit_table_null(table).half == pytest.approx(want, abs=UNIT)


@pytest.mark.parametrize("order", [2, 3])
def test_with_offsets_the_statistic_is_that_of_logistic_regression(order):
    """Of statsmodels, with the same offsets, on a table whose fits are finite."""
    rng, offsets = np.random.default_rng(order), np.array([-0.8, 0.1, 1.1])
    table = drawn_table(rng, order, [0.4] * order, 20_000, offsets)
    n_cells = 3**order
    counts = table.reshape(2, -1)[::-1].T
    offset = np.tile(offsets, n_cells)
    for terms in (interaction_terms(n_cells), association_terms(n_cells)):
        deviances = []
        for design in (indicators(terms), np.eye(n_cells)):
            columns = np.repeat(design, len(offsets), axis=0)
            fitted = GLM(counts, columns, family=Binomial(), offset=offset).fit(tol=1e-12)
            deviances.append(fitted.deviance)
        found = fit_table_null(table, offsets, terms).half
        assert 2 * found == pytest.approx(deviances[0] - deviances[1], abs=1e-6)


@pytest.mark.parametrize("people", [[14, 9, 11, 12], [30, 5, 6, 8], [12, 2, 10, 3, 8, 2]])
def test_p_is_that_of_all_tables(people):
    """Two genotypes of one site and two or three of the other: every table is enumerated."""
    cells = [3 * a + b for a in range(2) for b in range(len(people) // 2)]
    cases = np.array(list(itertools.product(*(range(n + 1) for n in people))))
    whole = np.zeros(9, np.int64)
    whole[cells] = people
    tables = np.zeros((len(cases), 2, 9), np.int64)
    tables[:, 1, cells] = cases
    tables[:, 0] = whole - tables[:, 1]
    half = half_statistics(tables, np.zeros(1), np.zeros(9), interaction_terms(9))
    rng, rare = np.random.default_rng(4), 0
    for strength in (5.0, 8.0, 11.0, 14.0):
        for seen in rng.permutation(np.flatnonzero(np.abs(half - strength) < 0.4))[:3]:
            null = fit_table_null(tables[seen])
            risk = expit(null.log_odds.ravel())[cells]
            chance = stats.binom.pmf(cases, people, risk).prod(axis=1)
            exact = chance[half >= half[seen] - 1e-6].sum()
            assert tail_p(null, null.half, DRAWS) == pytest.approx(exact, rel=0.35)
            rough = chi_square_p(tables[seen][..., None], np.zeros(1), null.terms)
            assert exact > rough / 600, "what is not worth drawing by chi-square is not"
            rare += exact < 1e-5
    assert rare >= 3


@pytest.mark.parametrize(
    ("order", "maf", "offsets", "least"),
    [
        (2, [0.3, 0.3], (0.0,), 8.0),
        (2, [0.05, 0.2], (0.0,), 7.0),
        (2, [0.3, 0.1], (-1.0, 1.0), 7.5),
        (3, [0.3, 0.3, 0.3], (0.0,), 11.0),
        (3, [0.05, 0.2, 0.4], (0.0,), 7.0),
        (3, [0.2, 0.3, 0.4], (-1.0, 1.0), 11.0),
    ],
)
def test_p_is_the_share_of_plain_draws(order, maf, offsets, least):
    """Within 4 standard errors of the plain draws and 8 % for the tilted ones."""
    table = drawn_table(np.random.default_rng(5), order, maf, 1000, offsets)
    null = fit_table_null(table, np.array(offsets))
    share = plain_share(null, least, 100_000)
    assert 1e-4 < share < 1e-2, "something to compare"
    error = 4 * np.sqrt(share / 100_000) + 0.08 * share
    assert abs(tail_p(null, least, DRAWS) - share) < error


def test_far_tails_of_full_tables_are_chi_square_and_of_sparse_ones_are_not():
    """With hundreds of people in each combination; and with few, off by more than 3 times."""
    rng = np.random.default_rng(3)
    full = fit_table_null(drawn_table(rng, 2, [0.45, 0.45], 100_000))
    for p in (1e-6, 1e-10, 1e-14):
        least = stats.chi2.isf(p, 4) / 2
        found = [tail_p(full, least, DRAWS, seed) for seed in range(3)]
        assert np.mean(found) == pytest.approx(p, rel=0.15)
    table = drawn_table(np.random.default_rng(1), 2, [0.1, 0.1], 300)
    sparse = fit_table_null(table)
    freedom = degrees_of_freedom(table.reshape(2, 3, 3))
    ratio = tail_p(sparse, stats.chi2.isf(1e-7, freedom) / 2, DRAWS) / 1e-7
    assert ratio < 1 / 3, ratio


@pytest.mark.parametrize(("cases", "people", "least"), [(200, 400, 11.0), (50, 1000, 9.0)])
def test_risks_that_follow_chance_do_not_make_p_too_small(cases, people, least):
    """Of 60 triples without any effect, the mean p of one LR is about its share under the truth.

    With the maximum of the likelihood instead of `shrunk` it is 0.66 of it.
    """
    rng, risk = np.random.default_rng(8), cases / people
    tables = [drawn_flat(rng, cases, people) for _ in range(60)]
    terms, shares = interaction_terms(27), []
    for table in tables:
        n = table.sum(axis=0)
        drawn = rng.binomial(n, risk, (3000, 27))
        drawn = np.stack([n - drawn, drawn], axis=1)
        start = np.full(27, np.log(risk / (1 - risk)))
        half = half_statistics(drawn, np.zeros(1), start, terms, least=least)
        shares.append((half >= least).mean())
    found = np.mean([tail_p(fit_table_null(table), least, 400) for table in tables])
    assert 0.75 < found / np.mean(shares) < 1.25, found / np.mean(shares)


def drawn_flat(rng, cases: int, people: int) -> np.ndarray:
    """A triple, cases at random."""
    genotypes = rng.binomial(2, rng.uniform(0.25, 0.5, (3, 1)), (3, people))
    cell = np.ravel_multi_index(tuple(genotypes), (3, 3, 3))
    case = rng.permutation(people) < cases
    return np.bincount(cell + 27 * case, minlength=54).reshape(2, 27)


@pytest.mark.parametrize("maf", [[0.05, 0.05], [0.3, 0.3], [0.3, 0.3, 0.3], [0.05, 0.2, 0.4]])
def test_p_of_association_is_the_share_of_plain_draws(maf):
    """Within a factor of 1.6, also with 26 directions, which are not tilted."""
    order = len(maf)
    table = drawn_table(np.random.default_rng(5), order, maf)
    null = fit_table_null(table, terms=association_terms(3**order))
    least = stats.chi2.isf(1e-3, int((null.people > 0).sum()) - 1) / 2
    share = plain_share(null, least, 100_000)
    assert 1 / 1.6 < tail_p(null, least, DRAWS) / share < 1.6


def test_p_is_the_same_every_time_and_never_zero():
    table = drawn_table(np.random.default_rng(5), 2, [0.3, 0.3])
    null = fit_table_null(table)
    assert tail_p(null, 12.0, 400) == tail_p(fit_table_null(table), 12.0, 400)
    assert tail_p(null, 0.0, 400) == 1.0
    assert 0 < tail_p(null, 5000.0, 400) < 1e-100
    diagonal = np.zeros((2, 3, 3), np.int64)
    diagonal[:, [0, 1, 2], [0, 1, 2]] = 40
    assert tail_p(fit_table_null(diagonal), 1.0, 400) == 1.0, "cannot show an interaction"
