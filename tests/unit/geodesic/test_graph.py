"""The graph of nearest neighbours, and closures on it."""

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

from popdesic.engine.minplus import infinity
from popdesic.engine.select import select_backend
from popdesic.geodesic import measure
from popdesic.geodesic.block_paths_cpu import sparse_paths
from popdesic.geodesic.graph import COMPLETE, Graph, neighbor_edges, spanning_tree
from popdesic.geodesic.measure import close_weights
from popdesic.geodesic.weights import fermat_distances


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def draw(rng, n: int, dimensions: int = 2) -> np.ndarray:
    """Distances of random points, two of them equal."""
    points = rng.normal(size=(n, dimensions))
    points[-1] = points[0]
    return squareform(pdist(points))


def slow_edges(distances, founders, k):
    """The definition, pair by pair."""
    n = len(distances)
    radius = []
    for i in range(n):
        far = sorted(distances[i, j] for j in range(n) if founders[j] and j != i)
        far = [d for d in far if np.isfinite(d)]
        radius.append(far[min(k, len(far)) - 1] if far else 0.0)
    joined = np.eye(n, dtype=bool)
    for i in range(n):
        for j in range(n):
            if i != j and np.isfinite(distances[i, j]):
                joined[i, j] |= distances[i, j] <= max(radius[i], radius[j])
    return joined


@pytest.mark.parametrize("k", [1, 3, 10, 99])
def test_edges_against_the_definition(rng, k):
    distances = draw(rng, 60)
    distances[3, :] = distances[:, 3] = np.inf  # comparable with three others only
    distances[3, 4:7] = distances[4:7, 3] = 1.0
    distances[3, 3] = 0.0
    founders = rng.random(60) < 0.6
    edges = neighbor_edges(distances, founders, k)
    expected = slow_edges(distances, founders, k)
    tree = np.zeros_like(edges)
    who = np.flatnonzero(founders)
    for i, j in who[spanning_tree(distances[np.ix_(who, who)])]:
        tree[i, j] = tree[j, i] = True
    np.testing.assert_array_equal(edges, expected | tree)
    np.testing.assert_array_equal(edges, edges.T)


def test_spanning_tree_against_scipy(rng):
    distances = squareform(pdist(rng.normal(size=(70, 3))))
    edges = spanning_tree(distances)
    assert len(edges) == 69
    total = distances[edges[:, 0], edges[:, 1]].sum()
    assert total == pytest.approx(minimum_spanning_tree(distances).sum(), rel=1e-12)


def test_spanning_forest_of_parts_that_cannot_be_compared(rng):
    distances = draw(rng, 20)
    distances[:8, 8:] = distances[8:, :8] = np.inf
    edges = spanning_tree(distances)
    assert len(edges) == 18
    assert ((edges < 8).all(axis=1) | (edges >= 8).all(axis=1)).all()


def test_arrivals_remove_no_edge(rng):
    distances = draw(rng, 80)
    founders = np.arange(80) < 40
    few = neighbor_edges(distances[:55, :55], founders[:55], 4)
    many = neighbor_edges(distances, founders, 4)
    np.testing.assert_array_equal(many[:55, :55], few)


def test_one_neighbour_leaves_the_founders_connected(rng):
    points = np.concatenate([rng.normal(size=(30, 2)), 100 + rng.normal(size=(30, 2))])
    distances = squareform(pdist(points))
    edges = neighbor_edges(distances, np.ones(60, bool), 1)
    weights = np.where(edges, distances, 0.0)
    assert np.isfinite(shortest_path(weights, directed=False)).all()


def test_the_number_of_all_founders_gives_the_complete_graph(rng):
    distances = draw(rng, 40)
    assert neighbor_edges(distances, np.ones(40, bool), 39).all()


def close(distances, graph, backend, alpha=2.0, number="auto", founders=None):
    n = len(distances)
    founders = np.ones(n, bool) if founders is None else founders
    names = [str(k) for k in range(n)]
    return close_weights(
        distances, founders, names, backend, alpha=alpha, number=number, graph=graph
    )


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("k", [2, 7])
def test_lengths_against_scipy(rng, alpha, k):
    distances = squareform(pdist(rng.normal(size=(120, 3))))
    found = close(distances, Graph("knn", k), select_backend("cpu", 2), alpha)
    edges = neighbor_edges(distances, np.ones(120, bool), k)
    exact = shortest_path(np.where(edges, distances**alpha, 0.0), directed=False)
    np.testing.assert_allclose(found.number.value(found.lengths), exact, rtol=2e-6)
    assert found.statistics.unreachable_pairs == 0


