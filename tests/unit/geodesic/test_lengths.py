"""Closures on disk: the upper triangle alone, read as rows of lengths."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from popdesic.core import triangle
from popdesic.core.files import write_json
from popdesic.core.triangle import (
    Triangle,
    open_symmetric,
    triangle_size,
    upper_triangle,
    write_triangle,
)
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.minplus import infinity
from popdesic.geodesic.graph import COMPLETE, Graph
from popdesic.geodesic.lengths import open_lengths
from popdesic.geodesic.study_paths import measure_paths

SIZES = [1, 2, 7, 8, 9, 16, 17, 30]


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    monkeypatch.setattr(triangle, "BLOCK", 8)


def draw_matrix(n: int, dtype: str) -> np.ndarray:
    drawn = np.random.default_rng(n).integers(1, 2**30, (n, n)).astype(dtype)
    drawn = np.minimum(drawn, drawn.T)
    np.fill_diagonal(drawn, 0)
    return drawn


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_rows_are_those_of_the_matrix(tmp_path, n, dtype):
    matrix, rng = draw_matrix(n, dtype), np.random.default_rng(1)
    write_triangle(tmp_path / "w.npy", matrix)
    found = Triangle(tmp_path / "w.npy")
    assert (found.dtype, found.shape, len(found)) == (dtype, (n, n), n)
    np.testing.assert_array_equal(found[:], matrix)
    assert upper_triangle(matrix).shape == (triangle_size(n),)
    few = (matrix % 50_000).astype(np.int32) - 3
    few[few == -3] = 49_999  # the diagonal too: no zero
    write_triangle(tmp_path / "few.npy", few)
    short = Triangle(tmp_path / "few.npy")
    assert np.load(tmp_path / "few.npy").dtype == np.uint16 and short.dtype == np.int32
    np.testing.assert_array_equal(short[:], few)
    np.testing.assert_array_equal(short[n // 2 :], few[n // 2 :])
    np.testing.assert_array_equal(Triangle(upper_triangle(matrix))[:], matrix)
    for which in (np.arange(n)[n // 3 : n // 2], rng.permutation(n), rng.integers(0, n, 5)):
        np.testing.assert_array_equal(found[which], matrix[which])
    np.save(tmp_path / "square.npy", matrix)
    np.testing.assert_array_equal(open_symmetric(tmp_path / "square.npy"), matrix)
    np.save(tmp_path / "other.npy", np.zeros(len(found) ** 2 + 100 * n + 3))
    with pytest.raises(ValueError, match="does not hold the triangle of a matrix"):
        Triangle(tmp_path / "other.npy")


def test_a_file_has_about_half_of_the_matrix(monkeypatch):
    monkeypatch.setattr(triangle, "BLOCK", 512)
    for n in (10_000, 30_000):
        assert n * n / 2 < triangle_size(n) < 1.06 * n * n / 2


@pytest.mark.parametrize(("kind", "longest"), [("complete", 0.0), ("shared", 3.5)])
@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0])
def test_lengths_are_roots_of_the_closure(tmp_path, kind, longest, alpha):
    """Pairs that nothing connects are infinitely far, or set apart."""
    matrix, n, scale = draw_matrix(20, "int32"), 20, 2.0**20
    matrix[3, 15] = matrix[15, 3] = infinity("int32")
    write_triangle(tmp_path / "w.npy", matrix)
    about = {"dtype": "int32", "scale": scale, "alpha": alpha, "longest": longest}
    graph = COMPLETE if kind == "complete" else Graph(kind)
    write_json(tmp_path / "w.json", about | {"graph": vars(graph)})
    write_json(tmp_path / "alpha.json", {"closure": "w.npy"})
    expected = (matrix / scale) ** (1 / alpha)
    expected[3, 15] = expected[15, 3] = np.inf
    for path in (tmp_path / "w.npy", tmp_path / "alpha.json"):
        found = open_lengths(path)
        assert found.shape == (n, n) and len(found) == n
        assert found[:].dtype == np.float32
        near = np.isfinite(expected)
        np.testing.assert_allclose(found[:][near], expected[near], rtol=1e-7)
        np.testing.assert_array_equal(found[4:9], found[:][4:9])
        np.testing.assert_array_equal(found[15], found[:][15])
        far = found[:][3, 15]
        assert far == found[:][15, 3]
        assert np.isinf(far) if kind == "complete" else 2 * longest <= far <= 3 * longest


def test_a_closure_of_two_alphas_is_stored_once(tmp_path, monkeypatch):
    """What `auto` stands for is listed too: the second file names the first, and its content."""
    scores = tmp_path / "embedding/pca.npy"
    scores.parent.mkdir()
    np.save(scores, np.random.default_rng(3).normal(size=(40, 4)))
    samples = pd.DataFrame({"sample": [f"S{k}" for k in range(40)], "cohort": "a"})
    folder = tmp_path / "geodesic/pcs"

    def measure(alpha: str, value: float, listed=()) -> tuple[dict, Path]:
        ends = {"closure": "npy", "about": "json"}
        out = {name: folder / f"closure/alpha{alpha}.set.{end}" for name, end in ends.items()}
        out |= {"statistics": folder / f"alpha{alpha}.json"}
        out |= {"record": folder / f"alpha{alpha}.run.json"}
        options = {"ends": set(), "graph": COMPLETE, "listed": listed, "code": "1"}
        distance = {"pcs": 2, "metric": "euclidean", "n_sites": 1, "min_called": 1}
        about = measure_paths(
            *("dense", [scores], "pcs", samples, {"a"}, lambda need: CpuBackend(1)),
            **{"alpha": alpha, "value": value, "distance": distance, "out": out, **options},
        )
        return about, out["closure"]

    about, closure = measure("2", 2.0)
    lengths, listed = open_lengths(closure)[:], [folder / "alpha2.json"]
    _, other = measure("3", 1.5, listed)
    assert other.stat().st_size == closure.stat().st_size
    again, record = measure("auto", 2.0, listed)
    assert again["alpha"] == "auto" and again["same_as"] == "alpha2.json"
    assert again["indirect_share"] == about["indirect_share"] > 0
    assert record.stat().st_size < 200 < closure.stat().st_size
    for path in (record, folder / "alphaauto.json"):
        np.testing.assert_array_equal(open_lengths(path)[:], lengths)
    before = record.read_bytes()
    np.save(scores, np.load(scores)[::-1])
    measure("2", 2.0)
    measure("auto", 2.0, listed)
    assert record.read_bytes() != before  # whoever read the first is told that it has changed
    _, plain = measure("1", 1.0)
    assert plain.stat().st_size < 200
    expected = np.sqrt(((np.load(scores)[:, None, :2] - np.load(scores)[:, :2]) ** 2).sum(-1))
    np.testing.assert_allclose(open_lengths(plain)[:], expected, rtol=1e-6)
