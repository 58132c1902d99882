"""Design matrix, null model and residuals of a scan, and the tests of single sites."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from popdesic.core.errors import UserError
from popdesic.epistasis.design import (
    ComponentScores,
    check_size,
    design_matrix,
    evened,
    independent_columns,
)
from popdesic.epistasis.null_model import fit_null, normal_scores, residual_levels
from popdesic.epistasis.single_sites import SiteTests, genomic_control


def refusal(call) -> str:
    """The sentence with which a call is refused."""
    with pytest.raises(UserError) as error:
        call()
    return str(error.value)


def study(n: int, seed: int = 1, **columns):
    """Sample sheet of n people in two cohorts, and the people of its scan in another order."""
    rng = np.random.default_rng(seed)
    names = [f"s{k}" for k in range(n)]
    sheet = pd.DataFrame(
        {
            "sample": names,
            "cohort": np.where(np.arange(n) % 3, "A", "B"),
            "age": rng.integers(20, 80, n).astype(str),
            "sex": rng.choice(["M", "F"], n),
        }
    ).assign(**columns)
    case = rng.random(n) < 0.4
    order = np.argsort(case, kind="stable")
    scanned = pd.DataFrame(
        {
            "sample": np.array(names)[order],
            "stratum": sheet.cohort.to_numpy()[order],
            "class": np.where(case[order], "case", "control"),
        }
    )
    return sheet, scanned


def test_design_is_in_the_order_of_the_scan():
    sheet, scanned = study(90)
    sheet.loc[sheet["sample"] == scanned["sample"][4], "age"] = "NA"
    rng = np.random.default_rng(2)
    axes = ComponentScores(sheet["sample"].tolist()[::-1], rng.normal(0, 3, (90, 5)), 2)
    design = design_matrix(scanned, sheet, "samples.tsv", ["age", "sex"], axes)
    assert design.names == ["stratum=B", "age", "sex=M", "PC1", "PC2"]
    rows = sheet.set_index("sample").loc[scanned["sample"]]
    np.testing.assert_array_equal(design.values[:, 0], rows.cohort == "B")
    np.testing.assert_array_equal(
        design.values[:, 1], evened(pd.to_numeric(rows.age, errors="coerce").to_numpy())[0]
    )
    assert np.isnan(design.values[4, 1]) and np.isnan(design.values).sum() == 1
    place = {name: row for row, name in enumerate(axes.samples)}
    scores = axes.scores[[place[name] for name in scanned["sample"]], :2]
    np.testing.assert_allclose(design.values[:, 3:], scores / scores.std(axis=0))
    assert design_matrix(scanned, sheet, "s", [], axes, 4).names[-1] == "PC4"
    assert design_matrix(scanned, sheet, "s", [], axes, 0).names == ["stratum=B"]
    assert design_matrix(scanned.assign(stratum="all"), sheet, "s", []).values.shape == (90, 0)


def test_columns_that_follow_from_strata_are_left_out_and_named(caplog):
    sheet, scanned = study(60)
    sheet["lab"] = sheet.cohort.map({"A": "north", "B": "south"})
    with caplog.at_level(logging.INFO):
        design = design_matrix(scanned, sheet, "samples.tsv", ["lab", "age"])
    assert design.names == ["stratum=B", "age"]
    assert "lab=south follow from the columns before them" in caplog.text


def test_people_of_a_stratum_of_one_class_have_no_row():
    sheet, scanned = study(60)
    scanned.loc[(scanned["stratum"] == "B"), "class"] = "case"
    design = design_matrix(scanned, sheet, "s", ["age"])
    np.testing.assert_array_equal(np.isnan(design.values).all(axis=1), scanned["stratum"] == "B")
    # numbers have no classes
    number = design_matrix(scanned.assign(**{"class": "quantitative"}), sheet, "s", ["age"])
    assert np.isfinite(number.values).all()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda age: age + 1e9, "age"),
        (lambda age: age - 1e13, "age"),
        (lambda age: age * 1e-12, "age / 1e-12"),
        (lambda age: age * 1e12, "age / 1e+12"),
    ],
)
def test_no_offset_and_no_unit_removes_a_covariate(change, name):
    """From an offset of 1e9 on it was taken for constant, and a tiny unit for zero."""
    sheet, scanned = study(60)
    sheet["age"] = [float(k * 7919 % 13) for k in range(len(sheet))]
    plain = design_matrix(scanned, sheet, "s.tsv", ["age"])
    sheet["age"] = [repr(float(change(age))) for age in sheet.age]
    other = design_matrix(scanned, sheet, "s.tsv", ["age"])
    assert plain.names == ["stratum=B", "age"] and other.names == ["stratum=B", name]
    case = np.arange(60) % 3 == 0
    fits = [fit_null(case, one.values, "logistic").fitted for one in (plain, other)]
    np.testing.assert_allclose(*fits, rtol=1e-9)
    sheet["bmi"] = sheet.age.astype(float) * 2 - sheet.age.astype(float).mean()
    sentence = refusal(lambda: design_matrix(scanned, sheet, "s.tsv", ["age", "bmi"]))
    assert "names 'bmi', which follows from 'age' for every sample" in sentence


@pytest.mark.parametrize(
    ("values", "expected", "exponent"),
    [
        ([3, 5, 4], [-1, 1, 0], 0),
        ([1e9 + 3, np.nan, 1e9 + 4], [0, np.nan, 1], 0),
        ([2e-9, 0, -4e-9], [2, 0, -4], -9),
        ([0.1 + 0.2, 0.3, 0.3], [0, 0, 0], 0),
        ([1e300, -1e300, 0], [1, -1, 0], 300),
        ([np.nan, np.nan], [np.nan, np.nan], 0),
        ([], [], 0),
    ],
)
def test_numbers_less_their_median_in_an_even_unit(values, expected, exponent):
    found = evened(np.array(values, float))
    np.testing.assert_allclose(found[0], expected, rtol=1e-14)
    assert found[1] == exponent


@pytest.mark.parametrize(
    "columns, covariates, sentence",
    [
        (
            {"site": "Berlin"},
            ["age", "site"],
            "config/config.yaml: epistasis.covariates names 'site', which is 'Berlin' for all 60 "
            "samples with a phenotype in s.tsv; leave it out.",
        ),
        (
            {"bmi": "NA"},
            ["bmi"],
            "config/config.yaml: epistasis.covariates names 'bmi', which is unknown for all 60 "
            "samples with a phenotype in s.tsv; leave it out.",
        ),
        (
            {"cm": [str(150 + k % 7) for k in range(60)]},
            ["cm", "age", "metres"],
            "config/config.yaml: epistasis.covariates names 'metres', which follows from 'cm', "
            "'age' for every sample of s.tsv; leave one of them out.",
        ),
    ],
)
def test_covariates_that_cannot_be_in_a_model(columns, covariates, sentence):
    sheet, scanned = study(60)
    sheet = sheet.assign(**columns)
    if "cm" in sheet:
        sheet["metres"] = (sheet.cm.astype(float) / 100).astype(str)
    assert refusal(lambda: design_matrix(scanned, sheet, "s.tsv", covariates)) == sentence
    design_matrix(scanned, sheet, "s.tsv", covariates[:-1])


def test_more_columns_than_people_allow():
    check_size(20, 60, "cases")
    assert refusal(lambda: check_size(21, 60, "cases")) == (
        "config/config.yaml: epistasis.strata and epistasis.covariates give 21 columns of a "
        "regression, too many for 60 cases (3 a column at least); name fewer covariates, or "
        "strata with fewer groups."
    )


def test_fewer_components_than_asked_for():
    sheet, scanned = study(30)
    axes = ComponentScores(
        sheet["sample"].tolist(), np.random.default_rng(1).normal(size=(30, 3)), 1
    )
    sentence = refusal(lambda: design_matrix(scanned, sheet, "s", [], axes, 4))
    assert "epistasis.pcs is 4, but the study's axes have 3 components" in sentence


def test_independent_columns_are_those_that_raise_the_rank():
    rng = np.random.default_rng(4)
    base, x = np.ones((40, 1)), rng.normal(size=(40, 6))
    x[:, 2] = 3 * x[:, 0] - 1e3 * x[:, 1] + 5
    x[:, 4] = 7
    assert independent_columns(base, x) == [0, 1, 3, 5]


def data_of(n: int, seed: int, *, unknown: bool = True):
    """A design with unknown values, numbers, cases, and genotypes of 50 sites."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([rng.normal(50, 12, n), rng.random(n) < 0.3]).astype(float)
    if unknown:
        design[rng.random(n) < 0.05, 0] = np.nan
    g = rng.binomial(2, np.linspace(0.02, 0.5, 50)[:, None], (50, n)).astype(np.int8)
    liability = np.nan_to_num(design[:, 0], nan=50) / 12 + design[:, 1] + 0.6 * g[40]
    number = liability + rng.normal(0, 1.5, n)
    case = (number > np.median(number)).astype(float)
    return design, number, case, g


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_null_model_is_the_regression_of_statsmodels(kind):
    design, number, case, _ = data_of(700, 3)
    y = number if kind == "linear" else case
    null = fit_null(y, design, kind)
    used = np.isfinite(design).all(axis=1)
    np.testing.assert_array_equal(null.used, used)
    x = sm.add_constant(design[used])
    family = sm.families.Gaussian() if kind == "linear" else sm.families.Binomial()
    fitted = sm.GLM(y[used], x, family=family).fit(tol=1e-12)
    np.testing.assert_allclose(null.fitted[used], fitted.fittedvalues, rtol=1e-7)
    residuals = fitted.resid_pearson / (np.sqrt(fitted.scale) if kind == "linear" else 1)
    np.testing.assert_allclose(null.residuals[used], residuals, rtol=1e-6, atol=1e-9)
    assert not null.residuals[~used].any()


