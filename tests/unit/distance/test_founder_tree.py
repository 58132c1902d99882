"""The founders' tree from lists of neighbours is that of the matrix of all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from oracles.reference import nearest, outside_of
from scipy.spatial.distance import pdist, squareform

from popdesic.distance.founder_tree import founder_tree
from popdesic.geodesic.graph import spanning_tree


def draw(seed: int, n: int, clusters: int, whole: bool) -> np.ndarray:
    """Distances of people in clusters; whole numbers make many ties."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2)) + 12 * rng.integers(0, clusters, (n, 1))
    distances = squareform(pdist(np.rint(2 * points) if whole else points))
    return distances


def kruskal(distances: np.ndarray) -> list[tuple[int, int]]:
    part = list(range(len(distances)))
    pairs = combinations(range(len(distances)), 2)
    edges = []
    for i, j in sorted(pairs, key=lambda pair: (distances[pair], pair)):
        if np.isfinite(distances[i, j]) and part[i] != part[j]:
            edges.append((i, j))
            part = [part[i] if p == part[j] else p for p in part]
    return sorted(edges)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (17, 3), (60, 5), (60, 200)])
def test_the_tree_of_lists_is_that_of_all_pairs(seed, whole, n, k):
    rng = np.random.default_rng(seed)
    distances = draw(seed, n, 1 + seed % 4, whole)
    founders = rng.random(n) < (1.0 if seed % 2 else 0.6)
    founders[0] = True
    if seed % 5 == 4:  # two that cannot be compared with anybody but each other
        lost = [0, n - 1]
        distances[lost] = distances[:, lost] = np.inf
        distances[0, n - 1] = distances[n - 1, 0] = 1.0
        np.fill_diagonal(distances, 0.0)
    index = nearest(distances, min(k, n - 1))
    far = np.take_along_axis(distances, index, 1)
    who = np.flatnonzero(founders)
    among = distances[np.ix_(who, who)]
    edges, lengths = founder_tree(index, far, founders, outside_of(among))
    expected = [tuple(who[[i, j]]) for i, j in kruskal(among)]
    assert [tuple(edge) for edge in edges] == expected
    np.testing.assert_array_equal(lengths, [distances[i, j] for i, j in expected])
    prim = sorted(tuple(who[sorted(edge)]) for edge in spanning_tree(among))
    assert prim == expected
