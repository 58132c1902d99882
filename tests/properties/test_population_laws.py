"""Laws of F_ST, f-statistics and principal components on random genotypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popdesic

SETTINGS = settings(max_examples=25, deadline=None)
#: Sums of a few hundred products in another order.
ROUNDING = 1e-9
LABELS = np.repeat(list("ABCD"), [6, 4, 5, 3])


def drawn(seed, missing=0.1, n_sites=60):
    """Genotypes (18, n_sites) of four populations of different frequencies, -1 where missing."""
    rng = np.random.default_rng(seed)
    frequency = np.clip(rng.uniform(0.2, 0.8, n_sites) + rng.normal(0, 0.15, (4, n_sites)), 0, 1)
    genotypes = rng.binomial(2, np.repeat(frequency, [6, 4, 5, 3], axis=0)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes, rng


seeds = st.integers(0, 2**32 - 1)
blocks = 6


def f_st(genotypes, labels=LABELS, block=blocks):
    table = popdesic.f_st(genotypes, labels, blocks=block, threads=1)
    return table.set_index(["population1", "population2"])


def f4(genotypes, names):
    return popdesic.f4(genotypes, LABELS, [list(names)], blocks=blocks, threads=1).f4.iloc[0]


@SETTINGS
@given(seed=seeds)
def test_order_of_samples_and_names_of_alleles_change_no_f_st(seed):
    genotypes, rng = drawn(seed)
    found = f_st(genotypes)
    order = rng.permutation(len(LABELS))
    other = f_st(genotypes[order], LABELS[order]).loc[found.index]
    swapped = f_st(np.where(genotypes < 0, -1, 2 - genotypes))
    for table in (other, swapped):
        for name in ("fst", "error", "weir_cockerham"):
            np.testing.assert_allclose(table[name], found[name], rtol=0, atol=ROUNDING)


@SETTINGS
@given(seed=seeds)
def test_order_of_sites_changes_the_estimate_by_rounding_alone(seed):
    genotypes, rng = drawn(seed)
    found = f_st(genotypes)
    other = f_st(genotypes[:, rng.permutation(genotypes.shape[1])])
    for name in ("fst", "weir_cockerham"):
        np.testing.assert_allclose(other[name], found[name], rtol=0, atol=ROUNDING)


@SETTINGS
@given(seed=seeds)
def test_f_st_is_at_most_one_and_one_where_alleles_are_fixed_apart(seed):
    genotypes, _ = drawn(seed)
    assert (f_st(genotypes).fst <= 1 + ROUNDING).all()
    fixed = np.where(genotypes < 0, -1, 2 * (LABELS == "A")[:, None])
    pairs = f_st(fixed).fst
    assert pairs[[pair for pair in pairs.index if "A" in pair]].to_numpy() == pytest.approx(1)
    assert pairs[[pair for pair in pairs.index if "A" not in pair]].isna().all()


@SETTINGS
@given(seed=seeds)
def test_sites_that_nobody_has_called_change_nothing(seed):
    genotypes, _ = drawn(seed)
    nobody = np.full((len(genotypes), 7), -1, np.int8)
    found, other = f_st(genotypes, block=1), f_st(np.hstack([genotypes, nobody]), block=1)
    np.testing.assert_allclose(other.fst, found.fst, rtol=0, atol=ROUNDING)
    assert list(other.sites) == list(found.sites)


@SETTINGS
@given(seed=seeds)
def test_f4_changes_its_sign_with_either_pair_and_adds_up(seed):
    genotypes, _ = drawn(seed)
    found = f4(genotypes, "ABCD")
    assert f4(genotypes, "BACD") == pytest.approx(-found, abs=ROUNDING)
    assert f4(genotypes, "ABDC") == pytest.approx(-found, abs=ROUNDING)
    assert f4(genotypes, "CDAB") == pytest.approx(found, abs=ROUNDING)
    three = found + f4(genotypes, "ACDB") + f4(genotypes, "ADBC")
    assert three == pytest.approx(0, abs=ROUNDING)


@SETTINGS
@given(seed=seeds)
def test_f3_is_made_of_f2(seed):
    """2 f3(C; A, B) = f2(C, A) + f2(C, B) - f2(A, B), where all are called."""
    genotypes, _ = drawn(seed, missing=0)
    table = popdesic.f2(genotypes, LABELS, blocks=blocks, threads=1)
    f2 = {frozenset((row.population1, row.population2)): row.f2 for row in table.itertuples()}
    for row in popdesic.f3(genotypes, LABELS, blocks=blocks, threads=1).itertuples():
        c, a, b = row.target, row.source1, row.source2
        expected = (f2[frozenset((c, a))] + f2[frozenset((c, b))] - f2[frozenset((a, b))]) / 2
        assert row.f3 == pytest.approx(expected, abs=ROUNDING)


@SETTINGS
@given(seed=seeds)
def test_components_follow_their_samples_and_no_allele_name(seed):
    genotypes, rng = drawn(seed, n_sites=200)
    found = popdesic.pca(genotypes, n_components=2, threads=1)
    order, sites = rng.permutation(len(LABELS)), rng.permutation(200)
    swapped = np.where(genotypes < 0, -1, 2 - genotypes)
    for given_, rows in (
        (genotypes[order], order),
        (genotypes[:, sites], slice(None)),
        (swapped, slice(None)),
    ):
        other = popdesic.pca(given_, n_components=2, threads=1)
        np.testing.assert_allclose(other.explained, found.explained, atol=1e-6)
        # By products of scores, so that the signs of components play no part.
        scores = found.scores[rows]
        np.testing.assert_allclose(other.scores @ other.scores.T, scores @ scores.T, atol=1e-4)
    largest = np.abs(found.scores).argmax(axis=0)
    assert (found.scores[largest, [0, 1]] > 0).all()


@SETTINGS
@given(seed=seeds)
def test_a_copy_of_a_sample_lies_on_it_and_moves_nobody(seed):
    genotypes, _ = drawn(seed, missing=0, n_sites=200)
    founders = np.arange(len(LABELS) + 2) < len(LABELS)
    found = popdesic.pca(genotypes, n_components=2, threads=1)
    copies = np.vstack([genotypes, genotypes[[3, 3]]])
    other = popdesic.pca(copies, n_components=2, founders=founders, threads=1)
    np.testing.assert_allclose(other.scores[founders], found.scores, atol=1e-6)
    np.testing.assert_array_equal(other.scores[-1], other.scores[-2])
    twice = popdesic.pca(np.vstack([genotypes, genotypes[3]]), n_components=2, threads=1)
    np.testing.assert_allclose(twice.scores[-1], twice.scores[3], atol=1e-6)
