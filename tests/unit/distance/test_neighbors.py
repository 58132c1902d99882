"""Neighbours of a study without a matrix of all pairs equal those of the assembled matrix."""

from __future__ import annotations

import json

import numpy as np
import pytest
from neighbor_checks import METRICS
from random_cohorts import make_planes
from reference import nearest

from popdesic.distance.landmarks import read_landmarks, read_neighbors
from popdesic.distance.matrix import load_distances
from popdesic.distance.neighbors import write_neighbors
from popdesic.distance.tiles import assemble_tiles, measure_tile
from popdesic.embedding.knn import nearest_neighbors
from popdesic.engine.select import cpu_backend
from popdesic.io.errors import UserError
from popdesic.io.tables import read_table

BACKEND = cpu_backend(2)
SIZES = {"ann": 260, "bea": 1, "cho": 350}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohorts")
    missing = {"ann": 0.1, "bea": 0.02, "cho": 0.3}
    return [make_planes(folder / name, n, 90, missing[name]) for name, n in SIZES.items()]


def dense(folders, out, metric: str, missing: str, min_called: int) -> np.ndarray:
    """The assembled distances of the same study."""
    names = [folder.name for folder in folders]
    options = {"metric": metric, "missing": missing}
    tiles = {}
    for i, a in enumerate(folders):
        for b in folders[i:]:
            tiles[a.name, b.name] = out / f"{a.name}.{b.name}.npz"
            measure_tile(a, b, tiles[a.name, b.name], BACKEND, **options)
    about = {"metric": metric, "min_called": min_called}
    assemble_tiles(tiles, names, out, on_uncomparable="keep", **about)
    return load_distances(out, n_sites=90, **about)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("missing", "min_called"), [("pairwise", 50), ("imputed", 1)])
def test_neighbors_equal_those_of_the_assembled_matrix(
    folders, tmp_path, metric, missing, min_called
):
    distances = dense(folders, tmp_path / "dense", metric, missing, min_called)
    out = tmp_path / "large/neighbors.npz"
    options = {"metric": metric, "missing": missing, "min_called": min_called}
    counts = write_neighbors(folders, out, BACKEND, k=20, **options)
    with np.load(out) as found:
        np.testing.assert_array_equal(found["index"], nearest(distances, 20))
        index, near = nearest_neighbors(distances.__getitem__, len(distances), 20)
        np.testing.assert_array_equal(found["index"], index)
        np.testing.assert_array_equal(found["distance"], near)
        called = np.load(tmp_path / "dense/called.npy")
        np.testing.assert_array_equal(found["called"], np.take_along_axis(called, index, 1))
        assert (str(found["panel"]), int(found["n_sites"])) == ("P", 90)
        assert (found["index"].dtype, found["called"].dtype) == (np.int32, np.int32)
    assert counts["samples"] == sum(SIZES.values())
    assert (
        counts["pairs with too few jointly called sites"] == np.triu(called < min_called, 1).sum()
    )
    ours, theirs = (read_table(tmp_path / name / "samples.tsv") for name in ("large", "dense"))
    assert ours.equals(theirs)


def test_the_same_bytes_again(folders, tmp_path):
    options = {"k": 5, "metric": "euclidean", "missing": "pairwise", "min_called": 1}
    for name in ("a", "b"):
        write_neighbors(folders, tmp_path / name / "neighbors.npz", BACKEND, **options)
    one, other = ((tmp_path / name / "neighbors.npz").read_bytes() for name in ("a", "b"))
    assert one == other


def test_cohorts_of_two_panels_are_refused(folders, tmp_path):
    other = make_planes(tmp_path / "dan", 3, 90, 0.0)
    about = json.loads((other / "planes.json").read_text()) | {"panel": "Q"}
    (other / "planes.json").write_text(json.dumps(about))
    options = {"k": 5, "metric": "euclidean", "missing": "pairwise", "min_called": 1}
    with pytest.raises(UserError, match=r"encoded on panel Q, but .*ann on P"):
        write_neighbors([*folders, other], tmp_path / "neighbors.npz", BACKEND, **options)


