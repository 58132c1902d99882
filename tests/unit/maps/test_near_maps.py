"""Maps from lists of neighbours and landmarks equal those of matrices, where both can be made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform

from popdesic.components.scaling import principal_coordinates
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table, write_npy, write_npz, write_table
from popdesic.distance.landmarks import LandmarkRows, read_neighbors
from popdesic.engine.select import cpu_backend
from popdesic.geodesic.graph import spanning_tree
from popdesic.maps.near_maps import place_by_landmarks, write_component_neighbors
from popdesic.maps.umap_maps import UmapSettings, compute_umap, load_nearest

N, FOUNDERS = 80, 60


@pytest.fixture
def points() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(size=(N, 4)) + 6 * rng.integers(0, 3, (N, 1))


@pytest.fixture
def people(tmp_path) -> pd.DataFrame:
    table = pd.DataFrame({"sample": [f"s{i}" for i in range(N)]})
    table["cohort"] = ["a"] * FOUNDERS + ["b"] * (N - FOUNDERS)
    write_table(tmp_path / "samples.tsv", table)
    write_table(tmp_path / "sheet.tsv", table)
    return table


def test_lists_rows_and_tree_of_points(points, people, tmp_path):
    out, rows = tmp_path / "neighbors.npz", tmp_path / "landmarks.npy"
    counts = write_component_neighbors(
        points, tmp_path / "samples.tsv", {"a"}, cpu_backend(2), k=7, out=out, landmarks_out=rows
    )
    assert counts["landmarks"] == FOUNDERS and counts["neighbours of each"] == 7
    distances = squareform(pdist(points))
    lists = read_neighbors(out)
    np.testing.assert_array_equal(lists.index, np.argsort(distances, axis=1)[:, 1:8])
    np.testing.assert_array_equal(lists.landmarks, np.arange(FOUNDERS))
    np.testing.assert_allclose(np.load(rows), distances[:FOUNDERS], rtol=1e-6)
    tree = np.sort(spanning_tree(distances[:FOUNDERS, :FOUNDERS]), axis=1)
    np.testing.assert_array_equal(lists.tree, tree[np.lexsort((tree[:, 1], tree[:, 0]))])


def test_landmarks_place_everyone_where_classical_scaling_does(points):
    """Euclidean points have the same coordinates from their landmarks, up to the centre."""
    distances = squareform(pdist(points))
    rows = LandmarkRows(distances[:FOUNDERS], np.arange(FOUNDERS))
    placed, explained = place_by_landmarks(rows, 4)
    np.testing.assert_allclose(squareform(pdist(placed)), distances, atol=1e-6)
    among = np.ascontiguousarray(distances[:FOUNDERS, :FOUNDERS])
    own, shares = principal_coordinates(among, 4)
    np.testing.assert_array_equal(placed[:FOUNDERS], own)
    np.testing.assert_array_equal(explained, shares)


def test_a_newcomer_moves_nobody(points):
    distances = squareform(pdist(points))
    first, _ = place_by_landmarks(LandmarkRows(distances[:50, :70], np.arange(50)), 3)
    then, _ = place_by_landmarks(LandmarkRows(distances[:50], np.arange(50)), 3)
    np.testing.assert_array_equal(then[:70], first)


def test_umap_of_lists_is_that_of_the_matrix(points, people, tmp_path):
    distances = squareform(pdist(points))
    write_npy(tmp_path / "scores.npy", points)
    write_npy(tmp_path / "lengths.npy", distances)
    order = np.argsort(distances, axis=1, kind="stable")[:, 1:]
    far = np.take_along_axis(distances, order, 1)
    write_npz(tmp_path / "lists.npz", index=order.astype(np.int32), distance=far)
    settings = UmapSettings(6, seed=4, ensemble=2)
    files = [tmp_path / name for name in ("scores.npy", "samples.tsv", "sheet.tsv")]
    found = {}
    for name, lengths, plain in (
        ("dense", "lengths.npy", points),
        ("near", "lists.npz", tmp_path / "lists.npz"),
    ):
        tables = {"2": tmp_path / f"{name}.tsv", "plain": tmp_path / f"{name}.plain.tsv"}
        unstable = tmp_path / f"{name}.unstable.tsv"
        lengths = {"2": tmp_path / lengths}
        compute_umap(lengths, plain, *files, settings, tables=tables, instability_out=unstable)
        found[name] = [path.read_text() for path in (*tables.values(), unstable)]
    assert found["near"] == found["dense"]


@pytest.mark.parametrize("components", [2, 4, 5, None])
def test_a_umap_of_few_components_is_not_drawn(points, people, tmp_path, caplog, components):
    caplog.set_level("INFO")
    write_npy(tmp_path / "scores.npy", points)
    write_npy(tmp_path / "lengths.npy", squareform(pdist(points)))
    files = [tmp_path / name for name in ("scores.npy", "samples.tsv", "sheet.tsv")]
    tables = {"2": tmp_path / "umap.tsv", "plain": tmp_path / "plain.tsv"}
    settings = UmapSettings(6, seed=4, ensemble=2)
    unstable = {"instability_out": tmp_path / "unstable.tsv"}
    given = {"2": tmp_path / "lengths.npy"}, points, *files, settings
    compute_umap(*given, tables=tables, components=components, **unstable)
    left_out = components in (2, 4)
    for path in tables.values():
        assert (read_table(path)["UMAP1"] == "NA").all() == left_out
    assert (read_table(tmp_path / "unstable.tsv")["alpha2"] == "NA").all() == left_out
    assert (f"UMAP of {components} components is not drawn" in caplog.text) == left_out


def test_unreachable_and_missing_neighbors_and_few_samples_are_refused(tmp_path):
    index, path = np.tile(np.arange(3, dtype=np.int32), (6, 1)), tmp_path / "lists.npz"
    write_npz(path, index=index, distance=np.full((6, 3), np.inf))
    with pytest.raises(UserError, match="no finite geodesic"):
        load_nearest(path, 4)
    write_npz(path, index=index, distance=np.zeros((6, 3)))
    assert load_nearest(path, 4).near.shape == (6, 3)
    with pytest.raises(UserError, match="5 neighbours are asked for"):
        load_nearest(path, 5)
    write_npz(path, index=index[:4], distance=np.zeros((4, 3)))
    with pytest.raises(UserError, match="at least 5 samples"):
        load_nearest(path, 4)
