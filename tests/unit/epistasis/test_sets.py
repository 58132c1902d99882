"""Tests of sets equal their definition, whatever the path; what cannot be tested is left out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from oracles import sets as oracle
from scenes.interactions.sets import NULLS, null_study, planted_study
from scipy import stats

import popdesic
from popdesic.epistasis import set_products, sets
from popdesic.epistasis.skewness import skewed_tail

COLUMNS = ["p_quadratic", "p_burden", "p_pair"]


def draw(seed: int, n: int = 900, m: int = 6, missing: float = 0.0):
    """Genotypes in LD, covariates and noise."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(2, n, m))
    for k in range(1, m):
        latent[:, :, k] = 0.6 * latent[:, :, k - 1] + 0.8 * latent[:, :, k]
    cut = rng.uniform(-0.8, 0.8, m)
    genotypes = (latent > cut).sum(axis=0).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return rng, genotypes, rng.normal(size=(n, 2))


def response_of(rng, genotypes, covariates, strength: float, binary: bool) -> np.ndarray:
    g = np.maximum(genotypes, 0).astype(float)
    signal = 0.3 * g[:, 0] + 0.4 * covariates[:, 0] + strength * g[:, 1] * g[:, 4]
    if binary:
        odds = signal - signal.mean() - 0.5
        return (rng.random(len(g)) < 1 / (1 + np.exp(-odds))).astype(float)
    return signal + rng.normal(size=len(g))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("strength", [0.0, 0.6])
@pytest.mark.parametrize("dominance", [True, False])
def test_sets_equal_the_oracle(binary, strength, dominance):
    rng, genotypes, covariates = draw(1 + binary, missing=0.03)
    response = response_of(rng, genotypes, covariates, strength * (1 + binary), binary)
    found = popdesic.scan_sets(
        genotypes, response, {"all": range(6), "two": ([0, 1, 4], [2, 4, 5])}, covariates,
        dominance=dominance, threads=1,
    )  # fmt: skip
    cases = (oracle.all_pairs(6), [(0, 2), (0, 4), (0, 5), (1, 2), (1, 4), (1, 5), (2, 4), (4, 5)])
    for row, pairs in enumerate(cases):
        sites = np.unique(pairs)
        place = {site: k for k, site in enumerate(sites)}
        local = [(place[i], place[j]) for i, j in pairs]
        expected = oracle.set_tests(
            genotypes[:, sites], response, covariates, local, binary=binary, dominance=dominance
        )
        assert found.products[row] == len(pairs)
        for name in COLUMNS:
            assert found[name][row] == pytest.approx(expected[name], rel=1e-6), name
        assert found.p[row] == min(1, 2 * found.loc[row, ["p_quadratic", "p_pair"]].min())
    if strength:
        assert found.p_quadratic[0] < (1e-4 if binary else 1e-9)
        assert found.loc[0, ["site1", "site2"]].tolist() == [1, 4]


@pytest.mark.parametrize("binary", [False, True])
def test_covariates_of_mean_0_that_are_correlated_stay_in_the_null_model(binary):
    rng, genotypes, _ = draw(13)
    pairs = [(-1, -1), (0, 0), (1, 1), (-1, 0), (1, 0)] * 180  # mean and median are 0
    covariates = np.array(pairs, float)[rng.permutation(900)]
    signal = 2 * covariates @ [1, -1] + 0.5 * genotypes[:, 0]
    noise = rng.logistic(size=900)
    response = (signal + noise > 0).astype(float) if binary else signal + noise
    found = popdesic.scan_sets(genotypes, response, {"all": range(6)}, covariates)
    expected = oracle.set_tests(genotypes, response, covariates, oracle.all_pairs(6), binary=binary)
    for name in COLUMNS:
        assert found[name][0] == pytest.approx(expected[name], rel=1e-6), name


