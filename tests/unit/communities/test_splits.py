"""Splits of samples: shapes without a gap stay whole, groups with a gap are found."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.manifold import Isomap
from sklearn.metrics import adjusted_rand_score

from popdesic.communities import straighten
from popdesic.communities.splits import (
    _judge_each,
    cut_tree,
    judge_cut,
    split_samples,
)
from popdesic.communities.stability import draw_subsamples, measure_stability
from popdesic.communities.straighten import neighbor_graph, straight_coordinates


def noisy(rng, points, k=3, sd=0.02):
    """Points with noise in k dimensions."""
    n, own = points.shape
    return np.hstack([points, np.zeros((n, k - own))]) + rng.normal(0, sd, (n, k))


def line(rng, n):
    return noisy(rng, rng.random((n, 1)))


def horseshoe(rng, n):
    turn = np.pi * rng.random(n)
    return noisy(rng, np.stack([np.cos(turn), np.sin(turn)], axis=1))


def square(rng, n):
    return noisy(rng, rng.random((n, 2)))


def star(rng, n):
    """Three arms of equal length."""
    angle = 2 * np.pi / 3 * rng.integers(0, 3, n)
    return noisy(rng, rng.random((n, 1)) * np.stack([np.cos(angle), np.sin(angle)], axis=1))


def tail(rng, n):
    """A dense end that thins out."""
    return noisy(rng, rng.exponential(0.3, (n, 1)))


def cloud(rng, n):
    return rng.normal(size=(n, 4))


def demes(rng, n):
    """Twenty groups in a row, each apart from the next."""
    return noisy(rng, (np.arange(n) % 20 / 20)[:, None], sd=0.005)


@pytest.mark.parametrize("shape", [line, horseshoe, square, star, tail, cloud, demes])
def test_shapes_without_a_gap_are_not_split(shape):
    whole = sum(
        not split_samples(shape(np.random.default_rng([seed, 7]), 200)).halves for seed in range(20)
    )
    assert whole >= 19


def groups(rng, sizes, apart):
    """Clouds of standard deviation 1 in 4 dimensions, all `apart` from each other."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    centres = apart / np.sqrt(2) * np.eye(max(4, len(sizes)))
    return rng.normal(size=(len(group), centres.shape[1])) + centres[group], group


@pytest.mark.parametrize(
    "sizes", [(60, 60), (100, 30), (300, 12), (50, 50, 50, 50), (150, 60, 20), (400, 300, 15)]
)
def test_groups_with_a_gap_are_found(sizes):
    for seed in range(5):
        points, group = groups(np.random.default_rng([seed, 8]), sizes, 12)
        found = cut_tree(split_samples(points))
        assert adjusted_rand_score(group, found) > 0.99, seed


def test_a_group_of_fewer_than_ten_is_no_community():
    points, _ = groups(np.random.default_rng(9), (100, 9), 12)
    assert not split_samples(points).halves


def test_groups_cover_all_samples_once():
    points, _ = groups(np.random.default_rng(11), (40, 40, 40), 12)
    root = split_samples(points)
    leaves = [node.members for node in root.walk() if not node.halves]
    assert np.array_equal(np.sort(np.concatenate(leaves)), np.arange(120))
    assert cut_tree(root).max() == len(leaves) - 1


def test_the_order_of_samples_changes_no_community():
    rng = np.random.default_rng(12)
    points, _ = groups(rng, (60, 40, 30), 10)
    shuffled = rng.permutation(len(points))
    found = cut_tree(split_samples(points))
    assert adjusted_rand_score(found[shuffled], cut_tree(split_samples(points[shuffled]))) == 1


def test_equal_samples_are_no_gap():
    root = split_samples(np.zeros((50, 2)))
    assert not root.halves


def test_a_gap_is_judged_by_its_dip_and_its_valley():
    rng = np.random.default_rng(13)
    even = rng.random((300, 1))
    gap = judge_cut(even, even[:, 0] > 0.5)
    assert not gap.supported and gap.p > 0.01 and gap.valley == 1
    split = np.concatenate([even[:150], even[150:] + 2])
    gap = judge_cut(split, np.arange(300) >= 150)
    assert gap.supported and gap.p < 1e-3 and gap.valley == 0
    assert gap.gain == pytest.approx(75 * (split[150:].mean() - split[:150].mean()) ** 2)


def test_mixed_samples_between_groups_do_not_join_them():
    """Half as many as a group has leave a valley; ten times as many as both fill it."""
    rng = np.random.default_rng(14)
    groups = np.repeat([0.0, 1.0], 100) + rng.normal(scale=0.03, size=200)
    for mixed, parted in ((50, True), (2_000, False)):
        line = np.concatenate([groups, rng.random(mixed)])
        points = np.column_stack([line, rng.normal(scale=0.03, size=len(line))])
        gap = judge_cut(points, line > 0.5)
        assert gap.supported == parted
        assert (gap.valley < 0.5) == parted


def test_unevenly_sampled_chains_have_no_valley():
    """A space between two demes is no valley: it is short beside the way between the halves."""
    line = np.repeat(np.arange(24.0), [40] * 12 + [10] * 12)[:, None]
    for cut in range(1, 23):
        assert judge_cut(line, line[:, 0] > cut).valley == 1


# --- straight coordinates ------------------------------------------------------------------------


