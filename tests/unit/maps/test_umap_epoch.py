"""One epoch of UMAP equals the oracle, edge by edge in Python's integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from oracles import reference
from support.layouts import SCENES, draw_layout

from popdesic.maps import layouts, layouts_cpu
from popdesic.maps import layouts as units
from popdesic.maps.densmap import density_tables
from popdesic.maps.fuzzy_graph import FuzzyGraph
from popdesic.maps.layouts import BOUND, FORCE_BITS, POINT_BITS, Density, Layout
from popdesic.maps.layouts_cpu import run_epochs
from popdesic.maps.umap_epoch_cpu import BLOCK, epoch_kernel
from popdesic.maps.umap_layout import force_tables

NAMES = ("force_bits", "share_bits", "step_bits", "interval_bits", "place_bits")
NAMES += ("farthest", "bound")
SIZES = {name: getattr(units, name.upper()) for name in NAMES}
MORE = ("point_bits", "spread_bits", "radius_bits")
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
        about = (graph.starts, graph.ends, shares), tables
        epoch_kernel()(points, moved, *about, epoch, step, draws, seed, first, last)
    return moved


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("spread", [3, 1 << POINT_BITS, 10 << POINT_BITS, BOUND])
def test_an_epoch_equals_the_oracle(n, spread):
    rng = np.random.default_rng(n + spread)
    graph = draw_graph(rng, n, 0.3)
    points = rng.integers(-spread, spread, (n, 2), endpoint=True)
    points[n // 2] = points[0]  # one place
    shares = np.rint(graph.weights * (1 << layouts.SHARE_BITS)).astype(np.int64)
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


def test_blocks_of_edges_equal_the_oracle():
    """A point with more edges than a block, points without any, and blocks that end within one."""
    rng, n = np.random.default_rng(3), BLOCK + 60
    linked = np.zeros((n, n), bool)
    linked[7, 20:] = True
    linked[10:40, 10:40] = True
    weights = np.triu(rng.random((n, n)), 1) * (linked | linked.T)
    weights += weights.T
    heads, ends = map(np.ascontiguousarray, np.nonzero(weights))
    graph = FuzzyGraph(np.searchsorted(heads, np.arange(n + 1)), ends, weights[heads, ends])
    assert np.diff(graph.starts)[7] > BLOCK
    shares = np.rint(graph.weights * (1 << layouts.SHARE_BITS)).astype(np.int64)
    points, tables = rng.integers(-(1 << 22), 1 << 22, (n, 2)), force_tables(*CURVE)
    edges = list(zip(heads.tolist(), ends.tolist(), strict=True))
    for epoch in (0, 7):
        expected = reference.umap_epoch(
            points.tolist(), edges, shares.tolist(), tables, epoch, 19661, 1, draws=5, **SIZES
        )
        for bounds in ([0, n], [0, 7, 8, n]):
            found = run_kernel(points, graph, shares, tables, epoch, 19661, 5, 1, bounds)
            assert found.tolist() == expected


def test_points_stay_within_the_bound():
    """Two close points in a corner push each other out of it, or would."""
    points = np.array([[BOUND, BOUND], [BOUND - 40_000, BOUND - 40_000]])
    for corner in (points, -points):
        graph = FuzzyGraph(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2))
        shares = np.full(2, 1 << layouts.SHARE_BITS)
        tables = force_tables(*CURVE)
        step = 1 << layouts.STEP_BITS
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
    shares = np.full(len(graph.ends), 1 << layouts.SHARE_BITS)
    step = 1 << layouts.STEP_BITS  # nothing is rounded
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
    one = 1 << layouts.SHARE_BITS
    graph = FuzzyGraph(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2))
    points = np.array([[0, 0], [1 << POINT_BITS, 0]])
    for share, expected in ((one, 100), (one // 4, 25), (one // 100 + 1, 1)):
        moves = 0
        for epoch in range(100):
            shares = np.full(2, share)
            step = 1 << layouts.STEP_BITS
            moved = run_kernel(
                points, graph, shares, force_tables(*CURVE), epoch, step, 0, 1, [0, 2]
            )
            moves += (moved != points).any()
        assert moves == expected


# --- densities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "density", "spread"), SCENES[2:])
def test_the_density_term_equals_the_oracle(monkeypatch, n, density, spread):
    """But for the last unit of a force: the oracle's floats are in another order."""
    layout = draw_layout(n, density, spread, epochs=2, dense=True)
    shares, tables = layout.shares.tolist(), (layout.attraction, layout.repulsion)
    heads = np.repeat(np.arange(n), np.diff(layout.starts)).tolist()
    edges = list(zip(heads, layout.ends.tolist(), strict=True))
    steps, seed = layout.steps.tolist(), layout.seed
    now = layout.points.tolist()
    plain = reference.umap_epoch(now, edges, shares, tables, 0, steps[0], seed, draws=5, **SIZES)
    then = reference.umap_epoch(plain, edges, shares, tables, 1, steps[1], seed, draws=5, **SIZES)
    sizes = SIZES | {name: getattr(units, name.upper()) for name in MORE}
    expected = reference.umap_density(plain, edges, shares, layout.density, steps[1], then, **sizes)
    found = run_epochs(layout)
    degree = np.diff(layout.starts).max()
    assert np.abs(found - np.clip(expected, -BOUND, BOUND)).max() <= degree + 2
    assert n < 16 or (found != np.array(then)).any()
    monkeypatch.setattr(layouts_cpu, "EDGES_OF_THREAD", 10)
    threads = [run_epochs(layout, threads).tobytes() for threads in (2, 3, 7)]
    assert set(threads) == {found.tobytes()}


