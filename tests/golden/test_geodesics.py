"""Geodesics of real people among nearest neighbours, compared with the definition done by hand.

Edges pair by pair, weights by Python's arithmetic, lengths by Floyd and Warshall's three loops.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from oracles.components import principal_components
from scenes.people import load_people
from scipy.spatial.distance import pdist, squareform

from popdesic.engine.minplus import infinity
from popdesic.engine.select import select_backend
from popdesic.geodesic import measure
from popdesic.geodesic.graph import Graph
from popdesic.geodesic.measure import close_weights

pytestmark = pytest.mark.shared

#: Samples of each set, and how many of them are founders.
PEOPLE, FOUNDERS = 160, 110


@pytest.fixture(scope="module")
def distances(shared_data, tmp_path_factory):
    """Distances of some people of a data set in a space, float64 (PEOPLE, PEOPLE)."""

    @cache
    def load(name: str):
        return load_people(shared_data, name, tmp_path_factory.mktemp(name))

    @cache
    def measured(name: str, space: str) -> np.ndarray:
        people = load(name)
        chosen = np.sort(np.random.default_rng(1).permutation(len(people.names))[:PEOPLE])
        if space == "genotypes":
            return people.distances()[np.ix_(chosen, chosen)]
        everyone = np.ones(len(people.names), bool)
        scores = principal_components(people.relationship, everyone, 8)[0]
        return squareform(pdist(scores[chosen]))

    return measured


def joined_by_hand(distances: np.ndarray, founders: np.ndarray, k: int) -> np.ndarray:
    """Pairs within either's radius, and the founders' minimum spanning tree by Kruskal's rule."""
    n = len(distances)
    radius = [sorted(distances[i, j] for j in range(n) if founders[j] and j != i) for i in range(n)]
    joined = np.eye(n, dtype=bool)
    for i in range(n):
        for j in range(n):
            joined[i, j] |= distances[i, j] <= max(radius[i][k - 1], radius[j][k - 1])
    part = list(range(n))
    pairs = [(distances[i, j], i, j) for i in range(n) for j in range(i) if founders[[i, j]].all()]
    for _, i, j in sorted(pairs):
        if part[i] != part[j]:
            joined[i, j] = joined[j, i] = True
            part = [part[i] if one == part[j] else one for one in part]
    return joined


def weights_by_hand(distances, founders, k: int, alpha: float, density: str) -> np.ndarray:
    n = len(distances)
    weights = np.zeros((n, n))
    radius = [
        sorted(distances[i, j] for j in range(n) if founders[j] and distances[i, j] > 0)[k - 1]
        for i in range(n)
    ]
    for i in range(n):
        for j in range(n):
            d = float(distances[i, j])
            weights[i, j] = d**alpha
            if density == "correct" and d > 0:
                weights[i, j] = d * (d / (radius[i] * radius[j]) ** 0.5) ** (alpha - 1)
    return weights


def shortest_by_hand(direct: np.ndarray) -> np.ndarray:
    """Floyd and Warshall's loops, two of them by numpy, in integers of 64 bits."""
    top = int(infinity(direct.dtype))
    lengths = direct.astype(np.int64)
    for k in range(len(lengths)):
        lengths = np.minimum(lengths, lengths[:, [k]] + lengths[[k], :])
    return np.minimum(lengths, top).astype(direct.dtype)


@pytest.mark.parametrize("density", ["keep", "correct"])
@pytest.mark.parametrize(("alpha", "k"), [(1.0, 15), (1.5, 3), (2.0, 15), (8.0, 30)])
@pytest.mark.parametrize("space", ["genotypes", "pcs"])
@pytest.mark.parametrize("name", ["hapmap3_957", "kg1_chr22_564", "hapmap279"])
def test_closures_among_neighbours_equal_the_definition(
    distances, monkeypatch, name, space, alpha, k, density
):
    plain = distances(name, space)
    founders = np.random.default_rng(2).permutation(PEOPLE) < FOUNDERS
    names = [str(i) for i in range(PEOPLE)]
    backend, graph = select_backend("cpu", 2), Graph("knn", k, density)
    weights = weights_by_hand(plain, founders, k, alpha, density)
    weights[~joined_by_hand(plain, founders, k)] = np.inf
    found = []
    for share in (0.0, 1.0):  # the dense closure, then paths along edges
        monkeypatch.setattr(measure, "SPARSE_SHARE", dict.fromkeys(measure.SPARSE_SHARE, share))
        options = {"alpha": alpha, "number": "int64", "graph": graph}
        found.append(close_weights(plain, founders, names, backend, **options))
    assert found[0].lengths.tobytes() == found[1].lengths.tobytes()
    number = found[0].number
    assert number.dtype == "int64" and found[0].statistics.unreachable_pairs == 0
    expected = shortest_by_hand(number.store(weights))
    # Python's arithmetic and numpy's may differ in the last of 53 bits
    rtol = 1e-14 if density == "keep" else 1e-12
    np.testing.assert_allclose(found[0].lengths, expected, rtol=rtol, atol=PEOPLE)
    assert found[0].statistics.indirect_pairs > PEOPLE
