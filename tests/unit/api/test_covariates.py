"""No offset and no unit of a covariate changes a test; what says nothing is named."""

import warnings

import numpy as np
import pytest

import popdesic

RNG = np.random.default_rng(4)
GENOTYPES = RNG.binomial(2, 0.3, (200, 6)).astype(np.int8)
CASE = RNG.random(200) < 0.5
NUMBER = RNG.normal(170, 5, 200)
COVARIATE = (np.arange(200) * 7919 % 13).astype(float)
CHANGES = {
    "offset 1e8": lambda c: c + 1e8,
    "offset 1e9": lambda c: c + 1e9,
    "offset -1e13": lambda c: c - 1e13,
    "unit 1e-12": lambda c: c * 1e-12,
    "unit 1e12": lambda c: c * 1e12,
    "both": lambda c: 1e-9 * (c + 1e6),
}


def run(what: str, covariates):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if what == "scan":
            found = popdesic.scan(GENOTYPES, CASE, covariates=covariates, top=5, device="cpu")
            return found[["p_interaction", "p_association"]].to_numpy()
        phenotype = CASE if what == "cases" else NUMBER
        return popdesic.scan_sites(GENOTYPES, phenotype, covariates).p.to_numpy()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("what", ["cases", "numbers", "scan"])
def test_no_offset_and_no_unit_changes_a_test(what, change):
    """From 1e9 on, and at 1e-12, the covariate was left out in silence (p 0.714 became 0.773)."""
    other = NUMBER.round() % 7
    plain = run(what, np.stack([COVARIATE, other], axis=1))
    changed = run(what, np.stack([CHANGES[change](COVARIATE), other], axis=1))
    # p-values of a scan are drawn
    np.testing.assert_allclose(changed, plain, rtol=0.05 if what == "scan" else 1e-6)
    assert what == "scan" or not np.allclose(plain, run(what, None), rtol=1e-3)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.full(200, 0.1 + 0.2), r"covariates\[:, 1\] is constant over the samples"),
        (np.full(200, 1e12), r"covariates\[:, 1\] is constant over the samples"),
        (
            2e9 - 3 * COVARIATE,
            r"covariates\[:, 1\] is a linear combination of the columns before it",
        ),
        (1e-9 * COVARIATE, r"covariates\[:, 1\] is a linear combination of the columns before it"),
    ],
)
@pytest.mark.parametrize("what", ["scan", "cases"])
def test_a_column_that_says_nothing_is_left_out_by_name(what, column, words):
    both = np.stack([COVARIATE, column], axis=1)
    with pytest.warns(UserWarning, match=words):
        if what == "scan":
            popdesic.scan(GENOTYPES, CASE, covariates=both, top=5, device="cpu")
        else:
            found = popdesic.scan_sites(GENOTYPES, CASE, both).p
            np.testing.assert_allclose(found, run("cases", COVARIATE[:, None]), rtol=1e-12)


def test_a_column_that_varies_among_left_out_samples_alone_is_named():
    unknown = COVARIATE.copy()
    unknown[:50] = np.nan
    column = np.where(np.arange(200) < 50, 1e12, 3.0)
    with pytest.warns(UserWarning, match=r"covariates\[:, 1\] is constant over the samples"):
        popdesic.scan_sites(GENOTYPES, CASE, np.stack([unknown, column], axis=1))
    column[50:] += COVARIATE[50:]  # beside 1e12 it was taken for constant
    found = run("cases", np.stack([unknown * 0, column], axis=1)[:, 1:])
    assert np.isfinite(found).all()