def test_designs_that_leave_nothing_are_refused():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(80, 1))
    case = (x[:, 0] > 0).astype(float)
    assert "separate cases from controls" in refusal(lambda: fit_null(case, x, "logistic"))
    assert "explain the phenotype" in refusal(lambda: fit_null(3 * x[:, 0] + 1, x, "linear"))
    x[case == 1] = np.nan
    assert "no samples of both classes" in refusal(lambda: fit_null(case, x, "logistic"))


def test_normal_scores_of_residuals():
    design, number, _, _ = data_of(400, 6)
    number[7] = 1e6
    null = fit_null(number, design, "linear", transform="normal")
    scores = null.response[null.used]
    assert np.abs(scores).max() < 3.3 and stats.kstest(scores, "norm").pvalue > 0.9
    assert null.response[7] == scores.max()
    np.testing.assert_allclose(normal_scores(np.array([5.0, 1.0, 1.0, 9.0])).sum(), 0, atol=1)


def test_levels_keep_the_mean_of_any_group():
    """Controls of a rare disease have small residuals: rounding to the nearest would shift them."""
    rng = np.random.default_rng(7)
    n = 40_000
    group = (np.arange(n) % 2)[:, None].astype(float)
    case = (rng.random(n) < np.where(group[:, 0] == 1, 0.02, 0.002)).astype(float)
    null = fit_null(case, group, "logistic")
    levels, variance = residual_levels(null, seed=3)
    assert levels.dtype == np.uint8 and levels.min() >= 1 and levels.max() == 255
    unit = np.abs(null.residuals).max() / 127
    for chosen in (group[:, 0] == 0, group[:, 0] == 1):
        mean = (levels[chosen].astype(float) - 128).mean() * unit
        assert mean == pytest.approx(null.residuals[chosen].mean(), abs=5 * unit / np.sqrt(n))
    assert variance * unit**2 == pytest.approx(1.0, rel=0.05)
    nearest = np.rint(null.residuals / unit)[group[:, 0] == 0].mean() * unit
    assert abs(nearest - null.residuals[group[:, 0] == 0].mean()) > 0.03  # what is avoided


