"""The choice of geodesics without the truth: what is taken where the truth is known."""

import numpy as np
import pytest

from popdesic.engine.select import cpu_backend
from popdesic.geodesic import metrics
from scenes.landscapes import scene
from scenes.landscapes.blind import choose_on, evidence_of, named
from scenes.landscapes.methods import NEAREST, PLAIN, People, Way, significant_scores
from scenes.landscapes.scores import rank_correlation


def test_ways_are_named_as_in_the_benchmark():
    assert named(metrics.Way("knn", 1.0, 15, 8)) == NEAREST
    assert named(metrics.Way(pcs=8)) == PLAIN
    assert named(metrics.Way("complete", 2.0, 0, 4)) == Way("Fermat", 2.0, components=4)


def test_lengths_of_the_package_are_those_that_are_scored():
    people = People(scene("chain", 1).genotypes)
    for way in metrics.ways_of([4]):
        found = way.lengths(people.plain(4), cpu_backend(2))
        np.testing.assert_array_equal(found, named(way).lengths(people))


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


def test_significant_scores_are_as_many_as_there_are_contrasts():
    assert significant_scores(scene("panmixia", 1)).shape[1] == 0
    islands = scene("islands", 1)
    found = significant_scores(islands)
    assert found.shape == (len(islands.samples), len(set(islands.populations)) - 1)


@pytest.mark.parametrize(
    ("name", "reasons", "components"),
    [
        ("grid", {"nearest"}, {4, 8}),
        ("wall", {"nearest"}, {4, 8}),
        ("refuges", {"plain", "same order"}, {2, 4, 8}),
        ("gradient", {"same order"}, {1}),
        ("islands", {"nearest"}, {2, 4, 8}),
        ("panmixia", {"no evidence"}, {1, 2, 4, 8}),
        ("inversion", {"no evidence"}, {1, 2, 4, 8}),
    ],
)
def test_held_out_sites_choose_well(name, reasons, components):
    choice = choose_on(scene(name, 1))
    assert choice.reason in reasons and choice.way.pcs in components
    assert choice.way.is_plain == (choice.reason != "nearest")


@pytest.mark.parametrize(("name", "least"), [("wall", 0.015), ("grid", 0.04)])
def test_geodesics_that_are_chosen_are_better(name, least):
    """On a draw that had no part in making the rule."""
    drawn = scene(name, 7)
    people = People(drawn.genotypes)
    choice = choose_on(drawn)
    assert choice.reason == "nearest"
    gain = rank_correlation(named(choice.way).lengths(people), drawn.true_distance)
    gain -= rank_correlation(people.plain(), drawn.true_distance)
    assert gain >= least


def test_distances_of_genotypes_are_chosen_by_the_same_rule():
    """Behind a wall few pairs of people are so close that a path through a third is shorter."""
    evidence = evidence_of(scene("wall", 1), splits=1, metric="euclidean")
    assert [way.pcs for way in evidence.held_out] == 4 * [None]
    assert metrics.choose_way(evidence).way.graph == "knn"


def test_an_inversion_is_not_seen_from_other_chromosomes():
    there, islands = (
        evidence_of(scene(name, 1)).held_out[metrics.Way(pcs=8)]
        for name in ("inversion", "islands")
    )
    assert abs(there) < metrics.LEAST_EVIDENCE < islands / 2
