"""Score tests of single sites among relatives: the dense formula, and their distribution."""

import numpy as np
import pytest
from scenes.interactions.scenes import draw_families

import popdesic
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.relatedness import LEAST_KINSHIP, Relatives, shared_risk
from popdesic.epistasis.single_sites import SiteTests


def kinship_of(pairs: np.ndarray, n: int) -> np.ndarray:
    kinship = np.zeros((n, n))
    kinship[tuple(pairs[:, :2].astype(int).T)] = pairs[:, 2]
    return kinship + kinship.T


@pytest.mark.parametrize("kind", ["logistic", "linear"])
@pytest.mark.parametrize("related", [0.005, 0.4])
def test_variance_is_that_of_the_dense_formula(kind, related):
    """U^2 / (G' (I + K) G), also with everybody related to many and with missing genotypes."""
    rng = np.random.default_rng(3)
    n = 120
    genotypes = rng.integers(-1, 3, (9, n)).astype(np.int8)
    covariate = rng.normal(size=(n, 1))
    y = rng.normal(size=n) + covariate[:, 0]
    y = (y > 0).astype(float) if kind == "logistic" else y
    null = fit_null(y, covariate, kind)
    alike = np.outer(null.residuals, null.residuals) > -0.3
    rows, columns = np.nonzero(np.triu(alike & (rng.random((n, n)) < related), 1))
    pairs = Relatives(rows, columns, rng.uniform(LEAST_KINSHIP, 0.1, len(rows)))
    shared = shared_risk(pairs, null.residuals)
    assert shared > 0
    k = np.eye(n)
    k[rows, columns] = k[columns, rows] = 2 * shared * pairs.kinship
    root, base = np.sqrt(null.weights), np.column_stack([np.ones(n), covariate])
    basis = np.linalg.qr(root[:, None] * base)[0]
    found = SiteTests(null, pairs).test(genotypes)
    for row, g in zip(found.itertuples(), genotypes, strict=True):
        dose = np.where(g < 0, g[g >= 0].mean(), g) * root
        rest = dose - basis @ (basis.T @ dose)
        u = rest @ null.residuals
        np.testing.assert_allclose(row.beta, u / (rest @ rest) * null.variance, rtol=1e-9)
        if kind == "logistic":
            np.testing.assert_allclose(row.chi2, u**2 / (rest @ k @ rest), rtol=1e-9)
            np.testing.assert_allclose(row.se, np.sqrt(rest @ k @ rest) / (rest @ rest), rtol=1e-9)
        else:
            share = u**2 / (rest @ k @ rest) / (n - 2)
            np.testing.assert_allclose(row.chi2, share / (1 - share) * (n - 3), rtol=1e-9)


@pytest.mark.parametrize("numbers", [False, True])
def test_families_do_not_inflate_the_statistics(numbers):
    """Mean chi2 of sites without effect among siblings of a heritable trait."""
    means = {"known": [], "unknown": []}
    for seed in range(120):
        rng = np.random.default_rng([9, seed])
        genotypes, liability, pairs = draw_families(rng, parents=False, children=4)
        y = liability if numbers else (liability > 0).astype(float)
        for name, kinship in (("known", kinship_of(pairs, len(y))), ("unknown", None)):
            found = popdesic.scan_sites(genotypes, y, kinship=kinship)
            means[name].append(found.chi2.mean())
    assert 0.94 < np.mean(means["known"]) < 1.06  # standard error 0.02
    assert np.mean(means["unknown"]) > 1.15
