"""Samples between communities: the mixed are told, the unmixed and families are not."""

import numpy as np
import pytest
from scenes.landscapes.bridges import bridged
from scipy.optimize import minimize

from popdesic.communities.bridges import find_bridges, nearest_mixture


def groups(rng, centres, sizes):
    """Points about centres, and their groups from 1 on."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return np.array(centres, float)[group] + rng.normal(size=(len(group), 2)), group + 1


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_a_mixture_is_the_nearest_of_shares(rng):
    for _ in range(5):
        centres, point = rng.normal(size=(4, 3)), rng.normal(size=3)
        share = nearest_mixture(point, centres)
        slow = minimize(
            lambda s: ((point - s @ centres) ** 2).sum(),  # noqa: B023
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1},
        )
        assert share.sum() == pytest.approx(1) and (share >= 0).all()
        assert share == pytest.approx(slow.x, abs=1e-3)


def test_samples_on_the_way_are_between_and_others_not(rng):
    points, group = groups(rng, [[0, 0], [60, 0], [0, 60]], [60, 50, 40])
    mixed = np.array([[30, 0], [42, 0], [20, 20], [30, 30], [6, 0], [80, 80], [30, -30]])
    found = find_bridges(
        np.concatenate([points, mixed]), np.append(group, [1, 2, 1, 2, 1, 2, 1]), np.ones(157, bool)
    )
    assert not any(found[:150])
    assert found[150:] == [(1, 2), (1, 2), (1, 2, 3), (2, 3), (), (), ()]


def test_a_community_of_the_mixed_alone_is_a_bridge(rng):
    points, group = groups(rng, [[0, 0], [60, 0], [0, 60], [30, 0]], [60, 50, 40, 20])
    found = find_bridges(points, group, np.ones(len(group), bool))
    assert all(own == (1, 2) for own in found[150:]) and not any(found[:150])
    points[150:, 1] -= 20  # one that has drifted is a community
    assert not any(find_bridges(points, group, np.ones(len(group), bool)))


def test_newcomers_move_no_centre(rng):
    points, group = groups(rng, [[0, 0], [60, 0]], [60, 50])
    more = np.concatenate([points, np.tile([30.0, 0], (80, 1))])
    of, founders = np.append(group, np.full(80, 2)), np.arange(190) < 110
    found = find_bridges(more, of, founders)
    assert found[:110] == find_bridges(points, group, np.ones(110, bool)) and all(found[110:])


def test_founders_of_mixed_ancestry_alone_are_between_newcomers(rng):
    points, group = groups(rng, [[30, 0], [0, 0], [60, 0]], [60, 20, 20])
    found = find_bridges(points, group, group == 1)
    assert found.count((2, 3)) >= 55 and not any(found[60:])
    assert find_bridges(points, group, np.zeros(100, bool)) == found  # all are relatives


@pytest.mark.parametrize("mixed", [30, 70])
def test_of_two_communities_one_took_in_the_mixed(rng, mixed):
    """They widen it on one side, even where they are nearly half of it."""
    points, group = groups(rng, [[0, 0], [24, 0]], [100, 80])
    points = np.concatenate([points[:, :1], rng.normal(12, 1.5, (mixed, 1))])
    found = find_bridges(points, np.append(group, np.full(mixed, 2)), np.ones(180 + mixed, bool))
    assert not any(found[:180])
    assert found[180:].count((1, 2)) >= 0.95 * mixed


def test_a_community_twice_as_wide_as_the_other_lies_between_none():
    called = 0
    for seed in range(20):
        points = np.random.default_rng(seed).normal(size=(300, 1))
        points[150:] = 2 * points[150:] + 20
        called += sum(map(bool, find_bridges(points, np.repeat([1, 2], 150), np.ones(300, bool))))
    assert called <= 0.005 * 20 * 300


def test_near_groups_and_one_group_have_no_bridge(rng):
    points, group = groups(rng, [[0, 0], [7, 0]], [60, 60])
    points[0] = [3.5, 0]
    assert not any(find_bridges(points, group, np.ones(120, bool)))
    assert not any(find_bridges(points, np.ones(120, int), np.ones(120, bool)))
    assert not any(find_bridges(points[:, :0], group, np.ones(120, bool)))


def test_the_scene_has_mixed_people_and_families():
    drawn = [bridged(seed, sites=300) for seed in range(1, 9)]
    again = bridged(1, sites=300)
    assert (again.genotypes == drawn[0].genotypes).all()
    for one in drawn:
        assert one.genotypes.shape == (len(one.chrom), len(one.shares))
        assert one.shares.sum(axis=1) == pytest.approx(1)
        assert 0 < (one.shares.max(axis=1) < 1).mean() < 0.5
    assert 0 < sum(one.related.any() for one in drawn) < 8
