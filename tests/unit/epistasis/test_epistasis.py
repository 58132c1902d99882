"""The stage around the scans: partners, screen, significance, power, refit, forecast, errors."""

from __future__ import annotations

import itertools
import math
import re
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.outcomes import EMPTY, FIGURES, make_results
from support.readable import checked
from support.study import Cohort, make_sites, write_raw

from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.core.tables import read_table, write_table
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.design import covariate_columns
from popdesic.epistasis.evidence import MainEffects
from popdesic.epistasis.finished import FinishedScan
from popdesic.epistasis.fit_null import fit_null_model
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.lead_regions import zoom_on_leads
from popdesic.epistasis.options import (
    check_epistasis,
    permutations_run,
    scan_device,
    scan_hours,
)
from popdesic.epistasis.partners import far_enough, hardly_correlated
from popdesic.epistasis.permutations import merge_permutations, permute_unit
from popdesic.epistasis.phenotype import phenotype_classes
from popdesic.epistasis.power import association_power, cell_probabilities, permutation_power
from popdesic.epistasis.refit import odds_ratio, refit, refit_hits
from popdesic.epistasis.reorder import build_onehot, read_reordered, sites_of_hits
from popdesic.epistasis.scan import (
    count_tests,
    measure_rate,
    permuted,
    plan_scan,
    scan_unit,
    wtccc_shaped,
)
from popdesic.epistasis.scan_data import NAMES
from popdesic.epistasis.scan_sites import scan_pairs, scanner
from popdesic.epistasis.scores import load_scan, lr_bits, score_tables, table_cost
from popdesic.epistasis.screen import extend_pairs
from popdesic.epistasis.significance import hit_tables, permutation_p, rank_hits
from popdesic.epistasis.single_sites import scan_single_sites
from popdesic.epistasis.structure import strata_warnings
from popdesic.report.figures.epistasis import draw_epistasis, draw_penetrance, draw_qq, read_tables
from popdesic.report.figures.sites_scan import draw_sites
from popdesic.report.page import write_report
from popdesic.report.registry import epistasis_figures, site_scan_figures
from popdesic.report.sections.epistasis import (
    epistasis_findings,
    epistasis_section,
    odds_text,
    p_text,
)
from popdesic.study.configuration import fill_config

BACKEND = CpuBackend(1)
SCAN = {"score": "k2", "min_distance_bp": 0, "max_r2": 1.0}


def build(folder, genotypes, phenotype, *, strata=None, least=2, absent=(), **columns):
    """Write results/reorder of one cohort; genotypes (n_sites, n_samples), -1 missing.

    `absent`: phenotypes of further samples in the sheet that have no genotypes.
    """
    n_sites, n = np.shape(genotypes)
    names = [f"s{k}" for k in range(n)]
    cohort = Cohort("one", names, make_sites(n_sites), np.asarray(genotypes, np.int8))
    prefix = write_raw(folder / "cohorts/one/genotypes", cohort)
    sheet = pd.DataFrame(
        {
            "sample": names,
            "cohort": "one",
            "phenotype": [str(value) for value in phenotype],
            "stratum": ["x"] * n if strata is None else strata,
            **columns,
        }
    )
    more = pd.DataFrame({"sample": [f"a{k}" for k in range(len(absent))], "phenotype": absent})
    sheet = pd.concat([sheet, more.assign(cohort="one")], ignore_index=True)
    sheet.to_csv(folder / "samples.tsv", sep="\t", index=False)
    out = folder / "reorder"
    counts = build_onehot(
        [prefix],
        sheet,
        phenotype_classes(sheet, "none", "samples.tsv"),
        strata="none" if strata is None else "stratum",
        restrict=None,
        least=least,
        onehot_out=out / "onehot.npy",
        sites_out=out / "sites.tsv",
        samples_out=out / "samples.tsv",
    )
    return out, counts


def random_genotypes(rng, n_sites: int, n: int, missing: float = 0.0) -> np.ndarray:
    genotypes = rng.binomial(2, rng.uniform(0.15, 0.5, (n_sites, 1)), (n_sites, n))
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


def squared_correlation(a, b) -> float:
    both = (a >= 0) & (b >= 0)
    a, b = a[both].astype(float), b[both].astype(float)
    if a.std() == 0 or b.std() == 0:
        return np.nan
    return np.corrcoef(a, b)[0, 1] ** 2


# --- partners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("min_distance_bp", [0, 401])
def test_scans_of_pairs_permit_the_partners_of_the_definition(tmp_path, missing, min_distance_bp):
    rng = np.random.default_rng(2)
    genotypes = random_genotypes(rng, 34, 70, missing)
    genotypes[1::2] = np.where(rng.random((17, 70)) < 0.3, genotypes[1::2], genotypes[::2])
    case = np.arange(70) % 2
    folder, _ = build(tmp_path, genotypes, case)
    data, sites, _ = load_scan(folder, "k2", min_distance_bp, 0.3)
    ordered = genotypes[sites["rank"]][:, np.argsort(case, kind="stable")]
    found = {tuple(pair) for pair in scan_pairs(BACKEND, data, range(34), 1000).sites}
    tables = np.stack(
        [hit_tables(ordered[list(pair)], 35) for pair in itertools.combinations(range(34), 2)]
    ).reshape(-1, 2, 9)
    fits = hardly_correlated(tables.swapaxes(0, 1), 0.3)
    for (i, j), fit in zip(itertools.combinations(range(34), 2), fits, strict=True):
        far = sites.chrom[i] != sites.chrom[j] or (
            abs(sites.pos[i] - sites.pos[j]) >= min_distance_bp
        )
        assert bool(far_enough(data.partners, i, j)) == far
        assert fit == (not squared_correlation(ordered[i], ordered[j]) > 0.3), (i, j)
        assert ((i, j) in found) == (far and fit), (i, j)
    assert 10 < 561 - len(found) < 500
    assert load_scan(folder, "k2", 0, 1.0)[0].partners is None


# --- screen -------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("max_r2", "score"), [(1.0, "k2"), (0.02, "k2"), (1.0, "interaction"), (0.02, "interaction")]
)
def test_a_screen_of_all_pairs_is_the_exhaustive_scan(
    tmp_path, missing, max_r2, score, monkeypatch
):
    """Cost, sites and order of the triples, through several blocks of pairs and sites."""
    monkeypatch.setattr("popdesic.epistasis.screen.SITES", 5)
    monkeypatch.setattr("popdesic.epistasis.screen.PAIRS", 7)
    rng = np.random.default_rng(3)
    folder, _ = build(tmp_path, random_genotypes(rng, 13, 90, missing), np.arange(90) % 2)
    options = SCAN | {"score": score, "max_r2": max_r2, "top": 40}
    scan_unit(
        folder, BACKEND, tmp_path / "2.npz", order=2, unit=0, n_units=1, **options | {"top": 999}
    )
    scan_unit(folder, BACKEND, tmp_path / "3.npz", order=3, unit=0, n_units=1, **options)
    units, out = [tmp_path / "2.npz"], tmp_path / "screen.npz"
    extend_pairs(folder, units, BACKEND, out, pairs=999, **options)
    with np.load(tmp_path / "3.npz") as want, np.load(out) as found:
        assert len(want["cost"]) == 40
        np.testing.assert_array_equal(found["cost"], want["cost"])
        np.testing.assert_array_equal(found["sites"], want["sites"])
    extend_pairs(folder, units, BACKEND, out, pairs=3, **options)
    with np.load(tmp_path / "2.npz") as pairs, np.load(out) as found:
        best = [set(row) for row in pairs["sites"][:3].tolist()]
        assert all(any(pair <= set(row) for pair in best) for row in found["sites"].tolist())
        assert len(found["cost"]) >= 11


