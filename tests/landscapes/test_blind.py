"""The choice without truth: what it is judged by, the rule, and what it takes in two landscapes."""

import numpy as np
import pytest

from landscapes import scene
from landscapes.blind import DEFAULT, choose, held_out_scores, unbiased_squares
from landscapes.methods import knn_lengths, ways


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


def test_another_way_has_to_lead_the_default_by_the_margin():
    scores = {"Isomap": 0.50, "plain": 0.52, "Fermat": 0.51}
    assert choose(scores, "Isomap", 0.03) == "Isomap"
    assert choose(scores, "Isomap", 0.01) == "plain"
    assert choose({"Isomap": 0.6, "plain": 0.5}, "Isomap", 0.0) == "Isomap"


def test_routes_among_neighbours_by_hand():
    # Points 0 1 2 10 on a line with one neighbour each: the tree joins them all.
    place = np.array([0.0, 1.0, 2.5, 10.0])
    lengths = knn_lengths(np.abs(place[:, None] - place), 1, 2.0)
    assert lengths[0].tolist() == [0, 1, 1 + 2.25, 1 + 2.25 + 56.25]


@pytest.mark.parametrize(
    ("name", "expected"), [("grid", {DEFAULT}), ("refuges", {"PCs", "Fermat 1.5", "Fermat 2"})]
)
def test_held_out_sites_choose_well(name, expected):
    few = {"PCs", "Fermat 1.5", "Fermat 2", DEFAULT}
    compared = {way: of for way, of in ways((15,), (1.5, 2.0)).items() if way in few}
    assert choose(held_out_scores(scene(name, 1), compared, splits=1)) in expected


def test_an_inversion_is_not_seen_from_other_chromosomes():
    only_plain = {"PCs": lambda people: people.plain}
    there, islands = (
        held_out_scores(scene(name, 1), only_plain)["PCs"] for name in ("inversion", "islands")
    )
    assert abs(there) < 0.05 < islands / 2
