"""Products of sites with an environment: by their definition, their null, and between cohorts."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import sets as oracle
from scipy import stats

import popdesic
from popdesic.epistasis.set_environment import environment_design, spread_with

P_VALUES = ["p_quadratic", "p_burden", "p_pair"]


def draw(seed: int, n: int = 900, two_values: bool = False):
    """Genotypes, covariates, and an environment that goes with the first covariate."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, rng.uniform(0.15, 0.7, 6), (n, 6)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    covariates = rng.normal(size=(n, 2))
    e = 40 + 10 * (0.5 * covariates[:, 0] + rng.normal(size=n))
    return rng, genotypes, covariates, (e > 45).astype(float) if two_values else e


def response_of(rng, genotypes, covariates, e, strength: float, binary: bool) -> np.ndarray:
    g = np.maximum(genotypes, 0).astype(float)
    scaled = (e - e.mean()) / e.std()
    signal = 0.3 * g[:, 0] + 0.4 * covariates[:, 0] + 0.3 * scaled + strength * g[:, 3] * scaled
    if binary:
        return (rng.random(len(g)) < 1 / (1 + np.exp(signal.mean() + 0.5 - signal))).astype(float)
    return signal + rng.normal(size=len(g))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("two_values", "dominance"), [(False, True), (True, False)])
def test_products_with_an_environment_equal_the_oracle(binary, two_values, dominance):
    rng, genotypes, covariates, e = draw(1 + binary, 500, two_values)
    response = response_of(rng, genotypes, covariates, e, 0.7 * (1 + binary), binary)
    sets = {"all": range(6), "null": [1, 2, 4], "two": ([0, 1], [3, 5])}
    found = popdesic.scan_sets(
        genotypes, response, sets, covariates, environment=e, dominance=dominance, threads=1
    ).set_index("set")
    for name, sites in {"all": range(6), "null": [1, 2, 4], "two": [0, 1, 3, 5]}.items():
        expected = oracle.environment_tests(
            genotypes[:, list(sites)], response, covariates, e, binary=binary, dominance=dominance
        )
        assert found.products[name] == found.sites[name] == len(sites)
        for test in P_VALUES:
            assert found.loc[name, test] == pytest.approx(expected[test], rel=1e-6), (name, test)
    assert found.p["all"] < 1e-3 < 0.01 < found.p["null"]
    assert found.loc["two", ["site1", "site2"]].tolist() == [-1, 3]


def test_p_does_not_depend_on_the_unit_or_the_origin_of_the_environment():
    rng, genotypes, covariates, e = draw(3)
    response = response_of(rng, genotypes, covariates, e, 0.2, False)
    one, other = (
        popdesic.scan_sets(genotypes, response, {"a": range(6)}, covariates, environment=given)
        for given in (e, 1e6 - 1e4 * e)
    )
    for test in ["p", *P_VALUES]:
        assert other[test][0] == pytest.approx(one[test][0], rel=1e-6)


def test_unknown_environments_are_left_out_and_phenotypes_are_as_scanned_alone():
    rng, genotypes, covariates, e = draw(4)
    e[:50] = np.nan
    phenotypes = np.column_stack(
        [response_of(rng, genotypes, covariates, np.nan_to_num(e), 0.0, False) for _ in range(2)]
    )
    found = popdesic.scan_sets(genotypes, phenotypes, {"a": range(6)}, covariates, environment=e)
    for k in range(2):
        alone = popdesic.scan_sets(
            genotypes[50:], phenotypes[50:, k], {"a": range(6)}, covariates[50:], environment=e[50:]
        )
        assert found.p_quadratic[k] == pytest.approx(alone.p_quadratic[0], rel=1e-9)


def test_a_site_that_few_carry_on_one_side_of_the_mean_is_left_out():
    rng, genotypes, _, _ = draw(5, n=400)
    genotypes[:, 0] = 0
    genotypes[:24, 0] = 1
    e = np.zeros(400)
    e[20:200] = 1  # four of 24 carriers are exposed
    found = popdesic.scan_sets(genotypes, rng.normal(size=400), {"a": [0, 1, 2]}, environment=e)
    assert found.loc[0, ["sites", "products"]].tolist() == [3, 2]
    e[19] = 1
    found = popdesic.scan_sets(genotypes, rng.normal(size=400), {"a": [0, 1, 2]}, environment=e)
    assert found.products[0] == 3


def test_an_environment_must_vary_and_be_of_all_samples():
    rng, genotypes, _, e = draw(6)
    for given, said in ((np.full(900, 3.5), "constant"), (e[:800], "shape"), ("age", "shape")):
        with pytest.raises(ValueError, match=said):
            popdesic.scan_sets(genotypes, rng.normal(size=900), {"a": [0, 1]}, environment=given)


