"""densMAP: densities and neighbours as umap-learn keeps them, the same bytes on any threads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from support.one_map import measure_map

from popdesic.maps import layouts_cpu, neighbor_union_cpu
from popdesic.maps.densmap import density_of, draw_densmap, local_radii
from popdesic.maps.fuzzy_graph import fuzzy_graph
from popdesic.maps.neighbor_union_cpu import edge_lengths
from popdesic.maps.umap_layout import NearestRows, find_nearest

MIN_DIST = 0.3


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray, np.ndarray, NearestRows]:
    """Four groups of unequal spread and size: points, distances, 14 nearest."""
    rng = np.random.default_rng(4)
    groups = ((0, 1, 90), (15, 0.2, 60), (-15, 3, 60), (30, 0.6, 40))
    points = np.concatenate([rng.normal(at, s, (n, 5)) for at, s, n in groups])
    distances = squareform(pdist(points))
    return points, distances, find_nearest(distances.__getitem__, len(points), 15)


def peer_densmap(nearest: NearestRows, start: np.ndarray, seed: int):
    """umap-learn's map and its local radii among the samples and on the map."""
    import umap

    n, k = nearest.near.shape
    itself = np.arange(n)[:, None]
    far = np.concatenate([0.0 * itself, nearest.far], axis=1)
    known = (
        np.concatenate([itself, nearest.near], axis=1).astype(np.int32),
        (far / np.median(far[far > 0])).astype(np.float32),
    )
    first = (start[:, :2] / np.abs(start[:, :2]).max()).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn cannot transform new data: not wanted
        model = umap.UMAP(
            n_neighbors=k + 1,
            min_dist=MIN_DIST,
            random_state=seed,
            n_jobs=1,
            init=first,
            precomputed_knn=known,
            force_approximation_algorithm=True,
            densmap=True,
            output_dens=True,
        )
        return model.fit_transform(first)


def radii_on(points: np.ndarray) -> np.ndarray:
    """Logarithms of mean squared distances to the 14 nearest on a map."""
    far = np.sort(squareform(pdist(points)), axis=1)[:, 1:15]
    return np.log(1e-8 + (far**2).mean(axis=1))


@pytest.mark.slow
def test_maps_are_as_good_as_those_of_umap_learn(scene):
    points, distances, nearest = scene
    n = len(points)
    graph = fuzzy_graph(nearest.near, nearest.far, 1 / 700)
    own = [draw_densmap(nearest, points, min_dist=MIN_DIST, seed=seed) for seed in (1, 2, 3)]
    peer, among, _ = zip(*(peer_densmap(nearest, points, seed) for seed in (1, 2, 3)), strict=True)
    radii = local_radii(nearest, graph)
    np.testing.assert_allclose(radii, among[0], atol=5e-3)

    def scores(maps) -> np.ndarray:
        found = []
        for one in maps:
            agreement = measure_map(np.asarray(one, float), distances.__getitem__, np.arange(n))
            density = np.corrcoef(radii, radii_on(one))[0, 1]
            found.append([density, agreement["trustworthiness"], agreement["continuity"]])
        return np.mean(found, axis=0)

    ours, theirs = scores(own), scores(peer)
    assert ours[0] >= theirs[0] - 0.05 and ours[0] > 0.8
    assert (ours[1:] >= theirs[1:] - 0.005).all(), (ours, theirs)


def test_bytes_do_not_depend_on_threads(scene, monkeypatch):
    monkeypatch.setattr(layouts_cpu, "EDGES_OF_THREAD", 10)
    monkeypatch.setattr(neighbor_union_cpu, "ROWS_OF_TASK", 16)
    points, _, nearest = scene
    maps = [
        draw_densmap(nearest, points, min_dist=MIN_DIST, seed=1, threads=threads).tobytes()
        for threads in (1, 2, 5)
    ]
    assert len(set(maps)) == 1


def test_an_error_in_one_thread_ends_all(scene, monkeypatch):
    monkeypatch.setattr(layouts_cpu, "EDGES_OF_THREAD", 10)

    def fail(*about):
        """In the last thread: the others wait for it."""
        if about[-1] == len(points):
            raise MemoryError("radii")
        return 0, 0, 0

    points, _, nearest = scene
    monkeypatch.setattr(layouts_cpu.umap_epoch_cpu, "density_kernels", lambda: [fail] * 3)
    with pytest.raises(MemoryError, match="radii"):
        draw_densmap(nearest, points, min_dist=MIN_DIST, seed=1, threads=3)


def test_lengths_of_edges(scene):
    """Distances of pairs; the larger one where the two views differ."""
    _, distances, nearest = scene
    graph = fuzzy_graph(nearest.near, nearest.far, 0.0)
    heads = np.repeat(np.arange(len(distances)), np.diff(graph.starts))
    found = edge_lengths(nearest.near, nearest.far, graph.starts, graph.ends)
    np.testing.assert_array_equal(found, distances[heads, graph.ends])
    near, far = np.array([[1], [0], [0]]), np.array([[1.0], [2.0], [3.0]])
    graph = fuzzy_graph(near, far, 0.0)
    assert edge_lengths(near, far, graph.starts, graph.ends).tolist() == [2, 3, 2, 3]


def test_radii_have_no_unit(scene):
    _, _, nearest = scene
    graph = fuzzy_graph(nearest.near, nearest.far, 0.002)
    scaled = NearestRows(nearest.near, nearest.far * 2.0**100)
    np.testing.assert_array_equal(local_radii(scaled, graph), local_radii(nearest, graph))


def test_equally_near_neighbors_have_no_density():
    near = (np.arange(12)[:, None] + [1, 2, 3]) % 12
    nearest = NearestRows(near, np.full((12, 3), 0.7))
    graph = fuzzy_graph(near, nearest.far, 0.002)
    assert density_of(nearest, graph, min_dist=MIN_DIST, epochs=700) is None