# --- significance -------------------------------------------------------------------------------


def null_p_values(folder, rng, order, n_sites, studies, *, confounded=False, stratified=True):
    """Permutation p-values of the best hit in studies without any effect.

    `confounded`: cases and frequencies differ between the strata.
    """
    n, permutations, found = 80, 9, []
    stratum = np.arange(n) % 2
    for study in range(studies):
        genotypes = random_genotypes(rng, n_sites, n, 0.02)
        case = rng.permutation(np.arange(n) // 2 % 2)
        if confounded:
            case = (rng.random(n) < np.where(stratum, 0.8, 0.2)).astype(int)
            more = stratum & rng.binomial(1, 0.7, (n_sites, n))
            genotypes = np.where(genotypes < 0, -1, np.minimum(genotypes + more, 2))
        strata = [f"t{s}" for s in stratum] if stratified else None
        out, _ = build(folder, genotypes, case, strata=strata)
        words, _, _ = read_reordered(out)
        data, _, samples = load_scan(out, "k2", 0, 1.0)
        whole = range(data.n_sites)
        best = scanner(BACKEND, order)(data, whole, 1).cost
        null = [
            scanner(BACKEND, order)(permuted(words, samples, data, study, k), whole, 1).cost[0]
            for k in range(permutations)
        ]
        found.append(float(permutation_p(best, np.array(null))[0]))
    # p is discrete; spread evenly over its step, it is uniform under the null.
    return np.array(found) - rng.random(studies) / (permutations + 1)


@pytest.mark.parametrize(
    ("order", "n_sites", "studies", "confounded"),
    [(2, 8, 100, False), (3, 6, 50, False), (2, 8, 100, True)],
)
def test_null_data_give_uniform_p_values(tmp_path, order, n_sites, studies, confounded):
    """By a Kolmogorov-Smirnov test, also where strata differ in cases and in frequencies."""
    rng = np.random.default_rng(order)
    p = null_p_values(tmp_path, rng, order, n_sites, studies, confounded=confounded)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_without_strata_a_difference_between_cohorts_looks_like_a_hit(tmp_path):
    """Shows that the test above would fail if strata were ignored."""
    rng = np.random.default_rng(2)
    p = null_p_values(tmp_path, rng, 2, 8, 40, confounded=True, stratified=False)
    assert stats.kstest(p, "uniform").pvalue < 1e-6
    assert np.median(p) < 0.1


def test_ties_with_permuted_scans_count():
    found = permutation_p(np.array([4, 5, 6]), np.array([7, 5, 5]))
    np.testing.assert_allclose(found, [1 / 4, 3 / 4, 3 / 4])
    assert np.isnan(permutation_p(np.array([4]), np.zeros(0))).all()


def test_strata_of_one_class_are_reported():
    samples = pd.DataFrame(
        {"stratum": ["a"] * 40 + ["b"] * 40, "class": ["case"] * 40 + ["control", "case"] * 20}
    )
    said = strata_warnings(samples)
    assert said == ["all of stratum a are of one class: it is never permuted"]


def interaction_studies(tmp_path, order, n_units, by_main_effects=False):
    """Table of the hits by interaction of a study with one strong site and an exclusive or."""
    rng = np.random.default_rng([order, 7])
    genotypes = random_genotypes(rng, 12, 900, 0.01)
    called = np.maximum(genotypes, 0)
    odds = 2.5 * called[4] + 1.6 * ((called[:order] > 0).sum(axis=0) % 2) - 3
    case = rng.random(900) < 1 / (1 + np.exp(-odds))
    folder, _ = build(tmp_path, genotypes, case.astype(int))
    options, units = SCAN | {"score": "interaction"}, []
    for unit in range(n_units):
        units.append(tmp_path / f"{unit}.npz")
        scan_unit(
            folder, BACKEND, units[-1], order=order, unit=unit, n_units=n_units, top=25, **options
        )
    out, tests, effects = tmp_path / f"{n_units}.tsv", count_tests(12, order), None
    if by_main_effects:
        null = tmp_path / "null_model.npz"
        fit_null_model(
            *(folder, tmp_path / "samples.tsv", None, null, tmp_path / "structure.tsv"),
            **{"covariates": [], "pcs": 0, "transform": "none", "seed": 1},
        )
        scan_single_sites(folder, null, tmp_path / "main.tsv")
        effects = MainEffects(tmp_path / "main.tsv", BACKEND)
    scan = FinishedScan(units, order, "interaction", tests)
    rank_hits(folder, scan, out, top=25, main_effects=effects)
    return out


@pytest.mark.parametrize("order", [2, 3])
def test_the_list_by_interaction(tmp_path, order):
    """The score is that of the listed test, the main effect of another site leads no hit."""
    whole = interaction_studies(tmp_path / "whole", order, 1)
    assert whole.read_bytes() == interaction_studies(tmp_path / "parts", order, 3).read_bytes()
    hits = read_table(whole)
    assert len(hits) == 25
    assert set(hits[[f"id{k + 1}" for k in range(order)]].iloc[0]) == {
        f"rs{k}" for k in range(order)
    }
    score, lr, p = (hits[c].astype(float).to_numpy() for c in ("score", "lr_chi2", "lr_p"))
    assert (np.diff(score) >= 0).all()
    np.testing.assert_allclose(-2 * score, lr, atol=1e-4)
    assert p[0] < 1e-4 and set(hits.p_permutation) == {"NA"}
    found = hits[["p_interaction", "p_association"]].astype(float)
    assert found.p_interaction[0] < 0.01 and (found.p_interaction[1:] > 0.05).all()
    named = hits[[f"id{k + 1}" for k in range(order)]]
    assert (found.p_association[(named == "rs4").any(axis=1)] < 1e-10).all(), "a main effect"
    freedom = hits.lr_df.astype(int)
    assert freedom.max() <= 2**order and np.allclose(stats.chi2.sf(lr, freedom), p, rtol=1e-3)


@pytest.mark.parametrize("order", [2, 3])
def test_main_effects_decide_how_many_tests_a_hit_is_corrected_for(tmp_path, order):
    whole = interaction_studies(tmp_path / "whole", order, 1, True)
    parts = interaction_studies(tmp_path / "parts", order, 3, True)
    assert whole.read_bytes() == parts.read_bytes()
    equal = read_table(interaction_studies(tmp_path / "equal", order, 1))
    hits = read_table(whole)
    n, ids = math.comb(12, order), [f"id{k + 1}" for k in range(order)]
    assert set(equal.tests) == {str(n)}
    tests, p = hits.tests.astype(float), hits.lr_p.astype(float)
    assert (tests[hits.cis == "yes"] == tests.max()).all()
    assert tests.max() == pytest.approx(n / 0.9, rel=1e-4)
    if order == 2:  # of three sites on two chromosomes, two are in cis
        assert tests.nunique() > 1 and (hits.cis == "no").any()
    assert (np.diff(p * tests) > -1e-3 * (p * tests)[1:]).all(), "the order of the list"
    both = hits.merge(equal, on=ids, suffixes=("", "_equal"))
    assert len(both) >= 15 and (both.score == both.score_equal).all()
    # The same p of one test, but for the draws that only small ones get.
    one = both.p_interaction.astype(float) / both.tests.astype(float)
    other = both.p_interaction_equal.astype(float) / n
    drawn = (both.p_interaction.astype(float) < 1) & (both.p_interaction_equal.astype(float) < 1)
    assert drawn.any() and np.allclose(one[drawn], other[drawn], rtol=2e-3)
    assert both.p_association.tolist() == both.p_association_equal.tolist()


# --- power --------------------------------------------------------------------------------------

CROSSING = [0.1, 0.5, 0.5, 0.5, 0.1, 0.1, 0.5, 0.1, 0.1]


def test_cells_of_a_penetrance_model_equal_those_of_drawn_people():
    rng = np.random.default_rng(5)
    maf = [0.3, 0.2, 0.4]
    risk = rng.random(27)
    genotypes = np.stack([rng.binomial(2, q, 400_000) for q in maf])
    cell = 9 * genotypes[0] + 3 * genotypes[1] + genotypes[2]
    case = rng.random(400_000) < risk[cell]
    cells = cell_probabilities(maf, list(risk))
    for part, drawn in zip(cells, (cell[~case], cell[case]), strict=True):
        share = np.bincount(drawn, minlength=27) / len(drawn)
        np.testing.assert_allclose(part, share, atol=5 * 0.5 / np.sqrt(len(drawn)))
    np.testing.assert_allclose(cells.sum(axis=1), 1)


@pytest.mark.parametrize(("n", "alpha"), [((150, 130), 0.01), ((300, 100), 1e-4)])
def test_chi_square_power_equals_that_of_drawn_studies(n, alpha):
    cells = cell_probabilities([0.4, 0.4], [0.25, 0.3, 0.3, 0.3, 0.25, 0.25, 0.3, 0.25, 0.5])
    rng = np.random.default_rng(6)
    tables = np.stack([rng.multinomial(k, p, 4000) for k, p in zip(n, cells, strict=True)], axis=1)
    expected = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True) / sum(n)
    statistic = ((tables - expected) ** 2 / np.maximum(expected, 1e-9)).sum(axis=(1, 2))
    share = (statistic > stats.chi2.isf(alpha, 8)).mean()
    assert association_power(cells, *n, alpha) == pytest.approx(share, abs=0.04)
    pooled = (n[0] * cells[0] + n[1] * cells[1]) / sum(n)
    noncentral = n[0] * n[1] / sum(n) * ((cells[1] - cells[0]) ** 2 / pooled).sum()
    exact = stats.ncx2.sf(stats.chi2.isf(alpha, 8), 8, noncentral)
    assert association_power(cells, *n, alpha) == pytest.approx(exact, rel=1e-9)
    flat = cell_probabilities([0.4, 0.4], [0.3] * 9)
    assert association_power(flat, *n, alpha) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information"])
