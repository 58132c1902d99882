"""Tests of hits with covariates and relatives; calibration in scenes without interaction."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scenes.interactions.scenes import draw_study, related

import popdesic
from popdesic.epistasis.adjusted import MOST_OFFSETS, centred_basis, fit_offsets, offset_classes
from popdesic.epistasis.hit_test import hit_test
from popdesic.epistasis.importance_sampling import fit_table_null, tail_p
from popdesic.epistasis.phantoms import conditional_test
from popdesic.epistasis.relatedness import (
    Relatives,
    kin_warnings,
    no_relatives,
    pedigree_pairs,
    related_pairs,
    score_variance,
)


def crossing(rng, n: int, strength: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Two sites and cases by their exclusive or, of log-odds -strength / 2 and strength / 2."""
    genotypes = rng.binomial(2, 0.4, (2, n)).astype(np.int8)
    odds = strength * (((genotypes == 1).sum(axis=0) == 1) - 0.5)
    return genotypes, rng.random(n) < 1 / (1 + np.exp(-odds))


def test_p_is_multiplied_by_the_number_of_tests():
    genotypes, case = crossing(np.random.default_rng(1), 400, 0.7)
    found = [hit_test(case, tests).p_interaction(genotypes) for tests in (1, 10, 10**6)]
    assert found[0] < 0.01 and found[1] == pytest.approx(10 * found[0])
    assert found[2] == 1.0
    swapped = hit_test(case, 10).p_interaction(genotypes[::-1])
    assert swapped == pytest.approx(found[1], rel=0.2), "draws differ, sites do not"


def test_main_effects_are_association_and_no_interaction():
    rng = np.random.default_rng(2)
    genotypes = rng.binomial(2, 0.4, (2, 1500)).astype(np.int8)
    case = rng.random(1500) < 1 / (1 + np.exp(1 - genotypes.sum(axis=0)))
    test = hit_test(case, 1)
    assert test.p_association(genotypes) < 1e-20 < 1e-2 < test.p_interaction(genotypes)


@pytest.mark.parametrize("columns", ["stratum", "numbers"])
def test_an_interaction_that_covariates_explain_disappears(columns):
    """Heterozygotes of both sites are of another group, and so are cases."""
    rng = np.random.default_rng(3)
    group = rng.random(3000) < 0.5
    genotypes = rng.binomial(2, 0.3, (2, 3000)).astype(np.int8)
    genotypes[:, group & (rng.random(3000) < 0.6)] = 1
    case = rng.random(3000) < np.where(group, 0.8, 0.2)
    design = group[:, None].astype(float)
    if columns == "numbers":
        design = np.column_stack([design[:, 0] + rng.normal(0, 0.05, 3000), rng.normal(size=3000)])
    assert hit_test(case, 1).p_interaction(genotypes) < 1e-6
    assert hit_test(case, 1, design).p_interaction(genotypes) > 0.01
    assert hit_test(case, 1, design).p_association(genotypes) > 0.01


def test_a_real_interaction_survives_covariates_and_unknown_ones_leave_people_out():
    rng = np.random.default_rng(4)
    genotypes, case = crossing(rng, 900)
    age = rng.normal(50, 9, (900, 1))
    assert hit_test(case, 1000, age).p_interaction(genotypes) < 1e-6
    unknown = np.where(np.arange(900)[:, None] % 3, np.nan, age)
    some = np.arange(900) % 3 == 0
    alone = hit_test(case[some], 1000, age[some]).p_interaction(genotypes[:, some])
    assert hit_test(case, 1000, unknown).p_interaction(genotypes) == alone
    missing = np.where(some, genotypes, np.int8(-1))
    assert hit_test(case, 1000, age).p_interaction(missing) == pytest.approx(alone, rel=0.5)
    assert hit_test(case, 1, np.full((900, 1), np.nan)).p_interaction(genotypes) == 1.0
    confounded = case[:, None].astype(float)
    assert hit_test(case, 1, confounded).p_interaction(genotypes) > 0.01, "nothing left to explain"


def test_offsets_are_those_of_logistic_regression():
    from test_epistasis import newton, one_hot

    rng = np.random.default_rng(5)
    cell = rng.integers(0, 9, 800)
    design = rng.normal(size=(800, 2))
    case = rng.random(800) < 1 / (1 + np.exp(-design[:, 0] - 0.2 * cell + 1))
    terms = np.eye(9)
    beta, _ = newton(np.column_stack([one_hot(cell), design]), case.astype(float))
    want = design @ beta[9:]
    collinear = np.column_stack([design, design.sum(axis=1), np.ones(800)])
    for columns in (design, collinear):
        found = fit_offsets(case, centred_basis(columns), cell, terms)
        np.testing.assert_allclose(found - found.mean(), want - want.mean(), atol=1e-5)
    which, values = offset_classes(found)
    assert len(values) == MOST_OFFSETS and np.bincount(which).min() >= 95
    assert abs(values[which] - found).max() < 2
    which, values = offset_classes(np.repeat([0.5, -1.0], 40))
    assert values.tolist() == [-1.0, 0.5] and which[0] == 1