@pytest.mark.parametrize("curve", [(1.932809, 0.790495), CURVE, (0.114976, 1.929235)])
def test_the_density_term_is_the_gradient_of_a_correlation(curve):
    """Finite differences of cov(re, R) / s over 8 points, all edges of share 1 and unclipped."""
    a, b = curve
    rng, n = np.random.default_rng(3), 8
    points = rng.normal(size=(n, 2)) * 2
    wanted = rng.normal(size=n)
    wanted = (wanted - wanted.mean()) / wanted.std()
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j and (i + j) % 3]

    def correlation(points):
        phi, wide = np.zeros(n), np.zeros(n)
        for i, j in pairs:
            d2 = ((points[i] - points[j]) ** 2).sum()
            nearness = 1 / (1 + a * d2**b)
            phi[i] += nearness
            wide[i] += nearness * d2
        re = np.log(1e-8 + wide / phi)
        return re @ wanted / np.sqrt(re.var() + 0.1)

    slopes = np.zeros((n, 2))
    for i in range(n):
        for axis in range(2):
            moved = np.repeat(points[None], 2, axis=0)
            moved[:, i, axis] += (1e-5, -1e-5)
            slopes[i, axis] = (correlation(moved[0]) - correlation(moved[1])) / 2e-5
    strength, step = 0.01, 1 << 16
    whole = np.rint(points * (1 << POINT_BITS)).astype(np.int64)
    starts = np.searchsorted([i for i, _ in pairs], np.arange(n + 1))
    term = Density(
        np.rint(wanted * (1 << layouts.RADIUS_BITS)).astype(np.int64),
        *density_tables(a, b),
        strength,
        0,
    )
    zeros = np.zeros(2000, np.int64)
    shares = np.full(len(pairs), 1 << layouts.SHARE_BITS)
    ends = np.array([j for _, j in pairs])
    layout = Layout(whole, starts, ends, shares, zeros, zeros, np.array([step]), 0, 1, term)
    moves = (run_epochs(layout) - whole) / (1 << POINT_BITS)
    assert np.corrcoef(moves.ravel(), slopes.ravel())[0, 1] > 0.99
