"""UMAP's graph and layout: equal to oracles and, where they agree, to umap-learn."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from oracles import reference
from scipy.optimize import curve_fit
from scipy.spatial.distance import pdist, squareform
from support.one_map import measure_map, umap_layout

from popdesic.core.errors import UserError
from popdesic.maps import fuzzy_graph as fuzzy_graphs
from popdesic.maps import layouts as units
from popdesic.maps import layouts_cpu, umap_epoch_cpu
from popdesic.maps import umap_layout as layouts
from popdesic.maps.fuzzy_graph import fuzzy_graph, membership_strengths
from popdesic.maps.knn import nearest_neighbors
from popdesic.maps.umap_layout import (
    DRAWS,
    STEP_FALL,
    draw_maps,
    find_nearest,
    fit_curve,
    force_tables,
    optimize_layout,
    start_points,
)

OPTIONS = {"neighbors": 15, "min_dist": 0.3}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def grouped(n: int) -> np.ndarray:
    """Points (n, 6) of seven groups of unequal spread."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 7, n)
    centre = rng.normal(0, 4, (7, 6))
    return centre[group] + rng.normal(size=(n, 6)) * rng.uniform(0.3, 1.2, 7)[group][:, None]


def dense(graph) -> np.ndarray:
    n = len(graph.starts) - 1
    found = np.zeros((n, n))
    found[np.repeat(np.arange(n), np.diff(graph.starts)), graph.ends] = graph.weights
    return found


def peer_graph(near: np.ndarray, far: np.ndarray) -> np.ndarray:
    from umap.umap_ import fuzzy_simplicial_set

    n, k = near.shape
    itself = np.arange(n)[:, None]
    return fuzzy_simplicial_set(
        np.zeros((n, 1)),
        k + 1,
        np.random.RandomState(1),
        "precomputed",
        knn_indices=np.concatenate([itself, near], axis=1).astype(np.int32),
        knn_dists=np.concatenate([0.0 * itself, far], axis=1).astype(np.float32),
    )[0].toarray()


def peer_map(near, far, start, seed):
    import umap

    n, k = near.shape
    itself = np.arange(n)[:, None]
    known = (
        np.concatenate([itself, near], axis=1).astype(np.int32),
        np.concatenate([0.0 * itself, far], axis=1).astype(np.float32),
    )
    first = (start[:, :2] / np.abs(start[:, :2]).max()).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn cannot transform new data: not wanted
        model = umap.UMAP(
            n_neighbors=k + 1,
            min_dist=OPTIONS["min_dist"],
            random_state=seed,
            n_jobs=1,
            init=first,
            precomputed_knn=known,
            force_approximation_algorithm=True,
        )
        return model.fit_transform(first).astype(np.float64)


# --- graph --------------------------------------------------------------------------------------


@pytest.mark.parametrize("twins", [0, 8, 20])
@pytest.mark.parametrize("k", [1, 2, 14, 39])
def test_graph_equals_that_of_umap_learn(rng, k, twins):
    """umap-learn computes in float32 and ends its search for sigma at 1e-5."""
    points = rng.normal(size=(40, 3)) * rng.uniform(0.1, 5, (40, 1))
    points[:twins] = points[0]
    near, far = nearest_neighbors(squareform(pdist(points)).__getitem__, 40, k)
    np.testing.assert_allclose(dense(fuzzy_graph(near, far, 0.0)), peer_graph(near, far), atol=2e-3)


def test_strengths_of_twins_and_of_near_ties_equal_those_of_umap_learn():
    """Nobody but twins is at 0, and sigma has a least value where many are equally near."""
    from umap.umap_ import compute_membership_strengths, smooth_knn_dist

    far = np.array(
        [
            [0.0] * 7 + [1.5, 1.6, 4, 5, 6],
            [1.0] * 9 + [1.001, 1.002, 1.01],
            [0.0] * 12,
            [0.0] * 10 + [1e-4, 2e-3],
            np.linspace(1, 3, 12),
        ]
    )
    known = np.concatenate([np.zeros((5, 1)), far], axis=1).astype(np.float32)
    near = np.tile(np.arange(100, 113), (5, 1)).astype(np.int32)
    sigma, rho = smooth_knn_dist(known, 13.0)
    expected = compute_membership_strengths(near, known, sigma, rho)[2].reshape(5, 13)[:, 1:]
    found = membership_strengths(far)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert found[0, 7] == 1 and 0.05 < found[1, 9] < 0.9


def test_strengths_add_up_and_have_no_unit(rng):
    far = np.sort(rng.uniform(1, 3, (50, 9)), axis=1)
    strengths = membership_strengths(far)
    np.testing.assert_allclose(strengths.sum(axis=1), np.log2(10), rtol=1e-12)
    assert (strengths[:, 0] == 1).all()
    for scale in (2.0**200, 2.0**-200):
        np.testing.assert_array_equal(membership_strengths(scale * far), strengths)


