"""Pairs in cis: marked, and tested given the best site of their region."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from popdesic.epistasis import phantoms
from popdesic.epistasis.interaction import interaction_test
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.phantoms import (
    conditional_test,
    fit_logistic,
    in_cis,
    leading_sites,
    mark_cis,
)
from popdesic.epistasis.priority import strength_of
from popdesic.epistasis.relatedness import Relatives
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_data import Hits
from popdesic.epistasis.significance import hit_tables
from popdesic.epistasis.single_sites import SiteTests

N = 3000
NONE = np.zeros((N, 0))


def phantom(rng, odds=4.0):
    """Three typed sites and cases, controls first: sites 0 and 1 tag an untyped one together.

    Haplotypes are 00, 01, 10 and 11 at the first two sites; all of 11 and few others carry the
    causal allele, and so does most of the third site's.
    """
    two = rng.random((2, 2 * N)) < 0.4
    causal = (two.all(axis=0)) & (rng.random(2 * N) < 0.95)
    third = np.where(rng.random(2 * N) < 0.97, causal, rng.random(2 * N) < 0.2)
    haplotypes = np.stack([*two, third]).astype(np.int8)
    genotypes = haplotypes[:, ::2] + haplotypes[:, 1::2]
    dose = causal[::2].astype(int) + causal[1::2]
    logit = np.log(odds) * (dose - dose.mean())
    case = rng.random(N) < 1 / (1 + np.exp(-logit))
    order = np.argsort(case, kind="stable")
    return np.ascontiguousarray(genotypes[:, order]), case[order]


def test_conditioning_removes_a_phantom_and_keeps_an_interaction():
    rng = np.random.default_rng(1)
    genotypes, case = phantom(rng)
    n_controls = int((~case).sum())
    raw = interaction_test(hit_tables(genotypes[:2], n_controls))[2]
    noise = rng.binomial(2, 0.3, (20, N)).astype(np.int8)
    p, given = conditional_test(genotypes[:2], np.concatenate([noise, genotypes[2:]]), case, NONE)
    assert raw < 1e-6 and p > 1e-3 and given[0] == 20
    # A real interaction of two sites, beside a site with an effect of its own.
    a, b, c = rng.binomial(2, 0.4, (3, N)).astype(np.int8)
    logit = 1.2 * ((a == 1) ^ (b == 1)) + 0.8 * c
    case = rng.random(N) < 1 / (1 + np.exp(logit.mean() - logit))
    p, given = conditional_test(np.stack([a, b]), np.stack([*noise[:5], c]), case, NONE)
    assert p < 1e-8 and given[0] == 5


@pytest.mark.parametrize("order", [2, 3])
def test_the_conditional_test_is_that_of_statsmodels(order):
    rng = np.random.default_rng(2)
    n = 700
    genotypes = rng.binomial(2, 0.45, (order, n)).astype(np.int8)
    genotypes[0, :20] = -1
    region = rng.binomial(2, 0.4, (1, n)).astype(np.int8)
    covariates = rng.normal(size=(n, 2))
    covariates[-5:, 1] = np.nan
    logit = 0.5 * covariates[:, 0] + 0.4 * region[0] + 0.3 * genotypes[0]
    case = rng.random(n) < 1 / (1 + np.exp(np.nanmean(logit) - logit))
    used = slice(20, n - 5)
    frame = pd.DataFrame(genotypes.T, columns=list("abc")[:order]).assign(t=region[0], y=case)
    frame = frame.assign(u=covariates[:, 0], v=covariates[:, 1]).iloc[used]
    frame["y"] = frame.y.astype(int)
    lower = "C(a) + C(b)" if order == 2 else "C(a)*C(b) + C(a)*C(c) + C(b)*C(c)"
    whole = "C(a)*C(b)" if order == 2 else "C(a)*C(b)*C(c)"
    chi2 = [
        GLM.from_formula(f"y ~ {terms} + C(t) + u + v", frame, family=Binomial()).fit(tol=1e-12).llf
        for terms in (lower, whole)
    ]
    want = stats.chi2.sf(2 * (chi2[1] - chi2[0]), 4 if order == 2 else 8)
    p, given = conditional_test(genotypes, region, case, covariates)
    assert given == [0] and p == pytest.approx(want, rel=1e-5)


def test_numbers_are_tested_in_linear_models():
    rng = np.random.default_rng(6)
    a, b, c = genotypes = rng.binomial(2, 0.4, (3, 400)).astype(np.int8)
    y = rng.normal(size=400) + 0.9 * c + 0.3 * a
    noise = rng.binomial(2, 0.4, (30, 400)).astype(np.int8)
    p, given = conditional_test(genotypes[:2], np.concatenate([noise, [c]]), y, np.zeros((400, 0)))
    frame = pd.DataFrame({"y": y, "a": a, "b": b, "c": c})
    fits = [ols(f"y ~ {terms} + C(c)", frame).fit().llf for terms in ("C(a) + C(b)", "C(a)*C(b)")]
    assert given == [30]
    assert p == pytest.approx(stats.chi2.sf(2 * (fits[1] - fits[0]), 4), rel=1e-6)


def scanned(genotypes, case, chrom):
    """Planes, sites, rows of the hits' sites by number, and strength of main effects."""
    n_controls, n = int((~case).sum()), len(genotypes)
    words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(n), n_controls)
    place = {"chrom": chrom, "pos": np.arange(n) * 10_000_000}
    sites = sites.join(pd.DataFrame(place), on="rank")
    null = fit_null(case.astype(float), np.empty((len(case), 0)), "logistic")
    strength = strength_of(SiteTests(null).test(genotypes[sites["rank"]]))
    return words, sites, np.argsort(sites["rank"]).to_numpy(), strength