def test_power_of_the_permutation_test(score):
    """Without an effect it equals the level; a strong effect is found; few permutations: NaN."""
    flat = cell_probabilities([0.3, 0.3], [0.3] * 9)
    rng = np.random.default_rng(7)
    tables = np.stack([rng.multinomial(n, p, 999) for n, p in zip((220, 180), flat, strict=True)])
    null = table_cost(tables, *score_tables(score, 220, 180), lr_bits(score, 400))
    drawn = {"n_controls": 220, "n_cases": 180, "score": score, "seed": [1, 0]}
    assert permutation_power(flat, null=null, **drawn) == pytest.approx(0.05, abs=0.02)
    crossing = cell_probabilities([0.3, 0.3], CROSSING)
    assert permutation_power(crossing, null=null, **drawn) > 0.99
    assert np.isnan(permutation_power(crossing, null=null[:18], **drawn))


# --- refit --------------------------------------------------------------------------------------


def newton(design, y, steps=60):
    """Coefficients and standard errors of a logistic regression, by Newton's method."""
    beta = np.zeros(design.shape[1])
    for _ in range(steps):
        risk = 1 / (1 + np.exp(-design @ beta))
        information = design.T @ (design * (risk * (1 - risk))[:, None])
        beta += np.linalg.solve(information, design.T @ (y - risk))
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


def one_hot(rows) -> np.ndarray:
    """One column of 0 and 1 for each distinct row."""
    _, which = np.unique(rows, axis=0, return_inverse=True)
    return np.eye(which.max() + 1)[which.ravel()]


@pytest.mark.parametrize("order", [2, 3])
def test_refit_is_a_logistic_regression(order):
    rng = np.random.default_rng(order)
    n = 900
    genotypes = random_genotypes(rng, order, n, 0.02).astype(np.int8)
    age = rng.normal(50, 9, n)
    age[:5] = np.nan
    product = np.maximum(genotypes, 0).prod(axis=0)
    case = rng.random(n) < 1 / (1 + np.exp(1 - 0.5 * product - 0.03 * (np.nan_to_num(age) - 50)))
    rows = refit(genotypes, case, np.column_stack([age, age, 2 * age - 7]), ["age", "twin", "line"])
    used = (genotypes >= 0).all(axis=0) & np.isfinite(age)
    g = genotypes[:, used].astype(float)
    groups = [c for size in range(1, order + 1) for c in itertools.combinations(range(order), size)]
    columns = [np.ones(used.sum()), age[used], *(g[list(c)].prod(axis=0) for c in groups)]
    beta, se = newton(np.column_stack(columns), case[used].astype(float))
    names = ["age", *(" x ".join(f"site{k + 1}" for k in c) for c in groups)]
    assert rows[0]["kind"] == "interaction" and rows[0]["term"] == names[-1]
    assert sorted(row["term"] for row in rows) == sorted(names), "columns that follow are left out"
    found = {row["term"]: row for row in rows}
    for name, value, error in zip(names, beta[1:], se[1:], strict=True):
        row = found[name]
        assert row["n"] == used.sum() and row["converged"] == "yes"
        assert row["log_odds"] == pytest.approx(value, rel=1e-5, abs=1e-7)
        assert row["se"] == pytest.approx(error, rel=1e-4)
        assert row["odds_ratio"] == f"{np.exp(value):.4g}"
        assert float(row["or_low"]) == pytest.approx(np.exp(value - 1.959964 * error), rel=1e-3)
    below = itertools.combinations(range(order), order - 1)
    lower = np.concatenate([one_hot(g[list(members)].T) for members in below], axis=1)
    whole = np.concatenate([lower, one_hot(g.T)], axis=1)
    ranks = [np.linalg.matrix_rank(columns) for columns in (whole, lower)]
    assert rows[0]["shape_df"] == str(ranks[0] - ranks[1])