def test_a_graph_does_not_depend_on_threads(rng, monkeypatch):
    monkeypatch.setattr(fuzzy_graphs, "ROWS_OF_TASK", 7)
    far = np.sort(rng.uniform(0, 3, (50, 9)), axis=1)
    far[::5] = 0
    far[:, 0] *= rng.random(50) < 0.5
    strengths = [membership_strengths(far, threads).tobytes() for threads in (1, 2, 7)]
    monkeypatch.undo()
    assert set(strengths) == {membership_strengths(far).tobytes()}


def test_union_of_views_and_light_edges(rng):
    near, far = nearest_neighbors(squareform(pdist(rng.normal(size=(25, 2)))).__getitem__, 25, 6)
    views = np.zeros((25, 25))
    np.put_along_axis(views, near, membership_strengths(far), 1)
    union = views + views.T - views * views.T
    np.testing.assert_array_equal(dense(fuzzy_graph(near, far, 0.0)), union)
    heavy = np.where(union >= 0.2 * union.max(), union, 0)
    graph = fuzzy_graph(near, far, 0.2)
    np.testing.assert_array_equal(dense(graph), heavy)
    assert (
        np.diff(graph.ends)[np.diff(np.repeat(np.arange(25), np.diff(graph.starts))) == 0] > 0
    ).all()


def test_equal_samples_are_joined_fully():
    near, far = nearest_neighbors(np.zeros((6, 6)).__getitem__, 6, 3)
    graph = fuzzy_graph(near, far, 0.002)
    assert (graph.weights == 1).all() and (np.diff(graph.starts) >= 3).all()


# --- layout -------------------------------------------------------------------------------------


@pytest.mark.parametrize("min_dist", [0.0, 0.1, 0.3, 0.8, 1.0])
def test_curve_is_the_least_squares_fit(min_dist):
    x = np.linspace(0, 3, 300)
    wanted = np.where(x < min_dist, 1.0, np.exp(-(x - min_dist)))
    expected = curve_fit(lambda x, a, b: 1 / (1 + a * x ** (2 * b)), x, wanted)[0]
    np.testing.assert_allclose(fit_curve(min_dist), expected, rtol=1e-5)


def test_a_layout_is_a_sequence_of_epochs(rng, monkeypatch):
    """Start, steps that fall to 0 and five draws: the oracle's epochs, one after the other."""
    monkeypatch.setattr(layouts, "EPOCHS", 5)
    points = rng.normal(size=(12, 3))
    nearest = find_nearest(squareform(pdist(points)).__getitem__, 12, 5)
    graph = nearest.graph(5)
    found = optimize_layout(graph, start=points, min_dist=0.3, seed=9)
    names = ("force_bits", "share_bits", "step_bits", "interval_bits", "place_bits")
    sizes = {name: getattr(units, name.upper()) for name in (*names, "farthest", "bound")}
    heads = np.repeat(np.arange(12), np.diff(graph.starts))
    edges = np.stack([heads, graph.ends], axis=1).tolist()
    shares = np.rint(graph.weights / graph.weights.max() * 2**20).astype(int).tolist()
    tables, now = force_tables(*fit_curve(0.3)), start_points(points, 9).tolist()
    for epoch in range(5):
        step = round(STEP_FALL * (5 - epoch) * 2**16)
        now = reference.umap_epoch(now, edges, shares, tables, epoch, step, 9, draws=DRAWS, **sizes)
    assert found.tolist() == (np.array(now) / 2**20).tolist()


def test_a_start_is_stretched_and_jittered():
    start = np.stack([np.arange(5.0) * 7, np.full(5, 3.0)], axis=1)
    drawn = start_points(start, 1) / 2**20
    assert np.abs(drawn - np.stack([np.linspace(0, 10, 5), np.full(5, 5.0)], 1)).max() <= 0.005
    assert len(np.unique(drawn, axis=0)) == 5
    one = start_points(start[:, :1], 1)
    np.testing.assert_array_equal(one, start_points(start, 1))
    assert (start_points(start, 2) != start_points(start, 1)).any()


@pytest.mark.parametrize("neighbors", [2, 15])
def test_bytes_do_not_depend_on_threads(monkeypatch, neighbors):
    """Three maps on 1 to 7 threads: of one map each, and several in one map."""
    monkeypatch.setattr(layouts_cpu, "EDGES_OF_THREAD", 10)
    points = grouped(200)
    rows = squareform(pdist(points)).__getitem__
    members = [(1, neighbors), (2, neighbors), (1, 30)]
    found = []
    for threads in (1, 2, 3, 7):
        nearest = find_nearest(rows, 200, 30, threads)
        maps = draw_maps(nearest, points, members, min_dist=0.3, threads=threads)
        found.append([one.tobytes() for one in maps])
    assert found[0] == found[1] == found[2] == found[3]
    alone = [
        umap_layout(rows, 200, points, neighbors=k, min_dist=0.3, seed=seed, threads=5).tobytes()
        for seed, k in members
    ]
    assert alone == found[0] and len(set(alone)) == 3


