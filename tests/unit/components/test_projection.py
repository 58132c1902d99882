"""Newcomers on the axes: where their populations are, each by itself, not among themselves."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.reference import augmented_scores
from scenes.newcomers import newcomer_neighbors, plain_scores, population_slopes
from scenes.populations import populations, relationship_of
from scenes.relatives import KINDS, draw_relatives

from popdesic.components.noise_null import significant_axes
from popdesic.components.pca import axes_of
from popdesic.components.projection import project
from popdesic.components.relationship import (
    alt_frequency,
    relationship_among,
    relationship_to,
)


@pytest.fixture(scope="module")
def scene():
    """Four populations, a third newcomers: axes, who is a founder, rows, labels."""
    rng = np.random.default_rng(5)
    genotypes, label = populations(rng, 4, 0.03, 300, 5000)
    founders = rng.permutation(300) < 200
    af = alt_frequency(genotypes[founders].T)
    among = relationship_of(genotypes[founders], af)
    rows, own = relationship_to(lambda a, b: genotypes[:, a:b].T, [300], founders, af)
    return axes_of(among, "auto")[0], founders, rows, own, label


def test_newcomers_lie_where_their_populations_lie(scene):
    axes, founders, rows, own, label = scene
    assert axes.k == 3
    scores = axes.place(founders, rows, own)
    plain = plain_scores(axes, founders, rows)
    slopes = population_slopes(scores, founders, label)
    shrunk = population_slopes(plain, founders, label)
    share = newcomer_neighbors(scores, founders)
    crowded = newcomer_neighbors(plain, founders)
    print(f"\nslopes {slopes.round(3)}, plain {shrunk.round(3)}")
    print(f"newcomers among 15 nearest {share:.3f}, plain {crowded:.3f}, chance 0.333")
    assert (np.abs(slopes - 1) <= 0.05).all()
    assert (shrunk < 0.9).all() and crowded > 0.6, "a scene in which a plain projection shrinks"
    assert abs(share - 1 / 3) < 0.05


@pytest.mark.parametrize("demography", ["admixed", "island", "panmictic"])
def test_relatives_of_those_who_define_axes_lie_where_they_belong(demography):
    """And strangers keep their bytes."""
    drawn = draw_relatives(demography, 301, axis=140, each=6, strangers=30, sites=8_000)
    genotypes, axis = drawn.genotypes, drawn.axis
    af = alt_frequency(genotypes[axis].T)
    given = lambda a, b: np.ascontiguousarray(genotypes[axis, a:b].T), [int(axis.sum())], af
    axes, *_ = significant_axes(relationship_among(*given), *given, drawn.sites, "auto")
    rows, own = relationship_to(
        lambda a, b: np.ascontiguousarray(genotypes[:, a:b].T), [len(genotypes)], axis, af
    )
    strangers = drawn.kind[~axis] == "stranger"
    np.testing.assert_array_equal(axes.has_relatives(rows), ~strangers)
    scores = axes.place(axis, rows, own)
    before = replace(axes, own=None).place(axis, rows, own)
    who = drawn.kind == "stranger"
    assert scores[who].tobytes() == before[who].tobytes()
    places, spread = drawn.places(scores), scores[axis].std(axis=0)

    def error(found: np.ndarray, kind: str) -> float:
        off = (found - places)[drawn.kind == kind] / spread
        return float(np.sqrt((off**2).mean(axis=0)).max())

    errors = {kind: round(error(scores, kind), 2) for kind in KINDS}
    then = {kind: round(error(before, kind), 2) for kind in KINDS}
    print(f"\n{demography}, {axes.significant} of {axes.k}: {errors}; blind {then}")
    assert max(errors.values()) <= 0.25
    assert max(then.values()) > 0.5, "a scene in which relatives matter"


def test_pseudo_haploids_lie_where_least_squares_puts_them():
    """As `lsqproject` of smartpca does, with 20 to 60 % of the calls, but not shrunk.

    That is the least squares of a sample's standard genotypes on the loadings, over the sites at
    which it has calls. Its slopes tell by how much it shrinks.
    """
    rng = np.random.default_rng(5)
    genotypes, label = populations(rng, 4, 0.03, 300, 5000)
    founders = rng.permutation(300) < 200
    drawn = 2 * rng.binomial(1, genotypes[~founders] / 2).astype(np.int8)
    shares = rng.uniform(0.2, 0.6, (len(drawn), 1))
    genotypes[~founders] = np.where(rng.random(drawn.shape) < shares, drawn, -1)
    af = alt_frequency(genotypes[founders].T)
    axes, _ = axes_of(relationship_of(genotypes[founders], af), "auto")
    rows, own = relationship_to(lambda a, b: genotypes[:, a:b].T, [300], founders, af)
    found, plain = axes.place(founders, rows, own), plain_scores(axes, founders, rows)

    vary = (af > 0) & (af < 1)
    standard = (genotypes - 2 * af)[:, vary] / np.sqrt(2 * af * (1 - af))[vary]
    loadings = np.linalg.svd(standard[founders], full_matrices=False)[2][: axes.k].T
    fitted = np.empty_like(found)
    for i, row in enumerate(genotypes[:, vary]):
        called = row >= 0
        fitted[i] = np.linalg.lstsq(loadings[called], standard[i, called], rcond=None)[0]
    fitted *= np.sign((fitted * found)[founders].sum(axis=0)) / np.sqrt(vary.sum())
    np.testing.assert_allclose(fitted[founders], found[founders], atol=1e-9)

    slopes, shrunk = (population_slopes(one, founders, label) for one in (found, fitted))
    places = np.array([found[founders & (label == k)].mean(axis=0) for k in range(4)])[label]

    def error(scores: np.ndarray) -> np.ndarray:
        return np.sqrt(((scores - places)[~founders] ** 2).mean(axis=0))

    apart = np.sqrt(((plain - fitted)[~founders] ** 2).mean(axis=0))
    print(f"\nslopes {slopes.round(3)}, least squares {shrunk.round(3)}")
    print(
        f"errors {error(found)}, least squares {error(fitted)}, unshrunk {error(fitted / shrunk)}"
    )
    assert (shrunk < 0.9).all() and (np.abs(slopes - 1) < 0.1).all()
    assert (apart < 0.1 * error(fitted)).all()
    assert (error(found) < 1.1 * error(fitted / shrunk)).all()


def test_a_newcomer_is_bit_identical_whoever_else_is_there(scene):
    axes, _, rows, own, *_ = scene
    given = axes.values, axes.vectors, axes.trace, axes.k
    together = project(rows, own, *given)
    for some in ([7], [7, 3], [*range(50, 7, -1), 7]):
        assert project(rows[some], own[some], *given)[some.index(7)].tobytes() == (
            together[7].tobytes()
        )


def test_components_left_out_count_as_one_of_their_mean_size():
    """Of weak axes, three components kept apart give nearly what all 199 give; forgetting fails."""
    rng = np.random.default_rng(5)
    genotypes, _ = populations(rng, 4, 0.006, 300, 3000)
    founders = np.arange(300) < 200
    af = alt_frequency(genotypes[founders].T)
    values, vectors = np.linalg.eigh(relationship_of(genotypes[founders], af))
    values, vectors = values[:0:-1], vectors[:, :0:-1]
    rows, own = relationship_to(lambda a, b: genotypes[:, a:b].T, [300], founders, af)
    every = project(rows, own, values, vectors, values.sum(), 2)
    errors = []
    for trace in (values.sum(), values[:3].sum()):
        few = project(rows, own, values[:3], vectors[:, :3], trace, 2)
        errors.append(np.sqrt(((few - every) ** 2).mean() / every.var()))
    print(f"\nerror over spread: as one {errors[0]:.3f}, forgotten {errors[1]:.3f}")
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("n", [3, 8, 40])
def test_projection_is_the_pca_with_one_more(n):
    rng = np.random.default_rng(n)
    genotypes, _ = populations(rng, 2, 0.1, n + 5, 400)
    founders = np.arange(n + 5) < n
    af = alt_frequency(genotypes[founders].T)
    axes, _ = axes_of(relationship_of(genotypes[founders], af), 2)
    rows, own = relationship_to(lambda a, b: genotypes[:, a:b].T, [n + 5], founders, af)
    expected = augmented_scores(genotypes, af, founders, 2)
    found = axes.place(founders, rows, own)[~founders]
    expected *= np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_sample_without_calls_lies_at_the_origin():
    values, vectors = np.array([2.0, 1.0]), np.linalg.qr(np.ones((6, 2)) + np.eye(6)[:, :2])[0]
    found = project(np.zeros((1, 6)), np.zeros(1), values, vectors, 4.0, 2)
    np.testing.assert_array_equal(found, [[0, 0]])
    assert project(np.zeros((0, 6)), np.zeros(0), values, vectors, 4.0, 2).shape == (0, 2)