@pytest.mark.parametrize("metric", METRICS)
def test_newcomers_give_the_bytes_of_scratch(folders, tmp_path, metric):
    """One by one, and in between those who are there: lists, landmarks and counts."""
    ann, bea, cho = folders
    options = {"k": 9, "metric": metric, "missing": "pairwise", "min_called": 40}
    options |= {"founders": ["ann"], "code": "c"}

    def write(name: str, some: list) -> dict:
        folder = tmp_path / name
        rows = folder / "landmarks.npy"
        return write_neighbors(
            some, folder / "neighbors.npz", BACKEND, landmarks_out=rows, **options
        )

    write("scratch", folders)
    for some in ([ann, cho], [ann, bea, cho]):
        counts = write("grown", some)
    assert counts["newcomers"] == SIZES["bea"]
    for name in ("neighbors.npz", "landmarks.npy", "samples.tsv"):
        one, other = ((tmp_path / study / name).read_bytes() for study in ("scratch", "grown"))
        assert one == other, name
    options["code"] = "another"
    assert write("grown", folders)["newcomers"] == 0


def test_newcomers_compute_their_row_alone(folders, tmp_path):
    products = []

    class Counted(type(BACKEND)):
        def bitgemm(self, a, b, terms):
            products.append(a.n_samples * (a.n_samples if b is None else b.n_samples))
            return super().bitgemm(a, b, terms)

    backend = Counted(2)
    options = {"k": 9, "metric": "euclidean", "missing": "pairwise", "min_called": 1}
    write_neighbors(folders[::2], tmp_path / "neighbors.npz", backend, **options)
    products.clear()
    write_neighbors(folders, tmp_path / "neighbors.npz", backend, **options)
    assert sum(products) == 1 + SIZES["ann"] + SIZES["cho"]


def test_landmarks_are_rows_of_the_matrix(folders, tmp_path):
    options = {"metric": "euclidean", "missing": "pairwise", "min_called": 50}
    distances = dense(folders, tmp_path / "dense", *options.values())
    rows = tmp_path / "landmarks.npy"
    write_neighbors(
        folders,
        tmp_path / "neighbors.npz",
        BACKEND,
        k=3,
        founders=["bea", "cho"],
        landmarks_out=rows,
        **options,
    )
    landmarks = read_neighbors(tmp_path / "neighbors.npz").landmarks
    np.testing.assert_array_equal(landmarks, np.arange(SIZES["ann"], len(distances)))
    held = read_landmarks(rows, landmarks)
    expected = distances[landmarks].astype(np.float32)
    np.testing.assert_array_equal(held.rows(landmarks), expected)
    np.testing.assert_array_equal(held.among().matrix, expected[:, landmarks])
    with pytest.raises(ValueError, match="no landmarks"):
        held.rows(np.array([0]))


def test_uncomparable_pairs_stop_the_run(folders, tmp_path):
    options = {"k": 3, "metric": "ibs", "missing": "pairwise", "min_called": 50}
    with pytest.raises(UserError, match=r"distance\.min_called = 50"):
        write_neighbors(
            folders, tmp_path / "neighbors.npz", BACKEND, on_uncomparable="error", **options
        )
    assert not (tmp_path / "neighbors.npz").exists()


def test_a_damaged_file_is_computed_again(folders, tmp_path, caplog):
    options = {"k": 3, "metric": "ibs", "missing": "pairwise", "min_called": 1}
    out = tmp_path / "neighbors.npz"
    write_neighbors(folders, out, BACKEND, **options)
    whole = out.read_bytes()
    out.write_bytes(whole[:500])
    write_neighbors(folders, out, BACKEND, **options)
    assert out.read_bytes() == whole
    assert "from scratch" in caplog.text
