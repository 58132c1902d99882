"""Nearest points by trees and by pairs equal those sorted out of all distances."""

import numpy as np
import pytest

from popdesic.communities import near
from popdesic.communities.near import near_others, nearest_to


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.sqrt(((points[:, None] - others[None]) ** 2).sum(axis=-1))


@pytest.fixture(params=["trees", "pairs"])
def way(request, monkeypatch):
    monkeypatch.setattr(near, "TREE_COORDINATES", 99 if request.param == "trees" else 0)


@pytest.mark.parametrize(
    ("n", "m", "k"), [(2, 1, 1), (5, 3, 4), (300, 2, 15), (1100, 5, 3), (700, 9, 7)]
)
def test_others_are_the_nearest(way, n, m, k, rng):
    points = rng.normal(size=(n, m))
    index, far = near_others(points, k, threads=2)
    assert index.shape == far.shape == (n, k) and index.dtype == np.int64
    every = distances(points, points)
    np.testing.assert_allclose(far, np.sort(every, axis=1)[:, 1 : k + 1], rtol=1e-12)
    np.testing.assert_allclose(far, np.take_along_axis(every, index, axis=1), rtol=1e-12)
    assert (index != np.arange(n)[:, None]).all()


def test_twins_do_not_push_a_point_into_its_own_list(way, rng):
    points = np.repeat(rng.normal(size=(20, 3)), 30, axis=0)
    index, far = near_others(points, 15, threads=1)
    assert (index != np.arange(len(points))[:, None]).all()
    assert (far == 0).all() and (index // 30 == np.arange(len(points))[:, None] // 30).all()
    assert (np.diff(np.sort(index, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize(
    ("n", "others", "m"), [(1, 1, 2), (40, 3000, 4), (3000, 40, 1), (90, 90, 9)]
)
def test_the_nearest_of_some_others(way, n, others, m, rng):
    points, there = rng.normal(size=(n, m)), rng.normal(size=(others, m))
    index, far = nearest_to(points, there, threads=2)
    every = distances(points, there)
    np.testing.assert_array_equal(index, every.argmin(axis=1))
    np.testing.assert_allclose(far, every.min(axis=1), rtol=1e-12)
