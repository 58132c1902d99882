"""Neighbours of a study without a matrix of all pairs equal those of the assembled matrix."""

from __future__ import annotations

import json

import numpy as np
import pytest
from neighbor_checks import METRICS
from random_cohorts import make_planes
from reference import nearest

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