def test_a_product_of_few_cases_has_its_exact_p():
    """All tables of cases with the same main effects: a normal p is too small by a factor of 2."""
    people = np.array([[800, 350, 50], [350, 350, 50], [50, 50, 50]])
    tables, chances, total = oracle.tables_of_cases(people, (50, 30, 12), (50, 30, 12))
    values = np.unique(total)
    share = np.array([chances[total == value].sum() for value in values])
    mean = share @ values
    deviation = np.sqrt(share @ (values - mean) ** 2)
    cells = [(a, b) for a in range(3) for b in range(3)]
    genotypes = np.concatenate([np.tile(cell, (people[cell], 1)) for cell in cells]).astype(np.int8)
    ratios, normal = [], []
    for value in values:
        distance, off = np.abs(values - mean), abs(value - mean)
        same = np.abs(distance - off) < 1e-9
        exact = share[(distance > off) & ~same].sum() + share[same].sum() / 2  # mid-p
        if not 1e-7 < exact < 0.1:
            continue
        table = tables[total == value][0]
        case = np.concatenate([np.arange(people[cell]) < table[cell] for cell in cells])
        tests = sets.prepare_sets(
            case.astype(float), np.zeros((len(case), 0)), "logistic", "none", True
        )
        found = tests.scores(genotypes, np.arange(2))
        z = found.scores[0] / found.variances[0] ** 0.5
        assert z == pytest.approx((value - mean) / deviation, abs=0.03)
        ratios.append(sets.set_p_values(found)["p_pair"] / exact)
        normal.append(2 * stats.norm.sf(abs(z)) / exact)
    assert len(ratios) > 30 and min(ratios) > 0.9 and max(ratios) < 4
    assert min(normal) < 0.5


def test_skewed_tails_are_those_of_scipy():
    z, skewness = np.meshgrid(np.linspace(-5, 9, 15), [-1.5, -0.2, -1e-3, 0, 1e-3, 0.3, 2.0])
    expected = stats.pearson3.sf(z, skewness)
    assert skewed_tail(z, skewness) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_which_carriers_are_cases_decides_no_product():
    """Scores would be shifted if products that few cases happen to carry were left out."""
    _, genotypes, _ = draw(15, n=1000)
    carried = (genotypes[:, 0] > 0) & (genotypes[:, 1] > 0)
    response = np.zeros(1000)
    response[np.flatnonzero(carried)[:2]] = 1  # fewer than LEAST_CARRIERS ...
    response[np.flatnonzero(~carried)[::5]] = 1
    assert (
        carried.sum() * response.mean() > set_products.LEAST_CARRIERS
    )  # ... but more are expected
    assert popdesic.scan_sets(genotypes, response, {"a": [0, 1]}).products[0] == 1


def test_p_holds_down_to_1e_12():
    rng, genotypes, covariates = draw(3)
    seen = []
    for strength in (0.4, 0.6, 0.7, 0.9):
        response = response_of(rng, genotypes, covariates, strength, False)
        found = popdesic.scan_sets(genotypes, response, {"all": range(6)}, covariates)
        expected = oracle.set_tests(
            genotypes, response, covariates, oracle.all_pairs(6), binary=False
        )
        assert found.p_quadratic[0] == pytest.approx(expected["p_quadratic"], rel=1e-6)
        seen.append(found.p_quadratic[0])
    assert min(seen) < 1e-12


@pytest.mark.parametrize("binary", [False, True])
def test_more_products_than_people(binary):
    """The matrix of people gives what the matrix of products gives."""
    rng, genotypes, covariates = draw(4, n=120, m=17)
    genotypes[:, :15] = rng.binomial(2, 0.5, (120, 15))
    response = response_of(rng, genotypes, covariates, 0.3, binary)
    tests = sets.prepare_sets(
        response, covariates, "logistic" if binary else "linear", "none", dominance=False
    )
    found = tests.scores(genotypes, np.arange(17))
    assert len(found.first) > 120
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(sets, "_by_products", sets._by_people)
        other = tests.scores(genotypes, np.arange(17))
    assert other.scores == pytest.approx(found.scores, abs=1e-9)
    assert other.variances == pytest.approx(found.variances, rel=1e-8)
    size = len(found.eigenvalues)
    assert other.eigenvalues[:size] == pytest.approx(found.eigenvalues, rel=1e-7, abs=1e-9)
    p, q = sets.set_p_values(found), sets.set_p_values(other)
    assert [p[name] for name in COLUMNS] == pytest.approx([q[name] for name in COLUMNS], rel=1e-6)