def test_one_untyped_site_makes_no_pair_on_two_chromosomes():
    """Given the best site of the genome; a true pair on two chromosomes stays."""
    rng = np.random.default_rng(1)
    genotypes, case = phantom(rng)
    noise = rng.binomial(2, 0.4, (20, N)).astype(np.int8)
    genotypes = np.concatenate([genotypes, noise])
    sizes = int((~case).sum()), int(case.sum())
    chrom = [str(k) for k in range(len(genotypes))]
    words, sites, at, strength = scanned(genotypes, case, chrom)
    assert sites["rank"].iloc[np.argmax(strength)] == 2
    members = np.sort(at[[[0, 1], [0, 1], [1, 7]]], axis=1)
    hits = Hits(np.zeros(3, np.int64), members)
    table = pd.DataFrame({"lr_p": 1e-9, "p_interaction": [1e-6, 0.01, 0.2], "locus": [1, 1, 2]})
    rules = {"tests": 300, "strength": strength}
    marked = mark_cis(table, hits, words, sites, *sizes, **rules)
    assert marked.cis.tolist() == ["no"] * 3
    assert marked.p_conditional[0] > 0.05 and np.isnan(marked.p_conditional[2])
    assert marked.p_conditional[1] == marked.p_conditional[0], "one signal"
    alone = mark_cis(table, hits, words, sites, *sizes, tests=300)
    assert alone.p_conditional.isna().all(), "in trans, nothing was given before"
    # A true pair of these sites, beside a third one with an effect of its own.
    a, b, c = genotypes[[3, 4, 5]].astype(int)
    logit = 1.5 * ((a == 1) ^ (b == 1)) + 0.8 * c
    case = rng.random(N) < 1 / (1 + np.exp(logit.mean() - logit))
    order = np.argsort(case, kind="stable")
    words, sites, at, strength = scanned(genotypes[:, order], case[order], chrom)
    hits = Hits(np.zeros(1, np.int64), np.sort(at[[[3, 4]]], axis=1))
    sizes = int((~case).sum()), int(case.sum())
    marked = mark_cis(table[:1], hits, words, sites, *sizes, tests=300, strength=strength)
    assert marked.p_conditional[0] < 1e-5


def test_leading_sites_are_those_of_effects_and_end_where_nothing_is_left():
    rng = np.random.default_rng(6)
    genotypes = rng.binomial(2, 0.4, (30, 1000)).astype(np.int8)
    genotypes[8, :30] = -1
    logit = 1.2 * genotypes[8] + 0.9 * genotypes[21]
    case = rng.random(1000) < 1 / (1 + np.exp(logit.mean() - logit))
    strength = np.zeros(30)
    found = leading_sites(lambda rows: genotypes[rows], strength, case, np.zeros((1000, 0)))
    assert found.tolist() == [8, 21]
    known = genotypes[8].astype(float)[:, None]
    assert leading_sites(lambda rows: genotypes[rows], strength, case, known).tolist() == [21]
    certain = genotypes[3] == 2
    found = leading_sites(lambda rows: genotypes[rows], strength, certain, np.zeros((1000, 0)))
    assert found.tolist() == [3], "nothing is open"
    few = np.arange(1000) < 15
    found = leading_sites(lambda rows: genotypes[rows], strength, few, np.zeros((1000, 0)))
    assert found.tolist() == [], "15 cases are too few for the columns of a site"


