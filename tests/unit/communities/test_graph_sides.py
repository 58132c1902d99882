"""Halves of a graph, compared with SciPy's components and with sums over a dense matrix."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from popdesic.communities.graph_sides_cpu import beyond_edge, settle_sides, sides_of_edges


def neighbors_of(graph: csr_array) -> tuple[np.ndarray, np.ndarray]:
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def test_beyond_an_edge_lies_one_of_the_two_parts_without_it(rng):
    for n in (2, 3, 40):
        tree = csr_array(minimum_spanning_tree(csr_array(rng.random((n, n)) + 0.1)))
        both = neighbors_of(csr_array(tree + tree.T))
        for first, last in np.argwhere(tree.toarray()):
            without = tree.toarray()
            without[first, last] = 0
            _, part = connected_components(csr_array(without), directed=False)
            assert np.array_equal(beyond_edge(*both, first, last), part == part[first])
            assert np.array_equal(beyond_edge(*both, last, first), part == part[last])


def test_nodes_move_to_most_of_their_neighbors(rng):
    for n, rounds in ((1, 3), (2, 1), (30, 1), (60, 2), (60, 10)):
        dense = np.triu(rng.random((n, n)) < 5 / n, 1)
        dense |= dense.T
        side = start = rng.random(n) < 0.5
        for _ in range(rounds):
            share, degree = 2 * (dense @ side.astype(int)), dense.sum(axis=1)
            side = np.where(share == degree, side, share > degree)
        found = settle_sides(*neighbors_of(csr_array(dense)), start, rounds)
        assert np.array_equal(found, side)


def test_halves_beyond_edges_are_those_of_each_edge_alone(rng):
    for n, fewest, most in ((2, 1, 3), (30, 3, 4), (60, 10, 50), (60, 31, 5)):
        weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 6 / n), 1)
        weights += np.diag(np.full(n - 1, 2.0), 1)  # one part
        graph = csr_array(weights + weights.T)
        tree = csr_array(minimum_spanning_tree(graph))
        joined, both = neighbors_of(graph), neighbors_of(csr_array(tree + tree.T))
        edges = rng.permutation(np.argwhere(tree.toarray()))
        sides = [settle_sides(*joined, beyond_edge(*both, *edge), 10) for edge in edges]
        sides = [side for side in sides if fewest <= side.sum() <= n - fewest][:most]
        first, last = np.ascontiguousarray(edges.T)
        found = sides_of_edges(*both, *joined, first, last, 10, fewest, most)
        assert found.tolist() == [side.tolist() for side in sides]
