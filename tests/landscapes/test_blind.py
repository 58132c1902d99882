"""The choice without truth: what it is judged by, the rule, and what it takes in two landscapes."""

import numpy as np
import pytest

from landscapes import scene
from landscapes.blind import choose, held_out_scores, unbiased_squares
from landscapes.methods import NEAREST, PLAIN, People, Way, knn_lengths


def test_unbiased_squares_by_hand():
    genotypes = np.array([[0, 2], [1, 2], [1, 1], [0, 1]], np.int8)
    # (4 - 0) + (1 - 1) + (0 - 1 - 1) + (1 - 1)
    assert unbiased_squares(genotypes)[0, 1] == pytest.approx(4 + 0 - 2 + 0)


def test_unbiased_squares_are_those_of_frequencies_even_where_some_are_missing():
    rng = np.random.default_rng(1)
    p, q = rng.uniform(0.1, 0.9, (2, 200_000))
    people = [p, p, q, q]  # two of each population
    genotypes = np.stack([rng.binomial(2, one) for one in people], axis=1).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.1] = -1
    found = unbiased_squares(genotypes) / len(genotypes)
    assert found[0, 1] == pytest.approx(0, abs=0.02)
    assert found[0, 2:] == pytest.approx([4 * np.mean((p - q) ** 2)] * 2, abs=0.02)


def test_another_way_has_to_lead_nearest_neighbours_by_the_margin():
    fermat = Way("Fermat", 2.0)
    held_out = {NEAREST: 0.50, PLAIN: 0.52, fermat: 0.51}
    assert choose(held_out, margin=0.03) == NEAREST
    assert choose(held_out, margin=0.01) == PLAIN
    assert choose({NEAREST: 0.6, PLAIN: 0.5}, margin=0.0) == NEAREST


def test_fewer_components_have_to_lead_by_the_margin():
    two, plain_two = Way("knn", components=2), Way("PCs", components=2)
    held_out = {NEAREST: 0.55, PLAIN: 0.5, two: 0.555, plain_two: 0.56}
    assert choose(held_out, margin=0.02) == NEAREST
    assert choose(held_out, margin=0.008) == two
    assert choose(held_out, margin=0.001) == plain_two


def test_routes_among_neighbours_by_hand():
    # Points 0 1 2 10 on a line with one neighbour each: the tree joins them all.
    place = np.array([0.0, 1.0, 2.5, 10.0])
    lengths = knn_lengths(np.abs(place[:, None] - place), 1, 2.0)
    assert lengths[0].tolist() == [0, 1, 1 + 2.25, 1 + 2.25 + 56.25]


def test_ways_are_told_apart_by_name():
    names = [str(way) for way in (PLAIN, Way("knn", 1.5, 10), Way("Fermat", 2.0, components=4))]
    assert names == ["PCs", "knn 10 1.5", "Fermat 2 (4)"]


def test_our_geodesics_are_those_of_isomap():
    people = People(scene("chain", 1).genotypes)
    assert NEAREST.lengths(people) == pytest.approx(Way("Isomap").lengths(people))


def test_components_are_what_distances_are_taken_of():
    people = People(scene("islands", 1, sites=500).genotypes)
    first = people.scores[:, 0]
    assert Way("PCs", components=1).lengths(people)[3] == pytest.approx(np.abs(first - first[3]))
    fermat = Way("Fermat", 2.0, components=1).lengths(people)
    order = np.sort(first)  # on a line every step is taken
    ends = first.argmin(), first.argmax()
    assert fermat[ends] == pytest.approx((np.diff(order) ** 2).sum(), rel=1e-3)


@pytest.mark.parametrize(
    ("name", "kinds", "components"),
    [
        ("grid", {"knn"}, {4, 8}),
        ("refuges", {"PCs", "Fermat"}, {2, 4, 8}),
        ("gradient", {"knn"}, {1}),
        ("islands", {"knn"}, {2, 4, 8}),
    ],
)
def test_held_out_sites_choose_well(name, kinds, components):
    chosen = choose(held_out_scores(scene(name, 1), splits=1))
    assert chosen.kind in kinds and chosen.components in components


def test_an_inversion_is_not_seen_from_other_chromosomes():
    there, islands = (
        held_out_scores(scene(name, 1), [PLAIN])[PLAIN] for name in ("inversion", "islands")
    )
    assert abs(there) < 0.05 < islands / 2