def test_the_conditional_test_counts_duplicates_once():
    rng = np.random.default_rng(7)
    once = rng.binomial(2, 0.4, (2, 600)).astype(np.int8)
    logit = 0.9 * ((once[0] == 1) ^ (once[1] == 1))
    case = rng.random(600) < 1 / (1 + np.exp(logit.mean() - logit))
    region, none = np.zeros((0, 600), np.int8), np.zeros((600, 0))
    p, _ = conditional_test(once, region, case, none)
    twice = np.repeat(once, 2, axis=1), np.repeat(region, 2, axis=1), np.repeat(case, 2)
    pairs = Relatives(np.arange(0, 1200, 2), np.arange(1, 1200, 2), np.full(600, 0.5))
    both = np.zeros((1200, 0))
    assert conditional_test(*twice, both)[0] < p**1.5
    assert conditional_test(*twice, both, relatives=pairs)[0] == pytest.approx(p, rel=0.2)


def test_newton_ends_where_a_combination_has_only_cases():
    x = np.array([0.0, 0, 0, 1, 1, 1])
    design = np.stack([np.ones(6), x], axis=1)
    value, residuals, _ = fit_logistic(design, np.array([0.0, 1, 0, 1, 1, 1]))
    assert value == pytest.approx(np.log(1 / 3) + 2 * np.log(2 / 3), abs=1e-6)
    assert residuals[3:] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("chrom", "pos", "mixed", "expected"),
    [
        (["1", "1"], [5, 5 + phantoms.CIS_BP - 1], 0.0, True),
        (["1", "1"], [5, 5 + phantoms.CIS_BP], 0.0, False),
        (["1", "2"], [5, 6], 0.0, False),
        (["1", "2"], [5, 6], 0.5, True),  # r2 0.25
    ],
)
def test_which_hits_are_in_cis(chrom, pos, mixed, expected):
    rng = np.random.default_rng(3)
    a, b = rng.binomial(2, 0.4, (2, N)).astype(np.int8)
    b = np.where(rng.random(N) < mixed, a, b)
    a[:9] = -1
    assert in_cis(np.array(chrom), np.array(pos), np.stack([a, b])) == expected


def test_correlations_of_few_people_are_chance():
    rng = np.random.default_rng(8)
    pairs = rng.binomial(2, 0.4, (500, 2, 100)).astype(np.int8)
    r2 = np.array([np.corrcoef(*pair)[0, 1] ** 2 for pair in pairs])
    found = [in_cis(np.array(["1", "2"]), np.array([1, 1]), pair) for pair in pairs]
    assert (r2 > phantoms.CIS_R2).mean() > 0.1 and np.mean(found) < 0.01


def test_hits_of_a_table_are_marked():
    rng = np.random.default_rng(4)
    genotypes, case = phantom(rng)
    genotypes = np.concatenate([genotypes, rng.binomial(2, 0.4, (2, N)).astype(np.int8)])
    n_controls = int((~case).sum())
    words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(5), n_controls)
    place = {"chrom": ["1", "1", "1", "2", "2"], "pos": [1000, 9000, 5000, 10, 30_000_000]}
    sites = sites.join(pd.DataFrame(place), on="rank")
    at = np.argsort(sites["rank"])
    hits = Hits(np.zeros(3, np.int64), np.sort(at.to_numpy()[[[0, 1], [0, 3], [3, 4]]], axis=1))
    table = pd.DataFrame({"lr_p": [1e-12, 1e-12, 1e-12], "p_interaction": [0.03, 0.04, 0.9]})
    marked = mark_cis(table, hits, words, sites, n_controls, N - n_controls, tests=10)
    assert marked.cis.tolist() == ["yes", "no", "no"]
    assert marked.p_conditional[0] > 0.03 and marked.p_conditional[1:].isna().all()
    # Never below the p of the scan.
    given = mark_cis(
        table.assign(p_interaction=[0.05, 1, 1]), hits, words, sites.assign(pos=0), n_controls,
        N - n_controls, tests=0,
    )  # fmt: skip
    assert given.p_conditional[0] == 0.05
