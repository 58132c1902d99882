"""One epoch of UMAP equals the oracle, edge by edge in Python's integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import reference

from popdesic.embedding.fuzzy_graph import FuzzyGraph
from popdesic.embedding.umap_layout import force_tables
from popdesic.engine.host import umap_epoch
from popdesic.engine.host.umap_epoch import BOUND, FORCE_BITS, POINT_BITS, epoch_kernel

NAMES = ("force_bits", "share_bits", "step_bits", "interval_bits", "place_bits")
NAMES += ("farthest", "bound")
SIZES = {name: getattr(umap_epoch, name.upper()) for name in NAMES}
CURVE = 0.992176, 1.112253


def draw_graph(rng, n: int, density: float) -> FuzzyGraph:
    """A symmetric graph with equal weights in both directions; some samples may have no edge."""
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    weights += weights.T
    rows, ends = map(np.ascontiguousarray, np.nonzero(weights))
    starts = np.searchsorted(rows, np.arange(n + 1))
    return FuzzyGraph(starts, ends, weights[rows, ends])


def run_kernel(points, graph, shares, tables, epoch, step, draws, seed, bounds):
    moved = np.empty_like(points)
    for first, last in pairwise(bounds):
        about = (graph.starts, graph.ends, shares, *tables)
        epoch_kernel()(points, moved, *about, epoch, step, draws, seed, first, last)
    return moved


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("spread", [3, 1 << POINT_BITS, 10 << POINT_BITS, BOUND])
def test_an_epoch_equals_the_oracle(n, spread):
    rng = np.random.default_rng(n + spread)
    graph = draw_graph(rng, n, 0.3)
    points = rng.integers(-spread, spread, (n, 2), endpoint=True)
    points[n // 2] = points[0]  # one place
    shares = np.rint(graph.weights * (1 << umap_epoch.SHARE_BITS)).astype(np.int64)
    tables = force_tables(*CURVE)
    edges = list(
        zip(
            np.repeat(np.arange(n), np.diff(graph.starts)).tolist(),
            graph.ends.tolist(),
            strict=True,
        )
    )
    for epoch, step, seed in ((0, 19661, 1), (7, 65536, 2**32 + 5), (499, 39, 1)):
        expected = reference.umap_epoch(
            points.tolist(), edges, shares.tolist(), tables, epoch, step, seed, draws=5, **SIZES
        )
        for bounds in ([0, n], [0, n // 3, n // 2, n]):
            found = run_kernel(points, graph, shares, tables, epoch, step, 5, seed, bounds)
            assert found.tolist() == expected


def test_points_stay_within_the_bound():
    """Two close points in a corner push each other out of it, or would."""
    points = np.array([[BOUND, BOUND], [BOUND - 40_000, BOUND - 40_000]])
    for corner in (points, -points):
        graph = FuzzyGraph(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2))
        shares = np.full(2, 1 << umap_epoch.SHARE_BITS)
        tables = force_tables(*CURVE)
        step = 1 << umap_epoch.STEP_BITS
        found = run_kernel(corner, graph, shares, tables, 0, step, 5, 1, [0, 2])
        expected = reference.umap_epoch(
            corner.tolist(), [[0, 1], [1, 0]], shares.tolist(), tables, 0, step, 1, draws=5, **SIZES
        )
        assert found.tolist() == expected and np.abs(found).max() == BOUND
        assert np.abs(found[1]).max() < BOUND - 40_000


def test_pulls_of_an_epoch_cancel():
    """What pulls one end of an edge pulls the other as much: without draws the middle stays."""
    rng = np.random.default_rng(1)
    graph = draw_graph(rng, 30, 0.4)
    points = rng.integers(-(5 << POINT_BITS), 5 << POINT_BITS, (30, 2))
    shares = np.full(len(graph.ends), 1 << umap_epoch.SHARE_BITS)
    step = 1 << umap_epoch.STEP_BITS  # nothing is rounded
    found = run_kernel(points, graph, shares, force_tables(*CURVE), 3, step, 0, 1, [0, 30])
    assert (found != points).any()
    assert found.sum(axis=0).tolist() == points.sum(axis=0).tolist()


@pytest.mark.parametrize("curve", [(1.932809, 0.790495), CURVE, (0.114976, 1.929235)])
def test_tables_hold_the_forces_of_umap(curve):
    """Interpolated to two in a thousand, or to the unit of the tables."""
    a, b = curve
    rng = np.random.default_rng(2)
    for squared in (2.0 ** rng.uniform(4, 60, 2_000)).astype(np.int64).tolist():
        d2 = squared * 2.0 ** (-2 * POINT_BITS)
        pull = 2 * a * b * d2 ** (b - 1) / (1 + a * d2**b)
        push = 2 * b / ((0.001 + d2) * (1 + a * d2**b))
        for table, force in zip(force_tables(a, b), (pull, push), strict=True):
            found = reference.table_value(table, squared, *[SIZES[k] for k in NAMES[3:5]])
            unit = 2.0**-FORCE_BITS
            assert abs(found * unit - force) <= 2e-3 * force + 1.5 * unit


def test_active_edges_are_spread_over_epochs():
    """An edge of share s is active in s of all epochs, one of weight 1 in each."""
    one = 1 << umap_epoch.SHARE_BITS
    graph = FuzzyGraph(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2))
    points = np.array([[0, 0], [1 << POINT_BITS, 0]])
    for share, expected in ((one, 100), (one // 4, 25), (one // 100 + 1, 1)):
        moves = 0
        for epoch in range(100):
            shares = np.full(2, share)
            step = 1 << umap_epoch.STEP_BITS
            moved = run_kernel(
                points, graph, shares, force_tables(*CURVE), epoch, step, 0, 1, [0, 2]
            )
            moves += (moved != points).any()
        assert moves == expected
