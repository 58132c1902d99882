"""Shortest paths from blocks of sources are those of Dijkstra's algorithm, to the last bit."""

import numpy as np
import pytest
from scenes.graphs import draw_graph, edges_of_weights
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from popdesic.communities.straighten import edges_of, neighbor_graph
from popdesic.geodesic import block_paths_cpu
from popdesic.geodesic.block_paths_cpu import LANES, paths_from
from popdesic.geodesic.sparse_paths_cpu import lengths_from


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
def test_lengths_are_those_of_dijkstra(kind, n, rng):
    graph = graph_of(kind, n, rng)
    for m in {1, min(n, LANES - 1), min(n, LANES + 1), n}:
        sources = rng.permutation(n)[:m]
        found = paths_from(edges_of(graph), sources, threads=1)
        assert np.array_equal(found, dijkstra(graph, indices=sources)), (kind, n, m)
        assert np.array_equal(found, paths_from(edges_of(graph), sources, threads=3))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("n", "degree"), [(2, 2), (40, 1), (90, 3), (300, 8)])
@pytest.mark.parametrize("blocked", [0.0, 0.3])
@pytest.mark.parametrize("renumbered", [1, 1000])
def test_blocked_nodes_and_any_number(monkeypatch, n, degree, dtype, blocked, renumbered, rng):
    monkeypatch.setattr(block_paths_cpu, "RENUMBERED", renumbered)
    edges = edges_of_weights(*draw_graph(rng, n, degree, dtype, blocked))
    sources = rng.integers(0, n, min(n, 3 * LANES))  # some twice
    found = paths_from(edges, sources, threads=2)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, lengths_from(edges, sources))


def test_no_source():
    edges = edges_of(csr_array(np.ones((3, 3))))
    assert paths_from(edges, np.empty(0, np.int64)).shape == (0, 3)