@pytest.mark.parametrize("order", [2, 3])
def test_shape_test_equals_the_test_of_the_table(order):
    """Without covariates the test equals the likelihood-ratio test in the scan's table."""
    rng = np.random.default_rng(8)
    genotypes = rng.binomial(2, 0.45, (order, 2000)).astype(np.int8)
    case = rng.random(2000) < np.array(CROSSING)[3 * genotypes[0] + genotypes[1]]
    by_class = np.argsort(case, kind="stable")
    genotypes, case = genotypes[:, by_class], case[by_class]
    row = refit(genotypes, case, np.zeros((2000, 0)), [])[0]
    chi2, freedom, p = interaction_test(hit_tables(genotypes, int((~case).sum())))
    assert row["shape_df"] == str(freedom) == str(2**order)
    assert row["shape_chi2"] == pytest.approx(chi2, rel=1e-5, abs=1e-5)
    assert row["shape_p"] == pytest.approx(p, rel=1e-4)


def test_an_interaction_explained_by_a_covariate_disappears():
    """Cases and the product of two sites both depend on a measured covariate."""
    rng = np.random.default_rng(9)
    n = 3000
    both = rng.random(n) < 0.5
    genotypes = np.stack([rng.binomial(2, 0.3, n), rng.binomial(2, 0.3, n)])
    genotypes[:, both & (rng.random(n) < 0.6)] = 1
    case = rng.random(n) < np.where(both, 0.9, 0.1)
    genotypes = genotypes.astype(np.int8)
    alone = refit(genotypes, case, np.zeros((n, 0)), [])[0]
    adjusted = refit(genotypes, case, both[:, None].astype(float), ["both"])[0]
    assert alone["shape_p"] < 1e-6 < 0.01 < adjusted["shape_p"]


def test_cells_without_controls_do_not_stop_the_refit():
    genotypes = np.array([[0, 1, 2] * 40, [0] * 60 + [1] * 60], np.int8)
    rows = refit(genotypes, genotypes.prod(axis=0) > 0, np.zeros((120, 0)), [])
    assert rows[0]["kind"] == "interaction" and rows[0]["se"] > 50
    assert rows[0]["odds_ratio"] == "infinite (no controls carry it)" and rows[0]["or_low"] == "NA"
    rows = refit(genotypes, genotypes.prod(axis=0) == 0, np.zeros((120, 0)), [])
    assert rows[0]["odds_ratio"] == "0 (no cases carry it)"


def test_odds_ratios_in_words_where_they_are_not_finite():
    y, carried = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 0, 1])
    assert odds_ratio(np.log(2.34567), 0.1, carried, y) == ("2.346", "1.928", "2.854")
    assert odds_ratio(20.0, 5e4, carried, y)[0].startswith("not finite")
    assert odds_ratio(1.0, np.nan, carried, y)[1:] == ("NA", "NA")


def test_categorical_and_numeric_covariates():
    sheet = pd.DataFrame({"site": ["b", "a", "NA", "c"], "age": ["4", "NA", "2.5", ""]})
    words = covariate_columns(sheet, "site", "samples.tsv")
    assert list(words) == ["site=b", "site=c"]
    np.testing.assert_array_equal(words["site=b"], [1, 0, np.nan, 0])
    np.testing.assert_array_equal(
        covariate_columns(sheet, "age", "samples.tsv")["age"], [1.5, np.nan, 0, np.nan]
    )


# --- forecast -----------------------------------------------------------------------------------


def test_the_rate_is_measured_on_growing_scans(monkeypatch):
    """Scans grow until one takes long enough or all sites are used."""
    asked = []

    def probe_of(n):
        asked.append(n)
        return wtccc_shaped(n, "k2")

    monkeypatch.setattr("popdesic.epistasis.scan.PROBE_SITES", {2: 4})
    monkeypatch.setattr("popdesic.epistasis.scan.MOST_PROBE_SITES", {2: 64})
    monkeypatch.setattr("popdesic.epistasis.scan.PROBE_SECONDS", 1e9)
    assert measure_rate(probe_of, 40, 2, BACKEND) > 0
    assert asked == [4, 4, 8, 16, 32, 40]
    monkeypatch.setattr("popdesic.epistasis.scan.PROBE_SECONDS", 0)
    asked.clear()
    measure_rate(probe_of, 40, 2, BACKEND)
    assert asked == [4, 4]


@pytest.mark.parametrize("n_sites", [4, 5, 6, 9, 33])
def test_the_rate_of_quads_is_that_of_one_first_site(monkeypatch, n_sites):
    """The smallest of four of n sites is the (n / 5)-th on average; few quads are fitted."""
    scanned = []

    def scanner_of(*given, **options):
        scan = scanner(*given, **options)

        def scan_first(data, first, top):
            scanned.append((data.n_sites, first, top))
            return scan(data, first, top)

        return scan_first

    monkeypatch.setattr("popdesic.epistasis.scan.scanner", scanner_of)
    clock = itertools.count()  # each scan takes a second
    ticks = SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr("popdesic.epistasis.scan.time", ticks)
    rate = measure_rate(lambda n: wtccc_shaped(n, "interaction"), n_sites, 4, BACKEND)
    (_, (n, (w,), top)) = scanned
    assert n == n_sites and w == n // 5 and top == 10
    assert rate == sum(1 for quad in itertools.combinations(range(n), 4) if quad[0] == w) > 0


def test_forecast_data_have_the_shape_of_the_wtccc():
    data = wtccc_shaped(50, "k2")
    assert data.n_samples == 5004 and data.n_sites == 50
    counts = sum(np.bitwise_count(one.words).sum(axis=(0, 2)) for one in data.classes)
    np.testing.assert_allclose(counts / (50 * 5004), [0.067, 0.237], rtol=0.05)


PLAN = {
    "score": "k2",
    "permutations": {2: 9, 3: 0},
    "screen": 5,
    "top": 100,
}


def test_forecast(tmp_path, monkeypatch):
    monkeypatch.setattr("popdesic.epistasis.scan.MOST_PROBE_SITES", {2: 64, 3: 32})
    rng = np.random.default_rng(10)
    folder, _ = build(tmp_path, random_genotypes(rng, 12, 60), np.arange(60) % 2)
    out = tmp_path / "plan.json"
    lines = plan_scan(folder, BACKEND, out, orders=[2, 3], max_device_hours=1.0, **PLAN)
    assert read_json(out) == {
        "sites": 12,
        "samples": 60,
        "pairs": {"tests": 66, "scans": 10},
        "triples": {"tests": 220, "scans": 1},
        "screen": {"tests": 50, "scans": 1},
    }
    assert lines["memory"].endswith(" MB of planes")
    large = [text for name, text in lines.items() if "500568 sites x 5004 samples" in name]
    assert large[0].startswith("125283911028 tests") and large[1].startswith("20904288735880616 ")
    first = out.read_bytes()
    plan_scan(folder, BACKEND, out, orders=[2, 3], max_device_hours=1.0, **PLAN)
    assert out.read_bytes() == first, "a rate is in the log alone"


# --- errors -------------------------------------------------------------------------------------


def test_a_scan_that_would_take_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("popdesic.epistasis.scan.MOST_PROBE_SITES", {2: 64, 3: 32})
    rng = np.random.default_rng(10)
    folder, _ = build(tmp_path, random_genotypes(rng, 12, 60), np.arange(60) % 2)
    with pytest.raises(UserError) as error:
        plan_scan(folder, BACKEND, tmp_path / "p", orders=[2], max_device_hours=1e-12, **PLAN)
    assert "12 sites and 60 samples would take about" in str(error.value)
    assert (
        "above 1e-12 (24 for each of epistasis.units); raise epistasis.units, or take fewer"
        in str(error.value)
    )
    assert not (tmp_path / "p").exists()


