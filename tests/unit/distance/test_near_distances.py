"""Lists and landmarks in place of the matrix of all pairs: closest pairs and typical distances."""

from __future__ import annotations

import numpy as np
from oracles.reference import nearest, outside_of

from popdesic.distance.founder_tree import neighbors_of_points
from popdesic.distance.landmarks import LandmarkRows, NearDistances, choose_landmarks
from popdesic.report.outcome import closest_pairs


def test_closest_pairs_are_those_of_the_matrix():
    rng = np.random.default_rng(1)
    far = rng.integers(1, 40, (30, 30)).astype(float)
    far = np.minimum(far, far.T)
    far[3] = far[:, 3] = np.inf
    np.fill_diagonal(far, 0)
    index = nearest(far, 12)
    cohorts = ["a"] * 20 + ["b"] * 10
    lists = neighbors_of_points(
        index,
        np.take_along_axis(far, index, 1),
        cohorts,
        {"a"},
        lambda who: outside_of(far[np.ix_(who, who)]),
    )
    near = NearDistances(lists, LandmarkRows(far[lists.landmarks], lists.landmarks))
    i, j = np.triu_indices(30, 1)
    expected = sorted(zip(far[i, j], i, j, strict=True))[:12]
    assert near.closest(12) == expected
    names = [f"s{k}" for k in range(30)]
    table = closest_pairs(near, names, 5)
    among = far[:20, :20]
    other = np.isfinite(among) & ~np.eye(20, dtype=bool)
    assert table.distance.tolist() == [value for value, _, _ in expected[:5]]
    np.testing.assert_allclose(table.of_median, table.distance / np.median(among[other]))


def test_landmarks_are_founders_spread_evenly():
    cohorts = ["a"] * 1500 + ["n"] * 10 + ["b"] * 1500
    found = choose_landmarks(cohorts, {"a", "b"})
    assert len(found) == 1000
    assert found[0] == 0 and found[-1] == len(cohorts) - 1
    assert (np.diff(found) > 0).all()
    assert set(np.array(cohorts)[found]) == {"a", "b"}
    assert abs((found < 1500).sum() - 500) <= 1
    assert choose_landmarks(cohorts, {"z"}).size == 0
