"""Geodesics from lists of neighbours equal those of the matrix of all pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.reference import nearest, outside_of
from scipy.spatial.distance import pdist, squareform

from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.distance.founder_tree import neighbors_of_points
from popdesic.distance.landmarks import LandmarkRows, Neighbors
from popdesic.engine.select import select_backend
from popdesic.geodesic.graph import Graph, founder_radii
from popdesic.geodesic.measure import close_weights
from popdesic.geodesic.near_graph import build_near_graph, radii_of_lists
from popdesic.geodesic.near_paths import SHORTER, measure_near_geodesics


def draw(seed: int, n: int = 90, whole: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2)) + 9 * rng.integers(0, 3, (n, 1))
    return squareform(pdist(np.rint(3 * points) if whole else points))


def study_of(distances: np.ndarray, k: int, founders: int):
    """Lists, rows of landmarks and people, the first of whom are founders."""
    n = len(distances)
    cohorts = ["a"] * founders + ["b"] * (n - founders)
    index = nearest(distances, min(k, n - 1)).astype(np.int32)
    far = np.take_along_axis(distances, index, 1)
    lists = neighbors_of_points(
        index, far, cohorts, {"a"}, lambda who: outside_of(distances[np.ix_(who, who)])
    )
    rows = LandmarkRows(distances[lists.landmarks].astype(np.float32), lists.landmarks)
    people = pd.DataFrame({"sample": [f"s{i}" for i in range(n)], "cohort": cohorts})
    return lists, rows, people


def measured(tmp_path, lists: Neighbors, rows, people, graph, **options):
    out = {
        "neighbors": tmp_path / "n.npz",
        "landmarks": tmp_path / "l.npy",
        "statistics": tmp_path / "s.json",
        "record": tmp_path / "r.json",
    }
    settings = {"alpha": "x", "value": 2.0, "ends": set(), "of_points": False}
    about = measure_near_geodesics(
        lists, rows, people, {"a"}, graph=graph, **(settings | options), out=out
    )
    with np.load(out["neighbors"]) as found:
        lists = found["index"], found["distance"]
    assert read_json(out["statistics"]).items() <= about.items()
    return about, *lists, np.load(out["landmarks"])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("density", ["keep", "correct"])
@pytest.mark.parametrize("bridges", [False, True])
def test_paths_of_lists_are_those_of_the_matrix(tmp_path, seed, whole, alpha, density, bridges):
    distances = draw(seed, whole=whole)
    lists, rows, people = study_of(distances, 60, 70)
    founders = np.arange(len(distances)) < 70
    graph = Graph("knn", 6, density)
    ends = {"s3", "s11", "s80"} if bridges else set()
    about, near, far, lengths = measured(
        tmp_path, lists, rows, people, graph, value=alpha, ends=ends
    )
    flags = people["sample"].isin(ends).to_numpy()
    dense = close_weights(
        distances,
        founders,
        people["sample"].tolist(),
        select_backend("cpu", 2),
        alpha=alpha,
        number="auto",
        graph=graph,
        ends=flags,
    )
    assert about["number"]["dtype"] == dense.number.dtype
    assert about["number"]["scale"] == dense.number.scale
    expected = graph.distances(dense.number.value(dense.lengths), alpha)
    if dense.number.dtype.startswith("int"):
        order = [np.argsort(row, kind="stable") for row in dense.lengths]  # integers, no rounding
        others = [row[row != i][: near.shape[1]] for i, row in enumerate(order)]
        index = np.array(others)
        np.testing.assert_array_equal(near, index)
        np.testing.assert_array_equal(
            far,
            graph.distances(dense.number.value(np.take_along_axis(dense.lengths, index, 1)), alpha),
        )
        np.testing.assert_array_equal(lengths, expected[lists.landmarks].astype(np.float32))
    assert (about["short_lists"], about["parts"]) == (0, 1)
    assert about["unreachable_pairs"] == 0
    direct = graph.distances(dense.number.value(dense.direct), alpha)
    shorter = (expected < (1 - SHORTER) * direct)[:70, :70]
    assert about["founder_indirect_share"] == pytest.approx(shorter.sum() / (70 * 69))


def test_the_complete_graph_is_never_too_short_and_nearest_are_exact_on_its_edges(tmp_path):
    distances = draw(5)
    lists, rows, people = study_of(distances, 12, 90)
    graph = Graph()
    about, near, far, lengths = measured(tmp_path, lists, rows, people, graph, value=2.0)
    dense = close_weights(
        distances,
        np.ones(90, bool),
        people["sample"].tolist(),
        select_backend("cpu", 2),
        alpha=2.0,
        number="float64",
    )
    exact = np.sqrt(dense.lengths)
    assert (lengths >= exact * (1 - 1e-6)).all()
    assert np.median(lengths / np.where(exact > 0, exact, 1)) < 1.05
    assert (lengths <= distances * (1 + 1e-6)).all()
    assert near.shape == (90, 12)
    assert (far >= np.take_along_axis(exact, near, 1) * (1 - 1e-6)).all()
    assert 0 < about["indirect_share"] < 1


def test_plain_distances_of_points_stay_as_they_are(tmp_path):
    distances = draw(6)
    lists, rows, people = study_of(distances, 12, 90)
    about, near, far, lengths = measured(
        tmp_path, lists, rows, people, Graph(), value=1.0, of_points=True
    )
    assert about["plain"]
    assert about["indirect_pairs"] == 0
    np.testing.assert_array_equal(near, lists.index)
    np.testing.assert_array_equal(far, lists.distance)
    np.testing.assert_array_equal(lengths, rows.matrix)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("k", [1, 4, 90])
def test_radii_of_whole_lists(apart, k):
    distances = draw(7, whole=True)
    lists, _, _ = study_of(distances, 200, 50)
    founders = np.arange(90) < 50
    radii, short = radii_of_lists(lists, founders, k, apart=apart)
    np.testing.assert_array_equal(radii, founder_radii(distances, founders, k, apart=apart))
    assert not short.any()


def test_short_lists_are_counted(tmp_path):
    distances = draw(8)
    lists, _, _ = study_of(distances, 5, 20)
    founders = np.arange(90) < 20
    found = build_near_graph(lists, founders, Graph("knn", 6), 2.0)
    assert found.short == 90
    assert found.parts().max() >= 0


def test_a_sample_without_an_edge_is_refused(tmp_path):
    distances = draw(9)
    distances[4] = distances[:, 4] = np.inf
    distances[4, 4] = 0
    lists, rows, people = study_of(distances, 12, 90)
    with pytest.raises(UserError, match="'s4' has no comparable"):
        measured(tmp_path, lists, rows, people, Graph("knn", 5))


def test_threads_change_no_byte(tmp_path):
    lists, rows, people = study_of(draw(10, whole=True), 12, 60)
    found = [
        measured(tmp_path, lists, rows, people, Graph("knn", 5), threads=threads)[1:]
        for threads in (1, 3)
    ]
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()