def test_people_who_are_not_used_have_the_level_of_zero():
    design, number, _, _ = data_of(300, 8)
    null = fit_null(number, design, "linear")
    levels, _ = residual_levels(null)
    assert (~null.used).any() and (levels[~null.used] == 128).all()


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_site_tests_are_those_of_statsmodels(kind):
    design, number, case, g = data_of(600, 9)
    y = number if kind == "linear" else case
    null = fit_null(y, design, kind)
    found = SiteTests(null).test(g)
    x, y, g = sm.add_constant(design[null.used]), y[null.used], g[:, null.used].astype(float)
    family = sm.families.Gaussian() if kind == "linear" else sm.families.Binomial()
    for row, dose in zip(found.itertuples(), g, strict=True):
        both = np.column_stack([dose, dose == 1]).astype(float)
        both = both[:, : 2 if (dose == 2).any() and (dose == 1).any() else 1]
        assert row.n == len(dose) and row.af == pytest.approx(dose.mean() / 2)
        if kind == "logistic":
            fitted = sm.GLM(y, x, family=family).fit(tol=1e-12)
            trend, geno = fitted.score_test(dose[:, None]), fitted.score_test(both)
            expected = trend[0], trend[1], geno[0], geno[1]
        else:
            fitted = sm.OLS(y, np.column_stack([x, dose])).fit()
            whole = sm.OLS(y, np.column_stack([x, both])).fit()
            f, p, _ = whole.compare_f_test(sm.OLS(y, x).fit())
            expected = fitted.tvalues[-1] ** 2, fitted.pvalues[-1], f * both.shape[1], p
            assert row.beta == pytest.approx(fitted.params[-1])
            assert row.se == pytest.approx(fitted.bse[-1])
        assert row.genotypic_df == both.shape[1]
        seen = row.chi2, row.p, row.genotypic_chi2, row.genotypic_p
        np.testing.assert_allclose(seen, np.ravel(expected), rtol=1e-6)
    assert found["p"].idxmin() == 40


