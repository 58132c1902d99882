"""No length of a path is off by more than the error bound of its number type, near or far."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import popdesic
from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic import weights as weights_module
from popdesic.geodesic.graph import COMPLETE, Graph
from popdesic.geodesic.measure import close_weights
from popdesic.geodesic.near_graph import NearGraph

DTYPES = ("int32", "int64", "float32", "float64")


def exact_lengths(weights: np.ndarray) -> np.ndarray:
    """Floyd and Warshall's algorithm in fractions, without any rounding; None without a path."""
    n = len(weights)
    w = [[Fraction(x) if np.isfinite(x) else None for x in row] for row in weights.tolist()]
    for k, i, j in itertools.product(range(n), repeat=3):
        if w[i][k] is not None and w[k][j] is not None:
            through = w[i][k] + w[k][j]
            if w[i][j] is None or through < w[i][j]:
                w[i][j] = through
    return w


@st.composite
def spread_distances(draw) -> np.ndarray:
    """Up to nine samples at distances over 12 orders of magnitude: duplicates, pairs without one.

    The scale of each sample is drawn, so that near samples lie beside far ones.
    """
    n = draw(st.integers(2, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    lowest = draw(st.floats(-6, 6))
    span = draw(st.sampled_from([0, 1, 3, 12]))
    rng = np.random.default_rng(seed)
    scale = 10.0 ** (lowest - rng.uniform(0, span, n))
    d = np.maximum(scale[:, None], scale) * rng.uniform(0.5, 1, (n, n))
    if draw(st.booleans()):  # an interval apart, whatever the scale: paths of many short steps
        d = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) * scale.min() + d * 1e-3
    if draw(st.booleans()):
        d = np.rint(d)
    d = np.triu(d, 1)
    d[rng.random((n, n)) < draw(st.sampled_from([0, 0.2]))] = 0
    missing = np.triu(rng.random((n, n)) < draw(st.sampled_from([0, 0.2])), 2)
    d[missing] = np.inf
    return d + d.T


@settings(max_examples=250, deadline=None)
@given(
    distances=spread_distances(),
    alpha=st.one_of(st.integers(1, 24), st.floats(1, 24)),
    number=st.sampled_from(["auto", "auto", *DTYPES]),
    graph=st.sampled_from([COMPLETE, Graph("knn", 2), Graph("complete", 3, "correct")]),
    n_founders=st.integers(1, 9),
)
def test_no_length_is_off_by_more_than_the_bound(distances, alpha, number, graph, n_founders):
    """Against fractions: every pair, whatever the type, the graph and the founders' scale."""
    n = len(distances)
    founders = np.arange(n) < n_founders
    names = [f"S{k}" for k in range(n)]
    try:
        weights = graph.edge_weights(distances, founders, alpha)
        found = close_weights(
            distances, founders, names, CpuBackend(1), alpha=alpha, number=number, graph=graph
        )
    except UserError as refused:  # said, not wrong
        event(str(refused).split(":")[-1].strip()[:40])
        assert any(word in str(refused) for word in ("no comparable", "too small", "float32"))
        return
    event(f"{number}: {found.number.dtype}")
    lengths, bound = found.number.value(found.lengths), found.number.error_bound
    if number == "auto":
        assert bound <= weights_module.FIXED_TOLERANCE
    for i, row in enumerate(exact_lengths(weights)):
        for j, exact in enumerate(row):
            if exact is None:
                assert lengths[i, j] == np.inf
            else:
                assert abs(Fraction(lengths[i, j]) - exact) <= Fraction(bound) * exact


@pytest.mark.parametrize("alpha", [2, 4, 8])
def test_near_samples_beside_far_ones(alpha):
    """They were rounded to whole units, and to zero at alpha 4, beside far samples."""
    distances = np.array([[0, 1.1, 2.1], [1.1, 0, 1.1], [2.1, 1.1, 0]])
    far = np.full((5, 5), 9000.1)
    far[:3, :3], far[:3, 3], far[3, :3] = distances, 5000.1, 5000.1
    np.fill_diagonal(far, 0)
    whole = popdesic.shortest_paths(far, alpha, device="cpu")
    found = whole.lengths
    np.testing.assert_allclose(found[0, 1], 1.1**alpha, rtol=whole.error_bound)
    np.testing.assert_allclose(found[0, 2], 2 * 1.1**alpha, rtol=whole.error_bound)
    order = [3, 4, 0, 1, 2]  # the near ones arrive later
    turned = far[np.ix_(order, order)]
    first = popdesic.shortest_paths(turned[:3, :3], alpha, device="cpu")
    later = popdesic.insert(first, turned[3:], device="cpu")
    assert later.error_bound <= weights_module.FIXED_TOLERANCE
    np.testing.assert_allclose(later.lengths, found[np.ix_(order, order)], rtol=1e-7)
    about = near_number(far, alpha)
    assert about.error_bound <= weights_module.FIXED_TOLERANCE


def near_number(distances: np.ndarray, alpha: float) -> weights_module.Number:
    """The number type of a graph from lists of neighbours."""
    n = len(distances)
    ends = np.argwhere(np.triu(np.ones((n, n), bool), 1))
    far = distances[ends[:, 0], ends[:, 1]]
    graph = NearGraph(n, ends, far, far**alpha, np.empty(0), 0)
    return graph.number(np.ones(n, bool))


def test_distances_whose_weights_vanish_are_refused():
    """Their pairs had the length zero, as duplicates have."""
    distances = np.array([[0, 1e-20, 1], [1e-20, 0, 1], [1, 1, 0]])
    with pytest.raises(UserError, match=r"alpha = 20 .* distance 1e-20 too small for float64"):
        COMPLETE.edge_weights(distances, np.ones(3, bool), 20.0)
    with pytest.raises(UserError, match=r"density-corrected weight of the distance 1e-20 too sm"):
        Graph("complete", 2, "correct").edge_weights(distances, np.ones(3, bool), 20.0)
    with pytest.raises(ValueError, match=r"distance 1e-20 .* too small for float64"):
        popdesic.shortest_paths(distances, 20)