def test_people_who_are_counted_twice_are_no_more_evidence():
    """Duplicates known as such have the p of one copy; unknown ones the square of it, about."""
    rng = np.random.default_rng(6)
    genotypes, case = crossing(rng, 300, 1.5)
    once = hit_test(case, 1).p_interaction(genotypes)
    twice, cases = np.repeat(genotypes, 2, axis=1), np.repeat(case, 2)
    pairs = Relatives(np.arange(0, 600, 2), np.arange(1, 600, 2), np.full(300, 0.5))
    test = hit_test(cases, 1, relatives=pairs)
    assert test.risk == pytest.approx(1, abs=0.01)
    assert once < 1e-3 and 0.5 < test.p_interaction(twice) / once < 2
    assert hit_test(cases, 1).p_interaction(twice) < once / 50


def test_variance_of_scores_is_that_of_the_whole_matrix():
    """Person by person; never below a tenth in any direction."""
    rng = np.random.default_rng(7)
    deviation = rng.uniform(0.2, 0.5, 60)
    scores = rng.normal(size=(60, 4))
    weighted = scores * deviation[:, None]
    scores = scores @ np.linalg.inv(np.linalg.cholesky(weighted.T @ weighted)).T
    pairs = Relatives(np.arange(0, 60, 3), np.arange(1, 60, 3), rng.uniform(0.05, 0.25, 20))
    shared = np.eye(60)
    for i, j, kinship in zip(pairs.first, pairs.second, pairs.kinship, strict=True):
        shared[i, j] = shared[j, i] = 2 * 0.6 * kinship
    weighted = scores * deviation[:, None]
    want = weighted.T @ shared @ weighted
    np.testing.assert_allclose(score_variance(pairs, scores, deviation, 0.6), want, atol=1e-12)
    np.testing.assert_allclose(score_variance(no_relatives(), scores, deviation, 0.6), np.eye(4))
    opposite = Relatives(np.array([0]), np.array([1]), np.array([0.5]))
    apart = score_variance(opposite, np.array([[1.0], [-1.0]]), np.array([0.9, 0.9]), 1.0)
    assert apart[0, 0] == pytest.approx(0.1)


def test_tails_among_relatives_are_those_of_weighted_sums():
    """Of drawn sums of chi-squares, as large tables have them; the mean alone says too little."""
    rng = np.random.default_rng(8)
    cells = rng.multinomial(60_000, np.full(9, 1 / 9))
    cases = rng.binomial(cells, 0.5)
    null = fit_table_null(np.stack([cells - cases, cases]).reshape(2, 9))
    values = np.array([0.6, 0.8, 1.0, 2.0])
    ways = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    variance = (ways * values) @ ways.T
    drawn = rng.chisquare(1, (1_000_000, 4)) @ values
    for x in (14.0, 22.0, 30.0):
        want = (drawn > x).mean()
        found = tail_p(null, x / 2, 20_000, variance=variance)
        assert found == pytest.approx(want, rel=0.12), x
        alone = tail_p(null, x / 2, 4000, variance=np.eye(4) * values.mean())
        assert alone < 0.75 * want
        double = tail_p(null, x, 20_000, variance=2 * variance)
        assert double == pytest.approx(found, rel=0.1), "twice the variance, twice the statistic"


def test_kinship_of_a_pedigree():
    rows = [("g1", "NA", "NA"), ("g2", "", "0"), ("a", "g1", "g2"), ("b", "g1", "g2")]
    rows += [("c", "a", "s1"), ("d", "b", "s2"), ("h", "a", "s3"), ("i", "c", "h")]
    rows = [*rows[::-1], ("s1", "NA", "NA"), ("s2", "NA", "NA"), ("s3", "NA", "NA")]
    sheet = pd.DataFrame(rows, columns=["sample", "father", "mother"])
    found = pedigree_pairs(sheet)
    kinship = {frozenset(row[:2]): row[2] for row in found.itertuples(index=False)}
    want = {"a b": 1 / 4, "a g1": 1 / 4, "c h": 1 / 8, "c d": 1 / 16, "c g1": 1 / 8, "b c": 1 / 8}
    want |= {"i c": (1 / 2 + 1 / 8) / 2, "i a": 1 / 4, "i d": 1 / 16, "h s3": 1 / 4}
    for pair, value in want.items():
        assert kinship[frozenset(pair.split())] == pytest.approx(value), pair
    assert not {frozenset(("g1", "g2")), frozenset(("a", "s1")), frozenset(("d", "s1"))} & set(
        kinship
    )
    assert len(pedigree_pairs(sheet.drop(columns=["father", "mother"]))) == 0
    both = related_pairs(["c", "d", "x"], pd.concat([found.assign(kinship=0.2), found]))
    assert len(both) == 1 and both.kinship[0] == 0.2, "the first table counts"