def test_geodesics_are_those_of_isomap():
    points = np.random.default_rng(14).random((120, 2))
    peer = Isomap(n_neighbors=15, n_components=2).fit(points).embedding_
    found = straight_coordinates(points, neighbor_graph(points))
    signs = np.sign((peer * found).sum(axis=0))
    np.testing.assert_allclose(found * signs, peer, atol=1e-6)


def test_a_horseshoe_is_straightened():
    rng = np.random.default_rng(15)
    turn = np.sort(rng.random(300))
    points = np.stack([np.cos(np.pi * turn), np.sin(np.pi * turn)], axis=1)
    found = straight_coordinates(points, neighbor_graph(points))[:, 0]
    assert abs(np.corrcoef(found, turn)[0, 1]) > 0.999


def test_landmarks_give_nearly_the_same_coordinates(monkeypatch):
    points = np.random.default_rng(16).random((400, 2)) * [3, 1]
    graph = neighbor_graph(points)
    whole = straight_coordinates(points, graph)
    monkeypatch.setattr(straighten, "LANDMARKS", 150)
    few = straight_coordinates(points, graph)
    assert spearmanr(pdist(whole), pdist(few)).statistic > 0.999


def test_parts_are_joined_by_their_shortest_edges():
    rng = np.random.default_rng(17)
    points = np.concatenate([rng.random((40, 2)), rng.random((40, 2)) + 10])
    graph = neighbor_graph(points)
    distances = squareform(pdist(points))[:40, 40:]
    crossing = graph[:40][:, 40:].toarray()
    assert (crossing > 0).sum() == 1
    assert crossing.max() == pytest.approx(distances.min())


def joins(points, group):
    """Pairs of groups with an edge between them, and how many edges each has."""
    rows, columns = neighbor_graph(points).nonzero()
    pairs = np.sort(np.stack([group[rows], group[columns]]), axis=0)[:, rows < columns]
    return {(a, b): int(n) for (a, b), n in zip(*_counted(pairs.T), strict=True) if a != b}


def _counted(pairs):
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    return found.tolist(), counts


def test_equally_distant_parts_are_all_joined():
    points, group = groups(np.random.default_rng(20), [30] * 5, 30)
    assert joins(points, group) == {(a, b): 1 for a in range(5) for b in range(a + 1, 5)}


def test_parts_in_a_row_stay_a_row():
    """Also where distances grow only with the square root of steps, as along components."""
    rng = np.random.default_rng(21)
    group = np.repeat(np.arange(6), 30)
    steps = np.tril(np.ones((6, 5)), -1)  # part i is at 1 on the first i of five axes
    points = 10 * steps[group] + rng.normal(0, 0.3, (180, 5))
    assert joins(points, group) == {(i, i + 1): 1 for i in range(5)}


def test_many_equally_distant_groups_are_found(monkeypatch):
    points, group = groups(np.random.default_rng(22), [30] * 16, 12)
    assert adjusted_rand_score(group, cut_tree(split_samples(points))) == 1
    starts, ends = neighbor_graph(points).nonzero()
    joined = (group[starts] != group[ends]).sum() // 2
    monkeypatch.setattr(straighten, "SLACK", 1.0)
    starts, ends = neighbor_graph(points).nonzero()
    assert (group[starts] != group[ends]).sum() // 2 == 15 < joined  # a tree of parts


def test_equal_points_keep_their_edges():
    graph = neighbor_graph(np.zeros((20, 3)))
    assert (graph.toarray() > 0).sum() >= 20 * 15


# --- stability -----------------------------------------------------------------------------------


def stability(points, group, find, draws):
    drawn = draw_subsamples(len(points), draws, 1)
    return measure_stability(points, group, drawn, [find(points[own]) for own in drawn])


def test_separate_groups_are_stable():
    points, group = groups(np.random.default_rng(18), (60, 50, 40), 15)
    found = stability(points, group, lambda p: cut_tree(split_samples(p)), 5)
    assert (found == 1).all()


def test_groups_that_are_not_found_again_are_unstable():
    rng = np.random.default_rng(19)
    points, group = rng.normal(size=(120, 3)), np.arange(120) % 2
    # found as one: half of each group is with the other one
    found = stability(points, group, lambda p: np.zeros(len(p), int), 6)
    assert found.mean() == pytest.approx(0.5, abs=0.01)
    # one community that falls into two when samples are drawn anew
    found = stability(points, np.zeros(120, int), lambda p: (p[:, 0] > 1).astype(int), 6)
    assert found[points[:, 0] < 0.5].min() == 1
    assert found[points[:, 0] > 1.5].max() == 0


def test_stability_without_draws_is_unknown():
    assert np.isnan(stability(np.zeros((5, 1)), np.ones(5), np.ravel, 0)).all()


def test_subsamples_are_four_fifths_without_replacement():
    drawn = draw_subsamples(101, 3, 1)
    assert [len(np.unique(own)) for own in drawn] == [81] * 3
    assert all((np.diff(own) > 0).all() for own in drawn)
    assert not np.array_equal(*drawn[:2])


def test_repeated_and_swapped_cuts_have_the_gap_of_each(rng):
    points = rng.normal(size=(40, 3))
    cuts = [rng.permutation(40) < size for size in (10, 20, 31)]
    cuts = [side for cut in cuts for side in (cut, ~cut, cut.copy())]
    assert _judge_each(points, cuts) == [judge_cut(points, cut) for cut in cuts]