def test_sites_without_a_call_or_variation_are_dropped_and_counted(tmp_path):
    rng = np.random.default_rng(11)
    genotypes = random_genotypes(rng, 9, 40)
    genotypes[[1, 4]] = -1
    genotypes[6] = 2
    genotypes[6, :3] = -1
    folder, counts = build(tmp_path, genotypes, np.arange(40) % 2)
    assert counts["no_called_genotype"] == 2 and counts["monomorphic"] == 1
    assert counts["sites"] == 6 and counts["controls"] == counts["cases"] == 20
    assert sorted(read_reordered(folder)[1]["rank"]) == [0, 2, 3, 5, 7, 8]


@pytest.mark.parametrize("n_sites", [0, 1, 2])
def test_scans_of_too_few_sites_give_empty_tables(tmp_path, caplog, n_sites):
    """Whatever needs more sites than there are has tables without rows, which the log explains."""
    genotypes = np.full((3, 40), 2, np.int8)
    genotypes[:n_sites] = random_genotypes(np.random.default_rng(11), n_sites, 40)
    folder, counts = build(tmp_path, genotypes, np.arange(40) % 2, least=3)
    assert counts["sites"] == n_sites
    assert f"{n_sites} usable site" in caplog.text and "fewer than the 3" in caplog.text
    plan_scan(
        *(folder, BACKEND, tmp_path / "plan.json"),
        **{"orders": [2, 3], "score": "k2", "permutations": {2: 0, 3: 0}, "screen": 5, "top": 9},
        max_device_hours=1,
    )
    plan = read_json(tmp_path / "plan.json")
    assert plan["triples"]["tests"] == plan["screen"]["tests"] == 0
    for order in (2, 3):
        unit, table = tmp_path / f"unit{order}.npz", tmp_path / f"hits{order}.tsv"
        scan_unit(folder, BACKEND, unit, order=order, unit=0, n_units=1, top=9, **SCAN)
        scan = FinishedScan([unit], order, "k2", math.comb(n_sites, order))
        rank_hits(folder, scan, table, top=9)
        assert len(read_table(table)) == math.comb(n_sites, order)


SHEET = pd.DataFrame(
    {
        "sample": [f"s{k}" for k in range(40)],
        "cohort": "one",
        "phenotype": ["0", "1"] * 20,
        "age": [str(k) for k in range(40)],
        "name": [f"n{k}" for k in range(40)],
    }
)
MODEL = {"name": "m", "maf": [0.3, 0.3], "penetrance": CROSSING}