def test_crosses_get_a_sentence_and_families_another():
    pairs = np.array(list(itertools.combinations(range(50), 2)))
    cross = Relatives(*pairs.T, np.full(len(pairs), 0.2))
    (said,) = kin_warnings(cross, 60, permutations=True)
    assert said.startswith("1225 pairs of relatives among 60 samples: 50 samples form one family")
    assert "permutation p-values do not hold" in said
    assert "permutation" not in kin_warnings(cross, 60, permutations=False)[0]
    siblings = Relatives(np.array([0, 4]), np.array([1, 5]), np.array([0.25, 0.25]))
    assert "permuted within families" in kin_warnings(siblings, 60, permutations=True)[0]
    assert kin_warnings(siblings, 60, permutations=False) == []
    assert kin_warnings(siblings.among(np.zeros(60, bool)), 60, permutations=True) == []


def test_found_by_chance_among_relatives_no_more_often_than_stated():
    """Best pairs of 25 studies of large sibships: at most 4 at 5 %, many if nobody is told."""
    found = {True: 0, False: 0}
    for seed in range(25):
        study = related(np.random.default_rng([9, seed]), parents=False, children=20)
        kinship = np.zeros((len(study.case),) * 2)
        first, second = study.pairs[:, :2].astype(int).T
        kinship[first, second] = study.pairs[:, 2]
        for known in found:
            hits = popdesic.scan(
                study.genotypes,
                study.case,
                top=3,
                kinship=kinship if known else None,
                device="cpu",
                threads=1,
            )
            found[known] += hits.p_interaction.min() <= 0.05
    assert found[True] <= 4 and found[False] >= 10, found


def test_rough_draws_say_the_same_within_a_factor_of_two():
    genotypes, case = crossing(np.random.default_rng(1), 400, 0.9)
    age = np.random.default_rng(2).normal(size=(400, 1))
    test = hit_test(case, 1, age)
    whole = test.p_interaction(genotypes)
    assert 1e-6 < whole < 0.05
    rough = test.p_interaction(genotypes, rough=True)
    assert rough != whole and 0.5 < rough / whole < 2


def test_columns_of_the_public_scan():
    study = draw_study("one main effect", 1)
    design = np.random.default_rng(1).normal(size=(len(study.case), 2))
    hits = popdesic.scan(study.genotypes, study.case, top=3, covariates=design, device="cpu")
    assert list(hits)[:4] == ["rank", "score", "tests", "p_interaction"]
    assert "p_permutation" not in hits
    columns = [f"site{k}" for k in (1, 2)]
    test = hit_test(study.case, math.comb(60, 2), design)
    for row in hits.itertuples():
        genotypes = study.genotypes[:, [getattr(row, column) for column in columns]].T
        assert 0 < row.p_interaction <= 1
        assert row.p_association == pytest.approx(test.p_association(genotypes), rel=0.3)
    with pytest.raises(ValueError, match="covariates has the shape"):
        popdesic.scan(study.genotypes, study.case, covariates=design[:-1], device="cpu")
    with pytest.raises(ValueError, match="kinship has the shape"):
        popdesic.scan(study.genotypes, study.case, kinship=np.eye(3), device="cpu")


def test_siblings_of_absent_parents_are_related_and_the_parents_are_no_rows():
    sheet = pd.DataFrame({"sample": ["a", "b", "c"], "father": ["x"] * 2 + ["a"], "mother": "y"})
    found = pedigree_pairs(sheet)
    values = {(row.sample_a, row.sample_b): row.kinship for row in found.itertuples()}
    assert values == {("a", "b"): 0.25, ("a", "c"): 0.375, ("b", "c"): 0.25}


def test_the_public_scan_tests_hits_given_the_site_that_explains_them():
    """Two imperfect tags of a recessive locus look like an interaction; a real one stays."""
    rng = np.random.default_rng(11)
    genotypes = rng.binomial(2, 0.4, (6000, 20)).astype(np.int8)
    causal, crossed = genotypes[:, 0], (genotypes[:, 5] == 1) ^ (genotypes[:, 6] == 1)
    for tag in (1, 2):
        genotypes[:, tag] = np.where(rng.random(6000) < 0.3, genotypes[:, tag], causal)
    case = rng.random(6000) < np.where(causal == 2, 0.95, 0.02 + 0.3 * crossed)
    hits = popdesic.scan(genotypes, case, top=20, max_r2=1, device="cpu")
    tags = hits[(hits.site1 == 1) & (hits.site2 == 2)].iloc[0]
    assert tags.p_interaction < 0.01 and tags.p_conditional > 0.5
    real = hits[(hits.site1 == 5) & (hits.site2 == 6)].iloc[0]
    given = genotypes[:, [0]].T
    p, _ = conditional_test(
        genotypes[:, [5, 6]].T, given[:0], case, np.zeros((6000, 0)), leading=given
    )
    assert real.p_conditional == max(real.p_interaction, p * real.tests) < 0.05
    assert (hits.p_conditional.isna() == (hits.p_interaction > 0.05)).all()
    assert "p_conditional" not in popdesic.scan(genotypes, case, score="k2", top=3, device="cpu")