def test_sites_without_information_have_no_test():
    design, number, case, g = data_of(200, 10, unknown=False)
    g[0] = 0
    g[1] = -1
    g[2] = (design[:, 1] > 0) * 2  # follows from the design
    g[3, ::2] = -1
    for null in (fit_null(number, design, "linear"), fit_null(case, design, "logistic")):
        found = SiteTests(null).test(g)
        assert found.loc[:2, ["beta", "chi2", "p", "genotypic_p"]].isna().all(axis=None)
        assert found.n[1] == 0 and found.n[3] == 100 and np.isfinite(found.p[3])


def test_genomic_control_speaks_of_structure_and_is_one_with_its_strata():
    """Risk and allele frequencies differ between two groups; with the group in the design, not."""
    rng = np.random.default_rng(12)
    n, m = 1000, 3000
    group = np.arange(n) % 2
    p = np.clip(rng.uniform(0.1, 0.5, m) + rng.normal(0, 0.05, (2, m)), 0.02, 0.98)
    g = rng.binomial(2, p[group].T).astype(np.int8)
    case = (rng.random(n) < np.where(group, 0.7, 0.3)).astype(float)
    seen = [
        genomic_control(SiteTests(fit_null(case, design, "logistic")).test(g).chi2.to_numpy())
        for design in (np.empty((n, 0)), group[:, None].astype(float))
    ]
    assert seen[0] > 2 and 0.9 < seen[1] < 1.1