#: name: (block `epistasis`, changed columns of the sheet, words of the error message)
REFUSED = {
    "one class": ({}, {"phenotype": "1"}, ["phenotype", "no sample is a control"]),
    "no phenotype": ({}, {"phenotype": "NA"}, ["phenotype", "no sample is a control"]),
    "triples of numbers": (
        {"order": [2, 3]},
        {"phenotype": [str(k) for k in range(40)]},
        ["triples are scanned in cases and controls", "set epistasis.transform to 'median' or"],
    ),
    "quads of numbers": (
        {"order": [2, 4]},
        {"phenotype": [str(k) for k in range(40)]},
        ["order has 4, but quads are scanned in cases and controls"],
    ),
    "association of numbers": (
        {"score": "k2"},
        {"phenotype": [str(k) for k in range(40)]},
        ["score is 'k2', which needs cases and controls", "set epistasis.score to 'interaction'"],
    ),
    "two other values": (
        {},
        {"phenotype": ["3", "5"] * 20},
        ["values other than 0 and 1", "set epistasis.transform to 'median'"],
    ),
    "phenotype without a column": (
        {"phenotypes": ["phenotype", "gout"]},
        {},
        ["epistasis.phenotypes names 'gout', which is not a column of samples.tsv"],
    ),
    "one class of a further phenotype": (
        {"phenotypes": ["phenotype", "gout"]},
        {"gout": ["1", "NA"] * 20},
        ["samples.tsv, column gout", "no sample is a control"],
    ),
    "bad value of a further phenotype": (
        {"phenotypes": ["gout"]},
        {"gout": ["1", "no"] * 20},
        ["samples.tsv, column gout", "phenotype of sample 's1' is 'no'"],
    ),
    "numbers and classes": (
        {"phenotypes": ["phenotype", "weight"]},
        {"weight": [str(k) for k in range(40)]},
        ["numbers in 'weight' and cases and controls in 'phenotype'", "two studies"],
    ),
    "phenotype as a covariate": (
        {"phenotypes": ["gout"], "covariates": ["gout"]},
        {"gout": ["1", "0"] * 20},
        ["epistasis.covariates has 'gout'", "take it out of one of them"],
    ),
    "residuals of triples": (
        {"order": [3], "score": "residuals"},
        {},
        ["score is 'residuals', which ranks pairs", "set epistasis.score to 'interaction'"],
    ),
    "residuals of quads": (
        {"order": [3, 4], "score": "residuals"},
        {},
        ["which ranks pairs, but epistasis.order is [3, 4]; add 2"],
    ),
    "missing code": ({}, {"phenotype": ["0", "-9"] * 20}, ["-9", "code for missing: write NA"]),
    "text among numbers": (
        {},
        {"phenotype": [*map(str, range(39)), "tall"]},
        ["sample 's39' is 'tall'; give 1 (case)"],
    ),
    "constant covariate": (
        {"covariates": ["lab"]},
        {"lab": "one"},
        ["names 'lab', which is 'one' for all 40 samples", "leave it out"],
    ),
    "collinear covariates": (
        {"covariates": ["age", "years"]},
        {"age": [str(k % 9) for k in range(40)], "years": [str(k % 9 + 1) for k in range(40)]},
        ["names 'years', which follows from 'age'", "leave one of them out"],
    ),
    "too many covariates": (
        {"covariates": ["place"]},
        {"place": [str(k % 9) + "x" for k in range(40)]},
        ["columns of a regression, too many for", "name fewer covariates"],
    ),
    "stratum of one class": (
        {"strata": "place"},
        {"place": ["x"] * 20 + ["y"] * 20, "phenotype": ["1"] * 20 + ["0", "1"] * 10},
        ["all 20 samples of place 'x' with a phenotype are cases", "strata to 'none'"],
    ),
    "a word": ({}, {"phenotype": ["0", "case"] * 20}, ["sample 's1' is 'case'"]),
    "strata": ({"strata": "batch"}, {}, ["strata is 'batch'", "not a column of samples.tsv"]),
    "restrict": ({"restrict": "no.bed"}, {}, ["restrict is 'no.bed', which does not exist"]),
    "covariate": ({"covariates": ["sex"]}, {}, ["covariates names 'sex'", "not a further column"]),
    "phenotype as covariate": (
        {"covariates": ["phenotype"]},
        {},
        ["covariates names 'phenotype'", "leave it out"],
    ),
    "identifier as covariate": (
        {"covariates": ["name"]},
        {},
        ["40 different values", "at most 30"],
    ),
    "penetrances": (
        {"power": [MODEL | {"penetrance": [0.1] * 8}]},
        {},
        ["power[0] ('m') has 8 penetrances for 2 sites; give 9"],
    ),
    "power of what is not scanned": (
        {"power": [MODEL], "order": [3]},
        {},
        ["has 2 sites, but epistasis.order is [3]"],
    ),
    "power of nothing": (
        {"power": [MODEL | {"penetrance": [0.1] * 9}]},
        {},
        ["the same penetrance for all genotypes"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_any_job(tmp_path, case):
    block, columns, parts = REFUSED[case]
    filled = fill_config({"epistasis": {"order": [2]} | block})["epistasis"]
    with pytest.raises(UserError) as error:
        check_epistasis(filled, SHEET.assign(**columns), "samples.tsv", tmp_path)
    sentence = str(error.value)
    assert all(part in sentence for part in parts), sentence
    assert sentence.endswith(".") and "\n" not in sentence


def test_valid_settings_are_accepted(tmp_path):
    numbers = SHEET.assign(phenotype=[str(k) for k in range(40)])
    for block, sheet in (
        ({"order": []}, SHEET.drop(columns="phenotype")),
        ({"order": [2], "transform": "median"}, numbers),
        ({"order": [2], "covariates": ["age"], "power": [MODEL]}, SHEET),
        ({"order": [2], "phenotypes": ["phenotype", "gout"]}, SHEET.assign(gout=["1", "2"] * 20)),
        ({"order": [2], "phenotypes": ["age"]}, SHEET.drop(columns="phenotype")),
    ):
        filled = fill_config({"epistasis": block})["epistasis"]
        check_epistasis(filled, sheet, "samples.tsv", tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("# ids\n\n", "lists no site"),
        ("rs1\nrs2\nrs1\n", "lists 2 sites, fewer than the 3 that"),
        ("1\t5\t9\n", None),
    ],
)
def test_too_short_a_list_of_sites(tmp_path, text, sentence):
    """A single range of a BED file may contain any number of sites."""
    (tmp_path / "list.txt").write_text(text)
    filled = fill_config({"epistasis": {"order": [3], "restrict": "list.txt"}})["epistasis"]
    if sentence is None:
        check_epistasis(filled, SHEET, "samples.tsv", tmp_path)
        return
    with pytest.raises(UserError, match=f"list.txt.* {sentence}"):
        check_epistasis(filled, SHEET, "samples.tsv", tmp_path)


def test_too_many_sites_for_quads(tmp_path, monkeypatch):
    """By a list before any job, by the panel before any scan."""
    monkeypatch.setattr("popdesic.epistasis.options.MOST_QUAD_SITES", 5)
    monkeypatch.setattr("popdesic.epistasis.scan.MOST_QUAD_SITES", 5)
    (tmp_path / "list.txt").write_text("\n".join(f"rs{k % 6}" for k in range(12)))
    for orders in ([4], [3]):
        filled = fill_config({"epistasis": {"order": orders, "restrict": "list.txt"}})
        if orders == [3]:
            check_epistasis(filled["epistasis"], SHEET, "samples.tsv", tmp_path)
            continue
        with pytest.raises(UserError, match=r"list.txt lists 6 sites, more than the 5 whose quads"):
            check_epistasis(filled["epistasis"], SHEET, "samples.tsv", tmp_path)
    genotypes = random_genotypes(np.random.default_rng(10), 6, 60)
    folder, _ = build(tmp_path, genotypes, np.arange(60) % 2)
    plan = partial(plan_scan, folder, plan_out=tmp_path / "p", max_device_hours=1.0, **PLAN)
    with pytest.raises(UserError, match="6 sites are more than the 5 whose quads"):
        plan(BACKEND, orders=[4])
    monkeypatch.setattr("popdesic.epistasis.scan.MOST_QUAD_SITES", 6)
    small = SimpleNamespace(name="gpu", free_bytes=lambda: 48 * 6**2 - 1)
    with pytest.raises(UserError, match=r"quads of 6 sites take 1.7e-06 GB of tables of their"):
        plan(small, orders=[4])
    assert not (tmp_path / "p").exists()


def test_each_order_has_its_permutations():
    scores = dict.fromkeys((2, 3, 4), "k2")
    for given, want in ((7, (7, 0, 0)), ([7, 3], (7, 3, 0)), ([7, 3, 2], (7, 3, 2))):
        block = fill_config({"epistasis": {"permutations": given}})["epistasis"]
        assert tuple(permutations_run(block, scores).values()) == want
        assert set(permutations_run(block, dict.fromkeys((2, 3, 4), "interaction")).values()) == {0}


def test_a_gpu_is_left_free_by_quads_that_it_cannot_scan():
    found = {
        (score, order): scan_device("auto", score, order)
        for score in ("k2", "interaction")
        for order in (2, 3, 4)
    }
    assert [key for key, device in found.items() if device == "cpu"] == [("interaction", 4)]


def test_more_samples_than_a_scan_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("popdesic.epistasis.phenotype.MAX_SAMPLES", 39)
    filled = fill_config({"epistasis": {"order": [2]}})["epistasis"]
    with pytest.raises(UserError, match="40 samples have a phenotype, more than the 39"):
        check_epistasis(filled, SHEET, "samples.tsv", tmp_path)


def test_one_class_after_quality_control(tmp_path):
    """The sheet has cases and controls, but the remaining samples do not."""
    genotypes = random_genotypes(np.random.default_rng(1), 5, 4)
    with pytest.raises(UserError, match="after quality control only one phenotype class"):
        build(tmp_path, genotypes, ["1"] * 4, absent=("0",))


# --- figures and section ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scanned(tmp_path_factory) -> Path:
    """results/ of a small study with a pair without main effects, scanned with permutations."""
    rng = np.random.default_rng(12)
    folder = tmp_path_factory.mktemp("scanned")
    genotypes = random_genotypes(rng, 10, 300, 0.01)
    case = rng.random(300) < np.array(CROSSING)[3 * (genotypes[2] % 3) + genotypes[7] % 3]
    strata = rng.choice(["x", "y"], 300)
    people = {"age": rng.normal(50, 9, 300), "population": np.where(case, "north", strata)}
    reordered, _ = build(folder, genotypes, case.astype(int), strata=list(strata), **people)
    out = folder / "epistasis"
    plan = PLAN | {"permutations": {2: 39, 3: 0}, "screen": 0}
    plan_scan(reordered, BACKEND, out / "plan.json", orders=[2, 3], max_device_hours=1.0, **plan)
    null = out / "null.order2.tsv"
    best = out / "units/null.order2.0.npz"
    permute_unit(reordered, BACKEND, best, order=2, permutations=39, seed=1, **SCAN)
    merge_permutations([best], null, permutations=39)
    for order in (2, 3):
        unit = out / f"units/order{order}.0.npz"
        scan_unit(reordered, BACKEND, unit, order=order, unit=0, n_units=1, top=30, **SCAN)
        table, tests = out / f"{NAMES[order]}.tsv", count_tests(10, order)
        loci = out / ("loci.tsv" if order == 2 else "loci_triples.tsv")
        scan = FinishedScan([unit], order, "k2", tests, null if order == 2 else None)
        rank_hits(reordered, scan, table, loci_out=loci, top=30, max_per_site=99)
    fit_null_model(
        *(reordered, folder / "samples.tsv", None, out / "null_model.npz", out / "structure.tsv"),
        **{"covariates": ["age"], "pcs": 0, "transform": "none", "seed": 1},
    )
    refit_hits(
        reordered,
        {order: out / f"{NAMES[order]}.tsv" for order in (2, 3)},
        out / "null_model.npz",
        out / "refit.tsv",
    )
    scan_single_sites(reordered, out / "null_model.npz", out / "sites.tsv")
    draw_sites(out / "sites.tsv", folder / "figures")
    draw_all(folder, folder / "figures")
    return folder


def draw_all(results: Path, out: Path, trait: str = "") -> list[str]:
    hits = read_tables(results, [2, 3], trait)
    beds = [results / "cohorts/one/genotypes"]
    zooms = zoom_on_leads(results, hits, beds, trait, min_distance_bp=0)
    with checked():
        return draw_epistasis(results, hits, zooms, out, trait)


def test_jobs_get_time_by_the_plan_once_there_is_one(tmp_path):
    plan = tmp_path / "plan.json"
    assert scan_hours(plan, 2, 1, "auto", 24.0) == 24.0
    counts = '{"tests": 36000000}'
    plan.write_text(f'{{"samples": 5000, "pairs": {counts}, "quads": {counts}}}')
    assert scan_hours(plan, 4, 10, "auto", 24.0) == pytest.approx(1)
    assert scan_hours(plan, 2, 10, "auto", 24.0) == pytest.approx(0.1)
    assert scan_hours(plan, 2, 10, "gpu", 24.0) == pytest.approx(0.0005)
    assert scan_hours(plan, 2, 1e6, "cpu", 24.0) == 24.0


def test_planted_pair_leads_the_tables(scanned):
    hits = read_table(scanned / "epistasis/pairs.tsv")
    assert {hits.id1[0], hits.id2[0]} == {"rs2", "rs7"}
    assert float(hits.p_permutation[0]) == pytest.approx(1 / 40)
    found = sites_of_hits(hits.head(1), read_reordered(scanned / "reorder")[1], 2)
    ids = read_reordered(scanned / "reorder")[1].id
    assert set(ids[found[0]]) == {"rs2", "rs7"}


def test_refit_lists_every_hit(scanned):
    rows = read_table(scanned / "epistasis/refit.tsv")
    assert set(rows.kind) == {"interaction", "lower", "main", "covariate"}
    whole = rows[rows.kind == "interaction"]
    assert list(whole["rank"][whole.scan == "pairs"]) == [str(k) for k in range(1, 31)]
    assert {"age", "stratum=y"} <= set(rows.term)
    assert float(whole.shape_p.iloc[0]) < 1e-4


def test_figures_are_the_same_bytes_again(scanned, tmp_path):
    names = draw_all(scanned, tmp_path)
    assert names == [figure.name for figure in epistasis_figures([2, 3])]
    for name in names:
        for end in ("svg", "png"):
            first = (scanned / f"figures/{name}.{end}").read_bytes()
            assert first == (tmp_path / f"{name}.{end}").read_bytes(), name
    svg = (tmp_path / "penetrance.pairs.svg").read_text("utf-8")
    hits = read_table(scanned / "epistasis/pairs.tsv")
    cases, controls = (np.array(hits[c][0].split(","), int) for c in ("cases", "controls"))
    for a, n in zip(cases, cases + controls, strict=True):
        assert f"n = {n}<" in svg
        assert not n or f">{100 * a / n:.0f} %<" in svg
    assert "rs2" in svg and "rs7" in svg
    assert "p ≤ 0.05 (" in (tmp_path / "hits.pairs.svg").read_text("utf-8")
    assert "p &gt; 0.05 (" in (tmp_path / "hits.triples.svg").read_text("utf-8")
    assert "rs7 (2)" in (tmp_path / "network.pairs.svg").read_text("utf-8")


def test_figures_of_scans_without_hits(scanned, tmp_path):
    """For example, where no partners are permitted."""
    for name in ("reorder", "epistasis"):
        shutil.copytree(scanned / name, tmp_path / name)
    for order in (2, 3):
        table = tmp_path / f"epistasis/{NAMES[order]}.tsv"
        table.write_text(table.read_text().split("\n")[0] + "\n")
    for name in draw_all(tmp_path, tmp_path / "figures"):
        assert "nothing was tested" in (tmp_path / f"figures/{name}.svg").read_text("utf-8")


def test_section_of_the_report(scanned):
    section = epistasis_section(scanned, scanned / "figures", [2, 3], "k2")
    pairs, triples = section["scans"]
    assert pairs["tests"] == 45 and pairs["permutations"] == 39 and pairs["significant"] >= 1
    assert pairs["associated"] >= 1 and pairs["permuted"] >= 1 and triples["permuted"] == 0
    assert len(triples["figures"]) == 5
    assert pairs["rows"][0]["permuted"] == "≤ 1/40" and pairs["rows"][0]["locus"] == "1"
    assert 0 < float(pairs["rows"][0]["association"]) < 1 / 40
    assert {name for name, _ in pairs["loci"][0]["sites"]} == {"rs2", "rs7"}
    assert 1 <= pairs["significant_loci"] <= pairs["significant"] <= pairs["n_loci"] + 30
    assert {name for name, _ in pairs["rows"][0]["sites"]} == {"rs2", "rs7"}
    assert section["controls"] + section["cases"] == 300
    assert len(section["refit"]) == 15
    best = section["scans"][0]["rows"][0]["sites"]
    assert section["refit"][0]["sites"] == " × ".join(name for name, _ in best)
    found = {finding.topic: finding.level for finding in epistasis_findings(section)}
    assert found == {"Epistasis: strata": "warning", "Epistasis: hits in cis": "note"}
    assert epistasis_section(scanned, scanned / "figures", []) is None
    assert epistasis_findings(None) == []


def test_quads_have_figures_and_a_tab(scanned, tmp_path):
    """Their plan, units, table, loci, figures and rows of the page."""
    shutil.copytree(scanned / "reorder", tmp_path / "reorder")
    reordered, out = tmp_path / "reorder", tmp_path / "epistasis"
    plan = PLAN | {"permutations": {4: 0}, "screen": 0}
    lines = plan_scan(
        reordered, BACKEND, out / "plan.json", orders=[4], max_device_hours=1.0, **plan
    )
    assert lines["quads"].startswith("210 tests, 1 scans")
    assert not any(name.startswith("forecast") for name in lines)
    unit = out / "units/order4.0.npz"
    scan_unit(reordered, BACKEND, unit, order=4, unit=0, n_units=1, top=30, **SCAN)
    scan = FinishedScan([unit], 4, "k2", 210)
    rank_hits(reordered, scan, out / "quads.tsv", loci_out=out / "loci_quads.tsv", top=15)
    hits = read_tables(tmp_path, [4])
    assert {"rs2", "rs7"} < set(hits[4][[f"id{k}" for k in range(1, 5)]].iloc[0])
    beds = [scanned / "cohorts/one/genotypes"]
    zooms = zoom_on_leads(tmp_path, hits, beds, min_distance_bp=0)
    with checked():
        names = draw_epistasis(tmp_path, hits, zooms, tmp_path / "figures")
    assert names == [figure.name for figure in epistasis_figures([4])]
    svg = (tmp_path / "figures/penetrance.quads.svg").read_text("utf-8")
    controls, cases = (np.array(hits[4][c][0].split(","), int) for c in ("controls", "cases"))
    shown = [f"n = {n}<" for n in controls + cases]
    assert len(shown) == 81 and all(svg.count(text) >= shown.count(text) for text in set(shown))
    axes = draw_penetrance(hits[4], 4, 0.5).axes[0]  # sites 1 and 2 downwards, 3 and 4 across
    best, rows = hits[4].iloc[0], [text.get_text() for text in axes.get_yticklabels()]
    assert axes.get_ylabel() == f"{best.id1}, {best.id2}"
    assert axes.get_xlabel() == f"{best.id3}, {best.id4}"
    assert rows[5] == f"{best.ref1}/{best.alt1} {best.alt2}/{best.alt2}"
    (cell,) = (text for text in axes.texts if text.get_position() == (7, 5))
    assert cell.get_text().endswith(f"n = {(controls + cases)[5 * 9 + 7]}")
    section = epistasis_section(tmp_path, tmp_path / "figures", [4], "k2")
    (quads,) = section["scans"]
    assert quads["tests"] == 210 and len(quads["rows"][0]["sites"]) == 4 and quads["loci"]
    assert len(quads["figures"]) == 5 and section["screen"] is None


def test_numbers_of_the_page_are_rounded_and_limits_said_in_words():
    assert [p_text(p, 20) for p in (1 / 21, 2 / 21, 1.0, np.nan)] == ["≤ 1/21", "0.095", "1", "NA"]
    assert p_text(3.14159e-12) == "3.1e-12" and p_text(1 / 21) == "0.048"
    shown = [odds_text(v) for v in ("1.23456", "0.01234", "inf", "1e8", "1e-9", "NA")]
    want = ["1.23", "0.012", "no upper limit", "no upper limit", "no lower limit", "NA"]
    assert shown == want


def test_the_page_has_a_section_for_each_phenotype(scanned, tmp_path):
    """Two phenotypes have folders, figures and headings of their own."""
    outcome, distances = make_results(tmp_path, {"one": [f"s{k}" for k in range(5)]}, ["one"])
    figures, traits = outcome.folder / "figures", ["gout", "asthma"]
    shutil.copytree(scanned / "cohorts", outcome.folder / "cohorts", dirs_exist_ok=True)
    for trait in traits:
        for name in ("reorder", "epistasis"):
            shutil.copytree(scanned / name, outcome.folder / name / trait)
        draw_sites(outcome.folder / "epistasis" / trait / "sites.tsv", figures, trait)
        draw_all(outcome.folder, figures, trait)
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(EMPTY)
    out = tmp_path / "report.html"
    given = {"epistasis": {"order": [2, 3], "phenotypes": traits}}
    write_report(outcome, distances, figures, fill_config(given), out)
    page = out.read_text("utf-8")
    for trait in traits:
        assert page.count(f'<section id="epistasis-{trait}"') == 1
        assert f'<a href="#epistasis-{trait}">Epistasis: {trait}</a>' in page
        for figure in [*epistasis_figures([2, 3], trait), *site_scan_figures([2, 3], trait)]:
            assert page.count(f'id="fig-{figure.name}"') == 1
        assert f"<code>results/epistasis/{trait}</code>" in page
        assert f"Epistasis: {trait}: strata." in page and f"epistasis/{trait}/loci.tsv" in page
    assert 'id="epistasis"' not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_p_of_the_qq_figure_is_weighted_by_the_tests_of_the_hit():
    lr_p, tests = np.array([1e-6, 1e-3, 0.01]), np.array([111.1, 2.0, 40.0])
    hits = pd.DataFrame({"lr_p": lr_p, "tests": tests, "cis": ["no", "yes", "no"]}).astype(str)
    (axes,) = draw_qq(hits, 100).axes
    points = axes.collections[-1].get_offsets()
    np.testing.assert_allclose(points[:, 1], -np.log10(np.sort(lr_p * tests / 100)))
    (axes,) = draw_qq(hits.drop(columns="tests"), 100).axes
    np.testing.assert_allclose(axes.collections[-1].get_offsets()[:, 1], -np.log10(lr_p))


def test_the_page_has_the_section_where_scans_were_asked_for(scanned, tmp_path):
    outcome, distances = make_results(tmp_path, {"one": [f"s{k}" for k in range(5)]}, ["one"])
    figures = outcome.folder / "figures"
    for name in ("reorder", "epistasis", "figures"):
        shutil.copytree(scanned / name, outcome.folder / name)
    rows = {"scan": "pairs", "locus": 1, "id1": "rs2", "chrom1": "1", "pos1": 5, "id2": "rs7"}
    rows |= {"chrom2": "1", "pos2": 9, "p_discovery": 0.01234, "n_controls": 1500, "n_cases": 80}
    rows |= {"p_replication": 0.0456, "cohorts": 2, "effect": 0.875, "se": 0.25, "p_effect": 0.0321}
    rows |= {"p_q": np.nan}
    write_table(outcome.folder / "epistasis/replication.tsv", pd.DataFrame([rows]))
    table = outcome.folder / "epistasis/pairs.tsv"
    table.write_text(table.read_text().replace("rs2\t", "<b>rs2</b>\t"))
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(EMPTY)
    out = tmp_path / "report.html"
    config = fill_config({"epistasis": {"order": [2, 3], "replication": "half"}})
    write_report(outcome, distances, figures, config, out)
    page = out.read_text("utf-8")
    assert '<section id="epistasis"' in page and 'href="#epistasis"' in page
    for name in [figure.name for figure in epistasis_figures([2, 3])]:
        assert page.count(f'id="fig-{name}"') == 1
    assert "0.88 ± 0.25" in page and ">0.032</td>" in page
    assert "&lt;b&gt;rs2&lt;/b&gt;" in page and "<b>rs2" not in page
    assert "Epistasis: strata." in page and "Phenotype and population are associated" in page
    for name in ("manhattan", "qq_sites"):
        assert page.count(f'id="fig-{name}"') == 1
    assert "Main effects" in page and "λ =" in page
    assert page.index("Loci of the best pairs (") < page.index("Best pairs (")
    assert "Replication in the other half" in page and "80 / 1\u202f500" in page
    assert "0.012" in page and "0.046" in page
    assert "The samples were divided at random: the" in " ".join(page.split())
    assert "Logistic refit" in page and "Best triples of the screen" not in page
    said = " ".join(page.split())
    assert "45 pairs were tested (13 500 pairs × samples; the logs of" in said
    write_report(outcome, distances, figures, fill_config({}), out)
    without = out.read_text("utf-8")
    assert "minus half the likelihood-ratio statistic" in page
    assert "It is p times the tests of the hit" in page
    assert (
        '<th scope="col" class="n more">Tests</th>' in page and '<td class="n more">45</td>' in page
    )
    given = {"epistasis": {"order": [2, 3], "score": "k2", "replication": "newcomers"}}
    write_report(outcome, distances, figures, fill_config(given), out)
    other = out.read_text("utf-8")
    assert "The score measures association" in other and "likelihood-ratio statistic" not in other
    assert "p times the tests" not in other
    assert "Replication in the newcomers" in other and "divided at random" not in other
    assert "Replication in" not in without
    assert 'id="epistasis"' not in without and "fig-hits.pairs" not in without
    assert "#epistasis" not in without and "Epistasis:" not in without
