"""Scores of agreement with the truth, by hand and against scipy and scikit-learn."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from scenes.landscapes import scores


def matrix(upper: list[float]) -> np.ndarray:
    return squareform(np.array(upper, float))


def test_rank_correlation_by_hand():
    # Ranks 1 2 3 4 5 6 against 1 2 3 4 6 5: 1 - 6 * 2 / (6 * 35).
    truth, found = matrix([1, 2, 3, 4, 5, 6]), matrix([10, 20, 30, 40, 60, 50])
    assert scores.rank_correlation(found, truth) == pytest.approx(1 - 12 / 210)
    assert scores.rank_correlation(found**4, truth) == pytest.approx(1 - 12 / 210)


def test_rank_correlations_are_those_of_scipy():
    rng = np.random.default_rng(1)
    found = squareform(pdist(rng.normal(size=(20, 3))))
    truth = squareform(pdist(rng.integers(0, 4, (20, 2))))  # with ties
    upper = np.triu_indices(20, 1)
    expected = spearmanr(found[upper], truth[upper]).statistic
    assert scores.rank_correlation(found, truth) == pytest.approx(expected)
    rows = [spearmanr(np.delete(found[i], i), np.delete(truth[i], i)).statistic for i in range(20)]
    assert scores.rank_correlation_by_sample(found, truth) == pytest.approx(np.mean(rows))


def test_rank_correlation_by_sample_allows_each_sample_a_scale():
    place = np.arange(12.0)
    truth = np.abs(place[:, None] - place)
    stretched = truth * np.where(place < 6, 1, 100)[:, None]
    assert scores.rank_correlation_by_sample(stretched, truth) == pytest.approx(1)


def test_no_correlation_where_the_truth_is_one_population():
    found, truth = matrix([1, 2, 3]), np.zeros((3, 3))
    assert np.isnan(scores.rank_correlation(found, truth))
    assert np.isnan(scores.rank_correlation_by_sample(found, truth))


def test_procrustes_r2_forgives_moving_turning_and_scaling_alone():
    truth = np.array([[0, 0], [3, 0], [3, 1], [0, 2.0]])
    turned = truth @ np.array([[0, -1], [1, 0]]) * 5 + 7
    assert scores.procrustes_r2(turned, truth) == pytest.approx(1)
    stretched = truth * [1, 3]
    assert scores.procrustes_r2(stretched, truth) < 0.9
    assert scores.procrustes_r2(np.pad(turned, ((0, 0), (0, 3))), truth) == pytest.approx(1)


def test_procrustes_r2_of_one_axis_is_the_squared_correlation():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 30, 1))
    expected = np.corrcoef(a[:, 0], b[:, 0])[0, 1] ** 2
    assert scores.procrustes_r2(a, b) == pytest.approx(expected)


def test_neighbour_recall_by_hand():
    place = np.array([0.0, 1.0, 2.0, 10.0])
    truth = np.abs(place[:, None] - place)
    found = np.abs(place[[0, 1, 3, 2]][:, None] - place[[0, 1, 3, 2]])
    # Nearest two in truth: 12 02 01 21. Found (places 0 1 10 2): 13 03 31 10 (1 before 0).
    # Hits: 1 of 12; 0 of 02; 1 of 01; 1 of 21.
    assert scores.neighbour_recall(truth, truth, k=2) == 1
    assert scores.neighbour_recall(found, truth, k=2) == pytest.approx(4 / 8)


def test_whoever_is_as_near_as_the_kth_is_a_neighbour():
    deme = np.repeat([0.0, 1.0, 5.0], 4)
    truth = np.abs(deme[:, None] - deme)
    found = np.abs(np.arange(12.0)[:, None] - np.arange(12))
    # One's own deme is 3 others; with k = 5 all 4 of the next deme count as fifth.
    assert scores.neighbour_recall(found[:8, :8], truth[:8, :8], k=5) == 1
    # With k = 3 its own deme alone counts: samples 3 to 5 and 7 to 9 find 1 2 1 and 1 2 1 others.
    assert scores.neighbour_recall(found, truth, k=3) == pytest.approx(28 / 36)


def test_ari_by_hand():
    # Pairs together: 3 + 3 in truth, 1 + 6 found, 1 + 3 in both, of 15.
    truth, found = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    both, chance = 1 + 3, 6 * 7 / 15
    assert scores.community_ari(found, truth) == pytest.approx(
        (both - chance) / ((6 + 7) / 2 - chance)
    )


def test_false_splits_count_communities_beyond_the_first_of_a_population():
    one = np.zeros(100)
    assert scores.false_splits(np.zeros(100), one) == 0
    assert scores.false_splits(np.repeat([0, 1, 2, 3], 25), one) == 3
    assert scores.false_splits(np.repeat([0, 1], [96, 4]), one) == 0  # stragglers
    assert scores.false_splits(np.repeat([0, 1], [95, 5]), one) == 1
    two = np.repeat(["a", "b"], 50)
    assert scores.false_splits(np.repeat([0, 1], 50), two) == 0
    assert scores.false_splits(np.repeat([0, 1, 2, 2], 25), two) == 1


def test_hudson_f_st_by_hand():
    genotypes = np.array([[2, 1, 0, 0, -1], [0, 0, 1, 2, 1]], np.int8)
    one = np.array([True, True, False, False, False])
    # p 3/4 and 0 of 4 copies each; 0 of 4 and 4/6 of 6 copies.
    above = 9 / 16 - (3 / 16) / 3 + 4 / 9 - (2 / 9) / 5
    below = 3 / 4 + 2 / 3
    assert scores.hudson_f_st(genotypes, one, ~one) == pytest.approx(above / below)
