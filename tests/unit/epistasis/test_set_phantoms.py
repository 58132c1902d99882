"""Sets near an untyped causal site: given the region, and among draws of untyped sites."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from popdesic.core.errors import UserError
from popdesic.epistasis import set_phantoms
from popdesic.epistasis.set_phantoms import conditional_p, explain_set, region_of
from popdesic.epistasis.sets import prepare_sets, set_p_values

PLACES = np.arange(2), None


def haplotypes(seed: int, n: int, share: float, many: int):
    """A set of two sites, and others whose allele lies on a share of haplotypes with both alleles.

    int8 (n, 2) and (n, many); the last one is as the others.
    """
    rng = np.random.default_rng(seed)
    two = rng.random((2, 2 * n)) < 0.45
    others = two.all(axis=0) & (rng.random((many, 2 * n)) < share)
    both = [np.asarray(a[:, ::2], np.int8) + a[:, 1::2] for a in (two, others)]
    return rng, both[0].T, both[1].T


def drawn_tests(rng, signal: np.ndarray, binary: bool = False):
    if binary:
        odds = signal - signal.mean()
        response = (rng.random(len(signal)) < 1 / (1 + np.exp(-odds))).astype(float)
    else:
        response = signal + rng.normal(size=len(signal))
    kind = "logistic" if binary else "linear"
    return prepare_sets(response, np.zeros((len(signal), 0)), kind, "none", True)


@pytest.mark.parametrize("binary", [False, True])
def test_a_typed_neighbour_explains_a_phantom_and_no_interaction(binary):
    rng, genotypes, region = haplotypes(1, 1200, 0.95, 1)
    noise = rng.binomial(2, 0.3, (1200, 6)).astype(np.int8)
    region = np.column_stack([noise, region])
    phantom = drawn_tests(rng, (1.2 + 2 * binary) * region[:, 6], binary)
    assert set_p_values(phantom.scores(genotypes, *PLACES))["p"] < 1e-4
    p, given = conditional_p(phantom, genotypes, PLACES, region)
    assert given[0] == 6 and p > 0.01
    genotypes = rng.binomial(2, 0.45, (1200, 2)).astype(np.int8)
    real = drawn_tests(rng, 0.9 * genotypes[:, 0] * genotypes[:, 1] + 0.8 * noise[:, 2], binary)
    p, given = conditional_p(real, genotypes, PLACES, region)
    assert given[0] == 2 and p < 1e-4


@pytest.mark.parametrize("binary", [False, True])
def test_single_sites_are_score_tests(binary):
    rng, genotypes, region = haplotypes(2, 500, 0.6, 3)
    tests = drawn_tests(rng, 0.5 * genotypes[:, 0] + 0.3 * region[:, 0], binary)
    found = tests.given(genotypes).single_sites(region)
    design = np.column_stack([np.ones(500), genotypes, genotypes == 2]).astype(float)
    family = sm.families.Binomial() if binary else sm.families.Gaussian()
    null = sm.GLM(tests.response, design, family=family).fit()
    weights = (
        null.fittedvalues * (1 - null.fittedvalues) if binary else np.full(500, 1 / null.scale)
    )
    for site, chi2 in zip(region.T.astype(float), found, strict=True):
        rest = sm.WLS(site, design, weights=weights).fit().resid
        score = site @ null.resid_response / (1 if binary else null.scale)
        expected = score**2 / (rest**2 @ weights)
        # cases: the leverage of the null model makes a difference of some percent
        assert chi2 == pytest.approx(expected, **({"rel": 0.1, "abs": 0.1} if binary else {}))


@pytest.mark.parametrize("binary", [False, True])
def test_untyped_sites_like_those_of_the_region_are_told_from_interactions(binary, monkeypatch):
    monkeypatch.setattr(set_phantoms, "DRAWS", 40)
    monkeypatch.setattr(set_phantoms, "ENOUGH", 3)
    rng, genotypes, others = haplotypes(3, 900, 0.5 + 0.2 * binary, 7)
    region, untyped = others[:, :6], others[:, 6]
    tests = drawn_tests(rng, 1.5 * (1 + binary) * untyped, binary)
    assert set_p_values(tests.scores(genotypes, *PLACES))["p"] < 1e-5
    phantom = explain_set(tests, genotypes, PLACES, region)
    assert phantom.given and phantom.untyped > 0.05
    signal = -1.5 * (genotypes[:, 0] - 0.9) * (genotypes[:, 1] - 0.9)
    tests = drawn_tests(rng, signal, binary)
    real = explain_set(tests, genotypes, PLACES, region)
    assert real.conditional < 1e-8 and real.untyped == pytest.approx(1 / 41)
    assert real == explain_set(tests, genotypes, PLACES, region)
    alone = explain_set(tests, genotypes, PLACES, region[:, :0])
    assert np.isnan(alone.untyped) and alone.given == []


def test_draws_that_cannot_be_tested_do_not_count(monkeypatch):
    """They say nothing of the set; of a set of which nothing is left, nothing is known."""
    monkeypatch.setattr(set_phantoms, "DRAWS", 20)
    seen: list[float] = []

    def watched(*given) -> tuple[float, list[int]]:
        found = conditional_p(*given)
        seen.append(found[0])
        return found

    monkeypatch.setattr(set_phantoms, "conditional_p", watched)
    fewer = nothing = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        causal = rng.binomial(2, 0.4, (30, 1))
        near = np.where(rng.random((30, 7)) < 0.75, causal, rng.binomial(2, 0.3, (30, 7)))
        genotypes, region = near[:, :3].astype(np.int8), near[:, 3:].astype(np.int8)
        seen.clear()
        try:
            tests = drawn_tests(rng, 2.5 * causal[:, 0], True)
            found = explain_set(tests, genotypes, (np.arange(3), None), region)
        except UserError:  # the cases are separated
            continue
        p, draws = seen[0], [one for one in seen[1:] if not np.isnan(one)]
        if np.isnan(p) or not draws:
            nothing += np.isnan(p)
            assert np.isnan(found.untyped), seed
            continue
        small = sum(one <= p for one in draws)
        ended = small == set_phantoms.ENOUGH
        expected = small / len(draws) if ended else (small + 1) / (len(draws) + 1)
        assert found.untyped == pytest.approx(expected), seed
        fewer += len(draws) < 20 and not ended
    assert nothing and fewer


def test_the_region_is_the_nearest_sites_of_the_same_chromosome():
    chrom = np.array(["1", "1", "2", "1", "1", "1", "2"])
    pos = np.array([100, 400_000, 400_000, 500_000, 900_000, 1_000_101, 10])
    own = np.array([1, 3])
    assert region_of(chrom, pos, own, 10).tolist() == [0, 4]
    assert region_of(chrom, pos, np.array([3]), 10).tolist() == [0, 1, 4]
    assert region_of(chrom, pos, np.array([3]), 1).tolist() == [1]
