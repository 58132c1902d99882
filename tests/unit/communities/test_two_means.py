"""The halves of 2-means are those of scikit-learn's KMeans with the same draws."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from popdesic.communities.two_means_cpu import two_means


@pytest.mark.parametrize("n", [2, 3, 20, 300])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_halves_are_those_of_scikit_learn(n, k, rng):
    points = rng.normal(size=(n, k))
    points[: n // 3] += 4
    expected = KMeans(2, n_init=8, random_state=0).fit_predict(points) == 1
    found = two_means(points)
    if (found != expected).any() and (found == expected).any():
        # Two optima within the rounding of sums: both are as good.
        inertia = [_squares(points, side) for side in (found, expected)]
        assert inertia[0] == pytest.approx(inertia[1], rel=1e-9)


def test_equal_points_are_one_half():
    assert not two_means(np.ones((30, 2))).any()


def _squares(points, side):
    return sum(((own - own.mean(axis=0)) ** 2).sum() for own in (points[side], points[~side]))
