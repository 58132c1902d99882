"""Frames of the founders: paths, placement and registration equal slow loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform
from support.one_map import umap_layout
from support.study import make_cohorts, write_raw

from popdesic.cohort.site_alleles import read_cohorts
from popdesic.components.pca import axes_of
from popdesic.components.relationship import relationship_among, relationship_to, sample_blocks
from popdesic.components.scaling import principal_coordinates, project_coordinates
from popdesic.engine.select import select_backend
from popdesic.geodesic.founder_paths import founder_lengths
from popdesic.geodesic.graph import COMPLETE
from popdesic.maps.frame import place_among, register
from popdesic.maps.umap_maps import measure_instability


def paths_by_floyd(weights, ends):
    lengths = weights.copy()
    for k in np.flatnonzero(~ends):
        lengths = np.minimum(lengths, lengths[:, [k]] + lengths[[k], :])
    return lengths


@pytest.mark.parametrize("with_ends", [False, True])
def test_paths_to_founders_run_through_founders_alone(rng, tmp_path, with_ends):
    points = rng.normal(size=(31, 2))
    distances = squareform(pdist(points))
    founders = rng.permutation(np.arange(31) < 20)
    ends = with_ends & (rng.random(31) < 0.2)
    found = founder_lengths(
        distances,
        founders,
        [f"s{i}" for i in range(31)],
        select_backend("cpu", 1),
        alpha=3.0,
        ends=ends,
        graph=COMPLETE,
        out=tmp_path / "l.npy",
    )
    rows = np.flatnonzero(founders)
    for i in range(31):
        mine = rows if founders[i] else np.r_[rows, i]
        only_end = ends[mine] | ~founders[mine]
        expected = paths_by_floyd(distances[np.ix_(mine, mine)] ** 3.0, only_end)
        own = np.flatnonzero(mine == i)[0]
        exact = expected[own, : len(rows)] ** (1 / 3)
        np.testing.assert_allclose(found[i], exact, rtol=1e-6)
    assert np.load(tmp_path / "l.npy").tobytes() == found.tobytes()


def test_places_of_newcomers_do_not_depend_on_each_other(rng, tmp_path):
    points = rng.normal(size=(40, 3))
    founders = np.arange(40) < 25
    names = [f"s{i}" for i in range(40)]
    options = {"alpha": 2.0, "graph": COMPLETE}

    def place(keep):
        lengths = founder_lengths(
            squareform(pdist(points[keep])),
            founders[keep],
            [names[i] for i in keep],
            select_backend("cpu", 1),
            ends=np.zeros(len(keep), bool),
            out=tmp_path / "l.npy",
            **options,
        )
        near, inner = lengths[~founders[keep]], lengths[founders[keep]]
        own, _ = principal_coordinates(inner, 3)
        return place_among(near, places, 8), project_coordinates(near, inner, own)

    places = rng.normal(size=(25, 2))
    together = place(np.arange(40))
    some = place(np.r_[np.arange(25), 30, 37])
    for all_of_them, few in zip(together, some, strict=True):
        assert all_of_them[[5, 12]].tobytes() == few.tobytes()


def test_strengths_are_those_of_umap(rng):
    from umap.umap_ import smooth_knn_dist

    far = np.sort(rng.uniform(1, 5, (6, 9)), axis=1)
    places = rng.normal(size=(30, 2))
    lengths = np.full((6, 30), 99.0)
    lengths[:, :9] = far
    # sigma and rho of umap-learn, whose search for them stops at 1e-5
    sigma, rho = smooth_knn_dist(np.c_[np.zeros(6), far].astype(np.float32), 10.0)
    expected = np.exp(-np.maximum(far - rho[:, None], 0) / sigma[:, None]) ** 3
    expected /= expected.sum(axis=1, keepdims=True)
    found = place_among(lengths, places, 10)
    np.testing.assert_allclose(found, expected @ places[:9], atol=0.02)


def test_a_duplicate_of_a_founder_is_placed_near_it():
    places = np.array([[0.0, 0], [5, 5], [9, 0], [0, 9]])
    assert place_among(np.array([[np.inf, 0, np.inf, np.inf]]), places, 4).tolist() == [[5, 5]]
    assert place_among(np.zeros((1, 4)), places, 5).tolist() == [[14 / 3, 5 / 3]]


def test_projection_gives_a_founder_its_own_coordinates(rng):
    points = rng.normal(size=(20, 4))
    distances = squareform(pdist(points))
    own, _ = principal_coordinates(distances, 4)
    np.testing.assert_allclose(project_coordinates(distances, distances, own), own, atol=1e-9)
    new = rng.normal(size=(5, 4))
    placed = project_coordinates(cdist(new, points), distances, own)
    np.testing.assert_allclose(cdist(placed, own), cdist(new, points), atol=1e-9)


def test_registration_undoes_rotation_and_scaling(rng):
    frame = rng.normal(size=(30, 2))
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    among = np.arange(30) < 20
    moved, about = register(3.7 * frame @ turn + 5, frame, among)
    np.testing.assert_allclose(moved, frame, atol=1e-9)
    assert about["largest_displacement"] < 1e-6 and about["disparity"] < 1e-6
    other = frame.copy()
    other[25] += 4.0
    assert register(other, frame, among)[1]["largest_displacement"] > 1


def test_instability_is_the_share_of_lost_neighbors(rng):
    points = rng.normal(size=(60, 2))
    assert not measure_instability(points, [points, -2 * points + 1]).any()
    shuffled = rng.permutation(points)
    found = measure_instability(points, [points, shuffled])
    for i in range(60):
        near = [np.argsort(np.delete(squareform(pdist(p))[i], i))[:15] for p in (points, shuffled)]
        assert found[i] == pytest.approx((1 - len(set(near[0]) & set(near[1])) / 15) / 2)


def test_instability_where_many_are_in_one_place():
    """Any of 30 samples in one place may be its neighbours, but no sample its own."""
    points = np.repeat([[0.0, 0], [9, 0]], [30, 20], axis=0)
    apart = points + np.linspace(0, 1e-3, 50)[:, None] ** [1, 2]
    found = measure_instability(apart, [points, points])
    assert ((found >= 0) & (found <= 1)).all() and found.max() > 0
    assert not measure_instability(points, [points]).any()
    moved = np.array([[0, 0], [0, 9], [9, 9]] * 2)
    assert measure_instability(moved, [moved, moved]).tolist() == [0] * 6


def test_layout_needs_no_whole_matrix(rng, monkeypatch):
    points = rng.normal(size=(50, 5))
    distances = squareform(pdist(points))
    maps = []
    for numbers in (50, 8_000_000):
        monkeypatch.setattr("popdesic.distance.matrix.DISTANCE_BLOCK", numbers)
        options = {"neighbors": 8, "min_dist": 0.3, "seed": 1}
        maps.append(umap_layout(distances.__getitem__, 50, points, **options))
    assert maps[0].tobytes() == maps[1].tobytes()


def test_blocks_never_span_two_cohorts():
    blocks = sample_blocks([3, 1100, 512, 1])
    ends = np.cumsum([3, 1100, 512, 1])
    assert [b for _, b in blocks if b in ends] == list(ends)
    assert blocks[0] == (0, 3) and all(b - a <= 512 for a, b in blocks)
    assert [a for a, _ in blocks[1:]] == [b for _, b in blocks[:-1]]


def test_an_arrival_changes_no_coordinates_of_others(tmp_path):
    """Stable mode: PCA, PCoA and places of founders and one newcomer, then of two."""
    cohorts = make_cohorts((33, 18, 7, 12), n_sites=300)
    prefixes = [write_raw(tmp_path / c.name / "genotypes", c) for c in cohorts]
    founding = np.concatenate([c.genotypes for c in cohorts[:2]], axis=1)
    af = np.where(founding >= 0, founding, 0).sum(axis=1) / (2 * (founding >= 0).sum(axis=1))
    maps = []
    axes, _ = axes_of(relationship_among(*read_cohorts(prefixes[:2]), af), 4)
    for there in (3, 4):
        n = sum(len(c.samples) for c in cohorts[:there])
        founders = np.arange(n) < 51
        rows = relationship_to(*read_cohorts(prefixes[:there]), founders, af)
        scores = axes.place(founders, *rows)
        lengths = founder_lengths(
            squareform(pdist(scores)),
            founders,
            [f"s{i}" for i in range(n)],
            select_backend("cpu", 1),
            alpha=2.0,
            ends=np.zeros(n, bool),
            graph=COMPLETE,
            out=tmp_path / "l.npy",
        )
        inner, near = lengths[founders], lengths[~founders]
        own, _ = principal_coordinates(inner, 3)
        # a UMAP of the founders would depend on `scores` and `inner` alone
        placed = place_among(near, own[:, :2], 15), project_coordinates(near, inner, own)
        maps.append([scores, inner, np.r_[own, placed[1]], placed[0]])
    for before, after in zip(*maps, strict=True):
        assert after[: len(before)].tobytes() == before.tobytes()