def test_an_error_in_one_thread_ends_all(monkeypatch):
    monkeypatch.setattr(layouts_cpu, "EDGES_OF_THREAD", 10)

    def fail(*about):
        if about[-2] == 0:
            raise MemoryError("first points")

    monkeypatch.setattr(umap_epoch_cpu, "epoch_kernel", lambda: fail)
    points = grouped(60)
    with pytest.raises(MemoryError, match="first points"):
        umap_layout(squareform(pdist(points)).__getitem__, 60, points, seed=1, threads=3, **OPTIONS)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_too_few_samples(n):
    with pytest.raises(UserError, match=f"needs at least 5 samples, this study has {n}"):
        umap_layout(np.zeros((n, n)).__getitem__, n, np.zeros((n, 2)), seed=1, **OPTIONS)


@pytest.mark.parametrize("n", [5, 6, 14, 15, 16])
def test_few_samples_twins_and_a_single_axis(n):
    points = np.random.default_rng(n).normal(size=(n, 1))
    points[: n // 2] = points[0]
    for far in (squareform(pdist(points)), np.zeros((n, n)), np.ones((n, n)) - np.eye(n)):
        drawn = umap_layout(far.__getitem__, n, points, seed=1, **OPTIONS)
        assert drawn.shape == (n, 2) and np.isfinite(drawn).all()
        assert len(np.unique(drawn, axis=0)) == n, "samples in one place part"


def test_groups_without_an_edge_between_them_lie_as_in_the_start():
    points = np.concatenate([grouped(60), grouped(60) + 1000])
    nearest = find_nearest(squareform(pdist(points)).__getitem__, 120, 15)
    assert not dense(nearest.graph(15))[:60, 60:].any()
    for drawn in draw_maps(nearest, points, [(seed, 15) for seed in range(4)], min_dist=0.3):
        left, right = drawn[:60].mean(axis=0), drawn[60:].mean(axis=0)
        assert (left + 3 < right).all(), "as on the first two components"


def test_maps_are_as_good_as_those_of_umap_learn():
    """Our worst seed of four is no worse than umap-learn's worst, less the spread of its seeds."""
    points = grouped(500)
    distances = squareform(pdist(points))
    nearest = find_nearest(distances.__getitem__, 500, 15)
    own = draw_maps(nearest, points, [(seed, 15) for seed in range(4)], min_dist=0.3, threads=2)
    peer = [peer_map(nearest.near, nearest.far, points, seed) for seed in range(4)]
    scores = [
        [measure_map(one, distances.__getitem__, np.arange(500)) for one in maps]
        for maps in (own, peer)
    ]
    for name in ("trustworthiness", "continuity", "recall_15", "recall_50"):
        ours, theirs = ([one[name] for one in some] for some in scores)
        spread = max(theirs) - min(theirs)
        assert min(ours) >= min(theirs) - max(spread, 0.002), (name, ours, theirs)


PROGRAM = """
import sys
import numpy as np
from popdesic.maps.umap_layout import draw_maps, find_nearest
from popdesic.maps.umap_epoch_cpu import epoch_kernel
points = np.random.default_rng(1).normal(size=(20, 2))
far = np.abs(points[:, :1] - points[:, 0])
draw_maps(find_nearest(far.__getitem__, 20, 5), points, [(1, 5)], min_dist=0.3)
assert not {"umap", "sklearn", "pynndescent", "scipy.optimize"} & set(sys.modules)
print(sum(epoch_kernel().stats.cache_hits.values()))
"""


def test_only_the_first_job_compiles(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    hits = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    assert [one.stdout.strip() for one in hits] == ["0", "1"], hits[0].stderr + hits[1].stderr


@pytest.mark.parametrize("seed", range(5))
def test_nearest_neighbors_are_those_of_a_stable_sort(seed, rng):
    """Ties, infinite and missing distances, more neighbours than there are others."""
    from popdesic.maps.knn import nearest_neighbors

    for kind in (np.float32, np.float64):
        n, k = int(rng.integers(2, 70)), int(rng.integers(0, 75))
        distances = rng.integers(0, 6, (n, n)).astype(kind)
        distances[rng.random((n, n)) < 0.2 * seed] = np.inf
        distances[rng.random((n, n)) < 0.05 * seed] = np.nan
        near, far = nearest_neighbors(distances.__getitem__, n, k, threads=3)
        assert near.shape == far.shape == (n, min(k, n - 1))
        for own, values in enumerate(np.where(np.isnan(distances), np.inf, distances)):
            others = np.delete(np.arange(n), own)
            expected = others[np.argsort(values[others], kind="stable")][:k]
            np.testing.assert_array_equal(near[own], expected)
            np.testing.assert_array_equal(far[own], values[expected])