def test_alpha_one_is_isomap(rng):
    """Where the neighbour graph is connected, scikit-learn's Isomap has the same geodesics."""
    points = rng.uniform(size=(150, 2))
    distances = squareform(pdist(points))
    graph = Graph("knn", 12)
    found = close(distances, graph, select_backend("cpu", 1), 1.0, "float64")
    peer = Isomap(n_neighbors=12, n_components=2).fit(points).dist_matrix_
    np.testing.assert_allclose(found.lengths, peer, rtol=1e-9)


def test_long_paths_do_not_overflow(rng):
    """On a spiral the longest path is many times the longest edge and the largest distance."""
    turn = np.linspace(0, 8 * np.pi, 400)
    distances = squareform(pdist((turn * [np.cos(turn), np.sin(turn)]).T))
    for number in ("int32", "int64", "auto"):
        found = close(distances, Graph("knn", 2), select_backend("cpu", 1), 1.0, number)
        lengths = found.number.value(found.lengths)
        exact = close(distances, Graph("knn", 2), select_backend("cpu", 1), 1.0, "float64").lengths
        assert exact.max() > 4 * distances.max()
        np.testing.assert_allclose(lengths, exact, rtol=1e-5, atol=1e-6 * exact.max())


@pytest.mark.parametrize("number", ["int32", "int64", "auto"])
def test_an_edge_much_heavier_than_any_path_does_not_overflow(number):
    """The scale is that of paths: at alpha = 8, twenty short steps weigh less than one long."""
    place = np.arange(200.0)[:, None]
    distances = squareform(pdist(place))
    found = close(distances, Graph("knn", 40), select_backend("cpu", 1), 8.0, number)
    lengths = found.number.value(found.lengths)
    np.testing.assert_allclose(lengths, distances, rtol=1e-5)
    assert (found.direct >= 0).all()


@pytest.mark.parametrize("number", ["int32", "int64"])
@pytest.mark.parametrize("k", [1, 4, 30])
def test_dijkstra_and_the_dense_closure_agree_in_every_byte(rng, monkeypatch, number, k):
    distances = draw(rng, 200)
    distances[5, :] = distances[:, 5] = np.inf  # alone with one other
    distances[5, 6] = distances[6, 5] = 1.0
    distances[5, 5] = 0.0
    backend = select_backend("cpu", 2)
    found = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(measure, "SPARSE_SHARE", {number: share})
        found.append(close(distances, Graph("knn", k), backend, 1.5, number).lengths)
    assert found[0].tobytes() == found[1].tobytes()


def test_dijkstra_leaves_unreachable_pairs_infinite():
    direct = np.full((6, 6), infinity(np.dtype(np.int32)), np.int32)
    np.fill_diagonal(direct, 0)
    for i, j, weight in ((0, 1, 5), (1, 2, 0), (3, 4, 7)):
        direct[i, j] = direct[j, i] = weight
    lengths = sparse_paths(direct, 2)
    assert lengths[0, 2] == 5
    assert lengths[3, 4] == 7
    assert (lengths[5, :5] == infinity(lengths.dtype)).all()
    assert lengths[0, 3] == infinity(lengths.dtype)


@pytest.mark.parametrize("number", ["int32", "int64"])
def test_a_continued_closure_has_the_same_bytes(rng, number):
    distances = draw(rng, 130, 5)
    founders = np.arange(130) < 70
    backend, graph = select_backend("cpu", 2), Graph("knn", 5)
    names = [str(k) for k in range(130)]
    options = {"alpha": 1.5, "number": number, "graph": graph}
    before = close_weights(distances[:90, :90], founders[:90], names[:90], backend, **options)
    later = close_weights(distances, founders, names, backend, known=before, **options)
    whole = close_weights(distances, founders, names, backend, **options)
    assert later.record["continued"]
    assert not whole.record["continued"]
    assert later.lengths.tobytes() == whole.lengths.tobytes()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 4.0, 8.0])
def test_the_root_restores_the_unit(alpha):
    distances = np.array([0.0, 0.3, 2.0, 17.0, np.inf])
    np.testing.assert_allclose(fermat_distances(distances**alpha, alpha), distances, rtol=1e-15)


def test_every_pair_of_the_complete_graph_keeps_its_weight(rng):
    distances = draw(rng, 10)
    assert COMPLETE.keep_edges(distances, distances, np.ones(10, bool)) is distances