def test_covariates_have_products_as_far_as_there_is_room():
    rng = np.random.default_rng(7)
    e, covariates = rng.normal(size=60), rng.normal(size=(60, 6))
    whole, none = environment_design(covariates, e, 60)
    assert whole.shape == (60, 14) and none == 0
    part, left_out = environment_design(covariates, e, 33)
    assert part.shape == (60, 10) and left_out == 4
    assert np.array_equal(part, whole[:, :10])
    assert environment_design(covariates, e, 9)[0].shape == (60, 8)


@pytest.mark.parametrize("curved", [False, True])
def test_an_environment_with_a_curved_effect_is_no_interaction(curved):
    """A site that differs with the environment: without the square, p would be small."""
    rng, small, tested = np.random.default_rng(8), 0, 40
    for _ in range(tested):
        e = rng.normal(size=400)
        genotypes = rng.binomial(2, 1 / (1 + np.exp(-e))[:, None], (400, 2))
        y = (0.5 * e**2 if curved else 0.5 * e) + rng.normal(size=400)
        small += popdesic.scan_sets(genotypes, y, {"a": range(2)}, environment=e).p[0] <= 0.05
    assert small <= stats.binom.ppf(0.999, tested, 0.05)


def test_cohorts_with_other_minor_alleles_add_up():
    """Two cohorts equal one model with its own main effects in each; counts of ALT decide signs."""
    parts, drawn = {}, []
    for k, name in enumerate(("north", "south")):
        rng, genotypes, covariates, e = draw(10 + k, 500)
        genotypes = np.maximum(genotypes, 0)
        if k:
            genotypes[:, 2] = 2 - genotypes[:, 2]  # REF is the minor allele here
        response = response_of(rng, genotypes, covariates, e, 0.6, False)
        parts[name] = popdesic.score_sets(
            genotypes, response, {"a": range(6)}, covariates, environment=e
        )
        drawn.append((genotypes.astype(float), response, covariates, e))
    sets, by_cohort = popdesic.replicate_sets(parts, ["north"])
    assert sets.loc[0, ["site1", "site2"]].tolist() == [-1, 3]
    assert sets.p_discovery[0] < 1e-3 and sets.p_replication[0] < 1e-3
    assert sets.tested[0] == "product"
    joined = []
    for row, (g, response, covariates, e) in zip(by_cohort.itertuples(), drawn, strict=True):
        outside = np.column_stack([covariates, e, e**2, covariates * e[:, None]])
        root = 1 / oracle.spread_of_environment(response, outside, e)
        design = oracle.main_effects(g, outside, True) * root[:, None]
        weighted = (e - e.mean()) * root
        parts_of = oracle.parts_of(g * weighted[:, None], design, response * root, False)
        u, v, _, size, freedom = parts_of
        u = u / np.sqrt(size / freedom)
        assert abs(row.effect) == pytest.approx(abs(u[3] / v[3, 3]), rel=1e-6)
        assert row.se == pytest.approx(v[3, 3] ** -0.5, rel=1e-6)
        joined.append((u, v, freedom, g.var(axis=0), weighted.var()))
    u, v, freedom = (sum(one[k] for one in joined) for k in range(3))
    scale = 1 / np.sqrt(np.mean([one[3] for one in joined], axis=0))
    scale /= np.sqrt(np.mean([one[4] for one in joined]))
    minor = np.where(np.mean([g.mean(axis=0) for g, *_ in drawn], axis=0) > 1, -1.0, 1.0)
    expected = oracle.tests_of_scores(
        minor * u, np.outer(minor, minor) * v, np.zeros(6), scale, (float(freedom), freedom)
    )
    p = min(1.0, 2 * min(expected["p_quadratic"], expected["p_pair"]))
    assert sets.p_all[0] == pytest.approx(p, rel=1e-6)


def test_a_spread_that_grows_with_the_environment_is_fitted():
    """By a gamma model of statsmodels; without weights 14 of these p would be small."""
    rng, small, tested = np.random.default_rng(9), 0, 60
    for _ in range(tested):
        e = rng.normal(size=300)
        y = rng.normal(size=300) * np.exp(0.8 * e)
        found = popdesic.scan_sets(
            rng.binomial(2, 0.4, (300, 2)), y, {"a": range(2)}, environment=e
        )
        small += found.p[0] <= 0.05
    assert small <= stats.binom.ppf(0.999, tested, 0.05)
    expected = oracle.spread_of_environment(y, np.column_stack([e, e**2]), e)
    columns = np.column_stack([np.ones(300), e, e**2])
    rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    assert spread_with(e, rest) == pytest.approx(expected, rel=1e-6)
    two = (e > 0).astype(float)
    sizes = [np.sqrt((rest[two == one] ** 2).mean()) for one in (0, 1)]
    found = spread_with(two, rest)
    assert found[two == 1][0] / found[two == 0][0] == pytest.approx(sizes[1] / sizes[0], rel=1e-9)