def test_threads_and_other_sets_change_no_byte(monkeypatch):
    rng, genotypes, covariates = draw(5, missing=0.02)
    response = response_of(rng, genotypes, covariates, 0.1, True)
    several = {str(k): np.unique(rng.integers(0, 6, 5)) for k in range(12)}
    one = popdesic.scan_sets(genotypes, response, several, covariates, threads=1)
    two = popdesic.scan_sets(genotypes, response, several, covariates, threads=2)
    assert one.equals(two)
    alone = popdesic.scan_sets(genotypes, response, {"7": several["7"]}, covariates)
    assert alone.iloc[0].equals(one.iloc[7].rename(0))
    monkeypatch.setattr(sets, "PEOPLE", 100)
    chunked = popdesic.scan_sets(genotypes, response, several, covariates)
    assert chunked.p_quadratic.to_numpy() == pytest.approx(one.p_quadratic.to_numpy(), rel=1e-9)


def test_the_other_allele_and_the_order_of_sites_change_nothing():
    rng, genotypes, covariates = draw(6)
    response = response_of(rng, genotypes, covariates, 0.1, False)
    found = popdesic.scan_sets(genotypes, response, {"a": range(6)}, covariates)
    turned = genotypes.copy()
    turned[:, ::2] = 2 - turned[:, ::2]
    other = popdesic.scan_sets(turned, response, {"a": range(5, -1, -1)}, covariates)
    for name in ("p", *COLUMNS):
        assert other[name][0] == pytest.approx(found[name][0], rel=1e-9)


def test_dominance_of_one_site_is_no_interaction_of_two_in_ld():
    rng = np.random.default_rng(7)
    haplotypes = rng.random((2, 4000)) < 0.4
    twin = np.where(rng.random((2, 4000)) < 0.02, ~haplotypes, haplotypes)
    genotypes = np.stack([haplotypes.sum(axis=0), twin.sum(axis=0)], axis=1)
    response = 0.5 * (genotypes[:, 0] == 2) + rng.normal(size=4000)
    with_it = popdesic.scan_sets(genotypes, response, {"a": [0, 1]})
    without = popdesic.scan_sets(genotypes, response, {"a": [0, 1]}, dominance=False)
    assert without.p[0] < 1e-6 < 0.01 < with_it.p[0]


def test_sites_that_say_nothing_are_left_out():
    rng, genotypes, covariates = draw(8)
    response = response_of(rng, genotypes, covariates, 0.2, False)
    wide = np.column_stack(
        [genotypes, np.zeros(900), np.full(900, -1), np.arange(900) < 4, genotypes[:, 0]]
    )
    wide = wide.astype(np.int8)
    found = popdesic.scan_sets(
        wide, response, {"a": range(6), "b": range(9), "c": range(10), "d": [6], "e": []}
    )
    assert found.sites.tolist() == [6, 6, 7, 0, 0]
    assert found.p_quadratic[1] == found.p_quadratic[0]
    assert found.products[2] > found.products[0]  # products with a copy stay, but for its square
    assert 0 < found.p_quadratic[2] < 1
    assert found.p[3:].isna().all() and (found.products[3:] == 0).all()


