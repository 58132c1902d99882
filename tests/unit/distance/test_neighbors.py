"""Neighbours of a study without a matrix of all pairs equal those of the assembled matrix."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from oracles.neighbor_checks import METRICS
from oracles.reference import nearest
from scenes.random_cohorts import make_planes
from support.near_study import write_neighbors

from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.core.triangle import open_symmetric
from popdesic.distance import landmarks
from popdesic.distance.landmarks import read_landmarks, read_neighbors
from popdesic.distance.matrix import load_distances
from popdesic.distance.measure_tile import measure_tile
from popdesic.distance.tiles import assemble_tiles
from popdesic.engine.select import cpu_backend
from popdesic.maps.knn import nearest_neighbors

BACKEND = cpu_backend(2)
SIZES = {"ann": 260, "bea": 1, "cho": 350}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohorts")
    missing = {"ann": 0.1, "bea": 0.02, "cho": 0.3}
    return [make_planes(folder / name, n, 90, missing[name]) for name, n in SIZES.items()]


def dense(
    folders, out, metric: str, missing: str, min_called: int, n_sites: int = 90
) -> np.ndarray:
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
    return load_distances(out, n_sites=n_sites, **about)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("missing", "min_called"), [("pairwise", 50), ("imputed", 1)])
def test_neighbors_equal_those_of_the_assembled_matrix(
    folders, tmp_path, metric, missing, min_called
):
    distances = dense(folders, tmp_path / "dense", metric, missing, min_called)
    out = tmp_path / "large"
    options = {"metric": metric, "missing": missing, "min_called": min_called}
    counts = write_neighbors(folders, out, BACKEND, k=20, **options)
    with np.load(out / "neighbors.npz") as found:
        np.testing.assert_array_equal(found["index"], nearest(distances, 20))
        index, near = nearest_neighbors(distances.__getitem__, len(distances), 20)
        np.testing.assert_array_equal(found["index"], index)
        np.testing.assert_array_equal(found["distance"], near)
        called = open_symmetric(tmp_path / "dense/called.npy")[:]
        np.testing.assert_array_equal(found["called"], np.take_along_axis(called, index, 1))
        assert (str(found["panel"]), int(found["n_sites"])) == ("P", 90)
        assert (found["index"].dtype, found["called"].dtype) == (np.int32, np.int32)
    assert counts["samples"] == sum(SIZES.values())
    assert (
        counts["pairs with too few jointly called sites"] == np.triu(called < min_called, 1).sum()
    )
    ours, theirs = (read_table(tmp_path / name / "samples.tsv") for name in ("large", "dense"))
    assert ours.equals(theirs)


def test_cohorts_of_two_panels_are_refused(folders, tmp_path):
    other = make_planes(tmp_path / "dan", 3, 90, 0.0)
    about = json.loads((other / "planes.json").read_text()) | {"panel": "Q"}
    (other / "planes.json").write_text(json.dumps(about))
    options = {"k": 5, "metric": "euclidean", "missing": "pairwise", "min_called": 1}
    with pytest.raises(UserError, match=r"encoded on panel Q, but .*ann on P"):
        write_neighbors([*folders, other], tmp_path / "out", BACKEND, **options)


def results_of(study) -> dict[str, bytes]:
    """Bytes of the joined files."""
    names = ("neighbors.npz", "landmarks.npy", "samples.tsv", "founder_tree.npz")
    return {name: (study / name).read_bytes() for name in names}


def tiles_of(study) -> dict[str, tuple[bytes, int]]:
    """Bytes and date of every tile."""
    return {
        f"{path.parent.name}/{path.name}": (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (study / "tiles").glob("*/*.npz")
    }


@pytest.mark.parametrize("metric", METRICS)
def test_newcomers_pay_their_row_and_give_the_bytes_of_scratch(folders, tmp_path, metric):
    """One by one, and in between those who are there: lists, landmarks and counts."""
    ann, bea, cho = folders
    options = {"k": 9, "metric": metric, "missing": "pairwise", "min_called": 40}
    options |= {"founders": ["ann"], "code": "c"}
    grown = tmp_path / "results/grown"
    write_neighbors([ann, cho], grown, BACKEND, **options)
    before = tiles_of(grown)
    counts = write_neighbors([ann, bea, cho], grown, BACKEND, **options)
    after = tiles_of(grown)
    assert after.items() >= before.items()
    assert after.keys() - before.keys() == {"bea/ann.npz", "bea/bea.npz", "bea/cho.npz"}
    assert counts["tiles computed"] == 3
    scratch = tmp_path / "scratch"
    write_neighbors(folders, scratch, BACKEND, **options)
    assert results_of(scratch) == results_of(grown)
    write_neighbors([ann, cho], grown, BACKEND, **options)  # bea leaves
    assert tiles_of(grown) == after, "its own row is left, of which nothing is read"
    assert read_neighbors(grown / "neighbors.npz").index.shape == (SIZES["ann"] + SIZES["cho"], 9)
    options["code"] = "another"
    assert write_neighbors([ann, cho], grown, BACKEND, **options)["tiles computed"] == 3


def test_every_pair_is_computed_once(folders, tmp_path):
    products = []

    class Counted(type(BACKEND)):
        def bitgemm(self, a, b, terms):
            products.append(a.n_samples * (a.n_samples if b is None else b.n_samples))
            return super().bitgemm(a, b, terms)

    backend = Counted(2)
    # The landmark is bea's one sample: its row is computed apart.
    options = {"k": 9, "metric": "euclidean", "missing": "pairwise", "min_called": 1}
    options |= {"founders": ["bea"]}
    write_neighbors(folders[1:], tmp_path / "results", backend, **options)
    products.clear()
    write_neighbors(folders, tmp_path / "results", backend, **options)
    own, one = SIZES["ann"], SIZES["bea"]
    assert sum(products) == own * (own + one + SIZES["cho"]) + one * own


def test_a_changed_cohort_costs_its_pairs_alone(folders, tmp_path):
    options = {"k": 9, "metric": "ibs", "missing": "pairwise", "min_called": 1}
    options |= {"founders": ["ann"]}
    cohorts = [make_planes(tmp_path / f"cohorts/{name}", 12, 50, 0.1) for name in "abc"]
    founder = make_planes(tmp_path / "cohorts/ann", 40, 50, 0.1)
    study = tmp_path / "results/study"
    write_neighbors([founder, *cohorts], study, BACKEND, **options)
    before = tiles_of(study)
    shutil.rmtree(cohorts[1])
    make_planes(cohorts[1], 13, 50, 0.1)
    write_neighbors([founder, *cohorts], study, BACKEND, **options)
    after = tiles_of(study)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"b/ann.npz", "b/a.npz", "b/b.npz", "c/b.npz"}
    again = tmp_path / "again"
    write_neighbors([founder, *cohorts], again, BACKEND, **options)
    assert results_of(again) == results_of(study)


@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 1), (3, 1, 4, 2, 1), (1, 30)])
@pytest.mark.parametrize("k", [1, 5, 60])
def test_cohorts_smaller_than_their_lists(tmp_path, sizes, k):
    cohorts = [make_planes(tmp_path / f"c{i}", n, 20, 0.4) for i, n in enumerate(sizes)]
    distances = dense(cohorts, tmp_path / "dense", "euclidean", "pairwise", 9, n_sites=20)
    options = {"metric": "euclidean", "missing": "pairwise", "min_called": 9}
    write_neighbors(cohorts, tmp_path / "out", BACKEND, k=k, **options)
    found = read_neighbors(tmp_path / "out/neighbors.npz")
    np.testing.assert_array_equal(found.index, nearest(distances, k))
    np.testing.assert_array_equal(found.distance, np.take_along_axis(distances, found.index, 1))
    rows = np.load(tmp_path / "out/landmarks.npy")
    np.testing.assert_array_equal(rows, distances.astype(np.float32))


def test_landmarks_are_rows_of_the_matrix(folders, tmp_path):
    options = {"metric": "euclidean", "missing": "pairwise", "min_called": 50}
    distances = dense(folders, tmp_path / "dense", *options.values())
    write_neighbors(folders, tmp_path, BACKEND, k=3, founders=["ann", "bea"], **options)
    some = read_neighbors(tmp_path / "neighbors.npz").landmarks
    np.testing.assert_array_equal(some, np.arange(SIZES["ann"] + SIZES["bea"]))
    held = read_landmarks(tmp_path / "landmarks.npy", some)
    expected = distances[some].astype(np.float32)
    np.testing.assert_array_equal(held.rows(some), expected)
    np.testing.assert_array_equal(held.among().matrix, expected[:, some])
    with pytest.raises(ValueError, match="no landmarks"):
        held.rows(np.array([len(distances) - 1]))


def test_landmarks_of_cohorts_are_those_of_the_study(monkeypatch):
    monkeypatch.setattr(landmarks, "MOST_LANDMARKS", 7)
    sizes = {"a": 9, "b": 1, "c": 30, "d": 2}
    names = np.repeat(list(sizes), list(sizes.values()))
    found = landmarks.landmarks_of_cohorts(sizes)
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]), strict=False))
    joined = np.concatenate([found[name] + starts[name] for name in sizes])
    np.testing.assert_array_equal(joined, landmarks.choose_landmarks(names, set(sizes)))
    assert len(joined) == 7


def test_uncomparable_pairs_stop_the_run(folders, tmp_path):
    options = {"k": 3, "metric": "ibs", "missing": "pairwise", "min_called": 50}
    with pytest.raises(UserError, match=r"distance\.min_called = 50"):
        write_neighbors(folders, tmp_path, BACKEND, on_uncomparable="error", **options)
    assert not (tmp_path / "neighbors.npz").exists()


def test_a_damaged_tile_is_computed_again(folders, tmp_path):
    options = {"k": 3, "metric": "ibs", "missing": "pairwise", "min_called": 1}
    study = tmp_path / "results"
    write_neighbors(folders[:2], study, BACKEND, **options)
    whole, tile = results_of(study), study / "tiles/bea/ann.npz"
    content = tile.read_bytes()
    tile.write_bytes(content[:500])
    assert write_neighbors(folders[:2], study, BACKEND, **options)["tiles computed"] == 1
    assert (tile.read_bytes(), results_of(study)) == (content, whole)
