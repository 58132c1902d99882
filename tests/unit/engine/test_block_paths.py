"""Shortest paths from blocks of sources are those of Dijkstra's algorithm, to the last bit."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from popdesic.communities.straighten import neighbor_graph
from popdesic.engine.host.block_paths import LANES, paths_from


def graph_of(kind: str, n: int, rng: np.random.Generator) -> csr_array:
    if kind == "parts":  # two parts, and nodes without an edge
        edges = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 2 / n), 1)
        edges[: n // 2, n // 2 :] = 0
        return csr_array(edges + edges.T)
    points = {
        "row": np.stack([rng.permutation(n), np.zeros(n)], axis=1).astype(float),
        "cloud": rng.normal(size=(n, 3)),
        "twins": rng.integers(0, 3, (n, 2)).astype(float),
    }[kind]
    return neighbor_graph(points, 5)


@pytest.mark.parametrize("kind", ["cloud", "row", "twins", "parts"])
@pytest.mark.parametrize("n", [2, 3, 33, 150])
def test_lengths_are_those_of_dijkstra(kind, n):
    rng = np.random.default_rng()
    graph = graph_of(kind, n, rng)
    for m in {1, min(n, LANES - 1), min(n, LANES + 1), n}:
        sources = rng.permutation(n)[:m]
        found = paths_from(graph, sources, threads=1)
        assert np.array_equal(found, dijkstra(graph, indices=sources)), (kind, n, m)
        assert np.array_equal(found, paths_from(graph, sources, threads=3))


def test_no_source():
    assert paths_from(csr_array(np.ones((3, 3))), np.empty(0, np.int64)).shape == (0, 3)