@pytest.mark.parametrize("n", [60, 200])
def test_a_site_at_which_all_are_heterozygous_has_no_product(n):
    """By the matrix of people and by that of products."""
    rng = np.random.default_rng(14)
    genotypes = rng.binomial(2, 0.5, (n, 14)).astype(np.int8)
    genotypes[:, 3] = 1
    without = {"a": np.delete(np.arange(14), 3)}
    response = rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = popdesic.scan_sets(genotypes, response, {"a": range(14)})
        expected = popdesic.scan_sets(genotypes, response, without)
    assert found.products[0] == expected.products[0] == 78
    for name in COLUMNS:
        assert found[name][0] == pytest.approx(expected[name][0], rel=1e-9)


def test_unknown_samples_do_not_count():
    rng, genotypes, covariates = draw(9)
    response = response_of(rng, genotypes, covariates, 0.2, False)
    unknown, gaps = response.copy(), covariates.copy()
    unknown[:50], gaps[50:80, 1] = np.nan, np.nan
    found = popdesic.scan_sets(genotypes, unknown, {"a": range(6)}, gaps)
    alone = popdesic.scan_sets(genotypes[80:], response[80:], {"a": range(6)}, covariates[80:])
    assert found.p_quadratic[0] == pytest.approx(alone.p_quadratic[0], rel=1e-9)


def test_a_set_that_separates_cases_is_named():
    _, genotypes, _ = draw(10)
    case = genotypes[:, 0] > 0
    with pytest.warns(UserWarning, match=r"not tested: 1, the first of them 'bad': .*sep"):
        found = popdesic.scan_sets(
            genotypes, case, {"good": [2, 3], "bad": [0, 1]}, dominance=False
        )
    assert found.p.isna().tolist() == [False, True]


BAD_SETS = {
    "has the site 6; give columns from 0 to 5": [0, 6],
    "has the site -1": [-1, 2],
    "is float64 of the shape \\(2,\\)": [0.0, 1.0],
    "is int64 of the shape \\(2, 2\\)": np.zeros((2, 2), int),
    "is <U1 of the shape \\(\\)": "x",
}


@pytest.mark.parametrize("sentence", BAD_SETS)
def test_sets_that_are_no_columns_are_refused(sentence):
    _, genotypes, _ = draw(11)
    with pytest.raises(ValueError, match=rf"sets\['a'\] {sentence}"):
        popdesic.scan_sets(genotypes, np.arange(900), {"a": BAD_SETS[sentence]})


def test_a_set_that_is_too_large_is_named(monkeypatch):
    monkeypatch.setattr(set_products, "MOST_ROWS", 10)
    rng, genotypes, _ = draw(12)
    with pytest.warns(UserWarning, match="a set has 15 products of two of its 6 sites in 900"):
        popdesic.scan_sets(genotypes, rng.normal(size=900), {"a": range(6)})
    monkeypatch.setattr(set_products, "MOST_SITES", 5)
    with pytest.warns(UserWarning, match="a set has 6 sites; at most 5 are tested together"):
        popdesic.scan_sets(genotypes, rng.normal(size=900), {"a": range(6)})


@pytest.mark.parametrize("name", NULLS)
def test_null_sets_keep_their_level(name):
    """Bounds that a test at its level passes in 499 of 500 draws of 160 sets."""
    p = []
    for seed in (1, 2):
        study = null_study(name, seed, 700, 80, 5)
        found = popdesic.scan_sets(
            *(study.genotypes, study.phenotype, study.sets, study.covariates),
            transform=study.transform,
        )
        p.append(found[["p", *COLUMNS]].dropna().to_numpy())
    p = np.concatenate(p)
    assert len(p) > 140
    assert ((p <= 0.05).mean(axis=0) <= 0.1).all()
    assert ((p[:, 1:3] <= 0.5).mean(axis=0) >= 0.4).all()


def test_planted_products_are_found():
    for products in (1, 20):
        study = planted_study(products, 0.06, 1, 2000, 16)
        found = popdesic.scan_sets(study.genotypes, study.phenotype, study.sets).iloc[0]
        assert found.p < 1e-6 and found.p_quadratic < 1e-3
