"""Scans of numbers among relatives: generalised least squares, ranks and family-wise error."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest
import statsmodels.api as sm
from scenes.interactions.numbers import draw_study, family_wise, scan_numbers
from scipy import stats

from popdesic.epistasis import families as families_module
from popdesic.epistasis.families import LEAST_EIGENVALUE, family_model
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.relatedness import Relatives
from popdesic.epistasis.residual_scan import residual_tests


def siblings(rng, n: int, size: int, shared: float = 0.5):
    """A number of n people in families of `size` siblings, the last people unrelated."""
    family = np.arange(n) // size
    family[-n // 4 :] = n + np.arange(len(family[-n // 4 :]))
    pairs = [(a, b) for a, b in itertools.combinations(range(n), 2) if family[a] == family[b]]
    first, second = np.array(pairs).T
    y = np.sqrt(shared / 2) * rng.normal(size=2 * n)[family] + np.sqrt(1 - shared / 2) * rng.normal(
        size=n
    )
    return y, Relatives(first, second, np.full(len(first), 0.25))


def matrix(model, n: int, relatives: Relatives) -> np.ndarray:
    """V person by person."""
    v = np.eye(n)
    for i, j, kinship in zip(relatives.first, relatives.second, relatives.kinship, strict=True):
        v[i, j] = v[j, i] = 2 * model.shared * kinship
    return v


def test_tests_are_those_of_generalised_least_squares():
    """Of statsmodels with the whole matrix, people without a genotype or a covariate left out."""
    rng = np.random.default_rng(1)
    n = 260
    y, relatives = siblings(rng, n, 5)
    x = rng.normal(size=(n, 1))
    x[7] = np.nan
    g = rng.binomial(2, [[0.4], [0.5]], (2, n)).astype(np.int8)
    g[0, [3, 11, 12]] = -1
    null = fit_null(y + np.nan_to_num(x[:, 0]), x, "linear")
    model = family_model(null, relatives)
    assert 0.2 < model.shared < 0.8
    found = residual_tests(g, null, model)
    used = null.used & (g >= 0).all(axis=0)
    v = matrix(model, n, relatives)[np.ix_(used, used)]
    a, b = g[:, used]
    main = [np.ones(len(a)), x[used, 0], *((one == k) for one in (a, b) for k in (1, 2))]
    main = np.column_stack(main).astype(float)
    crosses = np.column_stack([(a == s) & (b == t) for s in (1, 2) for t in (1, 2)])
    small = sm.GLS(null.response[used], main, v).fit()
    large = sm.GLS(null.response[used], np.column_stack([main, crosses]), v).fit()
    f, p, df = large.compare_f_test(small)
    np.testing.assert_allclose((found["lr_chi2"], found["lr_p"]), (f * df, p), rtol=1e-8)
    product = sm.GLS(null.response[used], np.column_stack([main, a * b]), v).fit()
    np.testing.assert_allclose(
        (found["product_beta"], found["product_se"], found["product_p"]),
        (product.params[-1], product.bse[-1], product.pvalues[-1]),
        rtol=1e-8,
    )
    assert found["lr_p"] != pytest.approx(residual_tests(g, null)["lr_p"], rel=1e-3)


def test_weights_are_the_inverse_of_the_matrix():
    rng = np.random.default_rng(2)
    y, relatives = siblings(rng, 90, 3)
    null = fit_null(y, np.empty((90, 0)), "linear")
    model = family_model(null, relatives)
    used = rng.random(90) < 0.8
    v = matrix(model, 90, relatives)[np.ix_(used, used)]
    found = model.weigh(null.residuals, used)
    np.testing.assert_allclose(found[used], np.linalg.solve(v, null.residuals[used]), rtol=1e-10)
    assert not found[~used].any()


def test_nobody_related_or_nothing_shared_is_no_model():
    rng = np.random.default_rng(3)
    _, relatives = siblings(rng, 80, 2)
    null = fit_null(np.arange(80.0) % 2 + rng.normal(0, 0.01, 80), np.empty((80, 0)), "linear")
    assert family_model(null, relatives) is None, "siblings differ more than others"
    assert family_model(null, relatives.of(relatives.kinship > 1)) is None


def test_a_measurement_that_is_listed_twice_counts_once(caplog):
    rng = np.random.default_rng(4)
    y, g = rng.normal(size=150), rng.binomial(2, 0.4, (2, 150)).astype(np.int8)
    y += 0.6 * (g[0] == 1) * (g[1] == 1)
    once = residual_tests(g, fit_null(y, np.empty((150, 0)), "linear"))
    null = fit_null(np.repeat(y, 2), np.empty((300, 0)), "linear")
    pairs = Relatives(np.arange(0, 300, 2), np.arange(1, 300, 2), np.full(150, 0.5))
    with caplog.at_level(logging.WARNING):
        model = family_model(null, pairs)
    assert "150 samples are duplicates of others with the same phenotype" in caplog.text
    twice = residual_tests(np.repeat(g, 2, axis=1), null, model)
    assert twice["lr_p"] == pytest.approx(once["lr_p"], rel=1e-9)
    assert residual_tests(np.repeat(g, 2, axis=1), null)["lr_p"] < once["lr_p"] ** 1.5


def test_kinships_that_are_no_covariances_are_mended(caplog, monkeypatch):
    """A chain whose ends are not related, with more than any matrix of covariances allows."""
    rng = np.random.default_rng(5)
    base = np.repeat(rng.normal(size=40), 6)
    null = fit_null(base + 0.1 * rng.normal(size=240), np.empty((240, 0)), "linear")
    first = np.array([6 * f + k for f in range(40) for k in range(5)])
    chain = Relatives(first, first + 1, np.full(len(first), 0.45))
    model = family_model(null, chain)
    (blocks,) = model.correlation
    assert blocks.shape == (40, 6, 6)
    np.testing.assert_allclose(np.diagonal(blocks, axis1=1, axis2=2), 1)
    assert np.linalg.eigvalsh(blocks).min() > LEAST_EIGENVALUE / 2
    assert np.isfinite(model.whiten(null.response[:, None], null.used)).all()
    weak = Relatives(chain.first, chain.second, np.where(first % 6 == 2, 0.07, 0.25))
    monkeypatch.setattr(families_module, "MOST_PEOPLE", 4)
    with caplog.at_level(logging.WARNING):
        model = family_model(null, weak)
    assert "pairs with a kinship below 0.0884 are taken for unrelated" in caplog.text
    assert [one.shape for one in model.members] == [(80, 3)]


def test_ranks_follow_the_test():
    """Weighed residuals rank pairs as the tests of families do; plain ones less so."""
    study = draw_study("siblings", 1)
    hits = scan_numbers(study, 400)
    plain = scan_numbers(type(study)(study.genotypes, study.response), 400)
    both = plain.merge(hits, on=["site1", "site2"], suffixes=("_plain", ""))
    assert len(both) > 150
    weighed = stats.spearmanr(both.score, -both.lr_chi2)[0]
    assert weighed > 0.9 > stats.spearmanr(both.score_plain, -both.lr_chi2)[0]


@pytest.mark.parametrize("scene", ["siblings", "families"])
def test_family_wise_error_among_relatives(scene):
    """5 % of 200 studies, within what chance allows: P(X > 20) < 0.001 at 5 %."""
    assert 2 <= sum(family_wise(scene, seed, 4) for seed in range(200)) <= 20


def test_unknown_relatives_make_interactions():
    assert sum(family_wise("siblings, unadjusted", seed, 4) for seed in range(150)) >= 14
