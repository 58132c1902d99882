"""Effects of leads by cohort: scores equal a definition, p is uniform, a planted effect is 1."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import kstest

from popdesic.epistasis.lead_cohorts import lead_direction, lead_effect, lead_scores
from popdesic.epistasis.set_cohorts import combine_effects


def people(rng, k: int, n: int, strength: float = 0.0):
    """Genotypes, cases with main effects and maybe an interaction, a covariate."""
    genotypes = rng.binomial(2, rng.uniform(0.3, 0.5, k)[:, None], (k, n)).astype(np.int8)
    age = rng.normal(size=(n, 1))
    odds = 0.4 * genotypes[0] - 0.3 * genotypes[1] + 0.5 * age[:, 0] - 0.2
    odds += strength * ((genotypes == 1).sum(axis=0) == k)
    return genotypes, rng.random(n) < expit(odds), age


@pytest.mark.parametrize("k", (2, 3))
def test_scores_are_those_of_the_definition(k):
    rng = np.random.default_rng(k)
    genotypes, case, age = people(rng, k, 700, 0.5)
    genotypes[0, :9] = -1
    scores, covariance = lead_scores(genotypes, case, age)
    called = (genotypes >= 0).all(axis=0)
    g, y = genotypes[:, called], case[called].astype(float)
    columns = [np.ones(len(y)), age[called, 0]]
    for group in combinations(range(k), k - 1):  # a column of each combination but the first
        for values in np.ndindex(*(3,) * (k - 1)):
            inside = np.all([g[s] == v for s, v in zip(group, values, strict=True)], axis=0)
            columns.append(inside.astype(float))
    null = np.column_stack(columns)
    u, _, rank = *np.linalg.svd(null, full_matrices=False)[:2], np.linalg.matrix_rank(null)
    fitted = sm.GLM(y, u[:, :rank], family=sm.families.Binomial()).fit(tol=1e-12).fittedvalues
    w = fitted * (1 - fitted)
    cells = np.stack(
        [np.all([g[s] == v for s, v in enumerate(one)], axis=0) for one in np.ndindex(*(3,) * k)],
        axis=1,
    ).astype(float)
    a = u[:, :rank]
    cross = cells.T @ (w[:, None] * a)
    expected = np.diag(cells.T @ w) - cross @ np.linalg.inv(a.T @ (w[:, None] * a)) @ cross.T
    np.testing.assert_allclose(scores, cells.T @ (y - fitted), rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(covariance, expected, rtol=1e-5, atol=1e-5)
    direction = lead_direction(scores, covariance)
    np.testing.assert_allclose(covariance @ direction + direction, scores, atol=1e-9)


@pytest.mark.parametrize("k", (2, 3))
def test_p_is_uniform_where_nothing_interacts(k):
    """Also if the discovery chose the best of several leads; in others main effects differ."""
    rng = np.random.default_rng(10 + k)
    found = []
    for _ in range(150):
        chosen = max(
            (lead_scores(*people(rng, k, 200)) for _ in range(3)),
            key=lambda one: float(one[0] @ lead_direction(*one)),
        )
        direction = lead_direction(*chosen)
        effects = [lead_effect(*lead_scores(*people(rng, k, n)), direction) for n in (300, 200)]
        found.append((effects[0].p, combine_effects(effects)["p"], combine_effects(effects)["p_q"]))
    for p in np.array(found).T:
        assert kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("k", (2, 3))
def test_a_planted_lead_replicates_with_an_effect_of_one(k):
    rng = np.random.default_rng(20 + k)
    direction = lead_direction(*lead_scores(*people(rng, k, 6000, 1.5)))
    effects = [lead_effect(*lead_scores(*people(rng, k, 3000, 1.5)), direction) for _ in range(3)]
    together = combine_effects(effects)
    assert together["p"] < 1e-6 and abs(together["effect"] - 1) < 4 * together["se"] + 0.1
    opposite = lead_effect(*lead_scores(*people(rng, k, 3000, -1.5)), direction)
    assert opposite.effect < 0 and opposite.p > 0.99
    mixed = combine_effects([*effects, opposite])
    assert mixed["p_q"] < 1e-6 and mixed["i2"] > 0.7


def test_a_cohort_of_one_class_or_of_other_genotypes_says_nothing():
    rng = np.random.default_rng(3)
    genotypes, case, age = people(rng, 2, 400, 1.0)
    direction = lead_direction(*lead_scores(genotypes, case, age))
    assert np.isnan(lead_effect(*lead_scores(genotypes, case | True, age), direction).p)
    assert np.isnan(lead_effect(*lead_scores(0 * genotypes, case, age), direction).se)
    assert combine_effects([])["cohorts"] == 0
