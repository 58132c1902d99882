"""densMAP and t-SNE: densities, neighbours, reproducible bytes, frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from support.one_map import measure_map, umap_layout
from threadpoolctl import threadpool_limits

from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.maps.densmap import densmap_layout
from popdesic.maps.further_maps import compute_further_map, tsne_layout

OPTIONS = {"neighbors": 15, "min_dist": 0.3, "seed": 1}


@pytest.fixture(scope="module")
def groups():
    """Three distant groups of 50 with spreads 1, 0.2 and 3: points and distances."""
    rng = np.random.default_rng(3)
    parts = [rng.normal(at, spread, (50, 5)) for at, spread in ((0, 1), (15, 0.2), (-15, 3))]
    points = np.concatenate(parts)
    return points, squareform(pdist(points))


def spreads(drawn):
    return [float(np.sqrt(drawn[i : i + 50].var(axis=0).sum())) for i in (0, 50, 100)]


def test_densmap_keeps_densities_and_umap_does_not(groups):
    points, distances = groups
    plain = umap_layout(distances.__getitem__, 150, points, **OPTIONS)
    dense = densmap_layout(distances.__getitem__, 150, points, **OPTIONS)
    again = densmap_layout(distances.__getitem__, 150, points, **OPTIONS)
    assert dense.tobytes() == again.tobytes()
    usual, tight, wide = spreads(dense)
    assert tight < usual < wide and wide > 2 * tight
    _, tight, wide = spreads(plain)
    assert wide < 1.5 * tight


def test_densmap_of_equal_distances_is_a_map():
    distances, start = np.ones((12, 12)) - np.eye(12), np.random.default_rng(1).normal(size=(12, 2))
    drawn = densmap_layout(distances.__getitem__, 12, start, **OPTIONS)
    assert np.isfinite(drawn).all() and np.ptp(drawn, axis=0).min() > 0


def test_densmap_needs_five_samples():
    with pytest.raises(UserError, match="densMAP needs at least 5 samples, this study has 4"):
        densmap_layout(np.ones((4, 4)).__getitem__, 4, np.ones((4, 2)), **OPTIONS)


def test_tsne_keeps_neighbors_and_bytes(groups):
    points, distances = groups
    maps = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            maps.append(tsne_layout(distances.__getitem__, 150, points, seed=1))
    assert maps[0].tobytes() == maps[1].tobytes()
    found = measure_map(maps[0], distances.__getitem__, np.arange(150))
    assert found["trustworthiness"] > 0.93 and found["recall_50"] > 0.95
    # the unit does not matter, for any power
    far = tsne_layout((2.0**60 * distances).__getitem__, 150, points, seed=1)
    np.testing.assert_array_equal(far, maps[0])


@pytest.mark.parametrize("n", [5, 6, 31, 92])
def test_tsne_of_few_samples_and_of_twins(n):
    points = np.random.default_rng(n).normal(size=(n, 3))
    points[: n // 2] = points[0]
    drawn = tsne_layout(squareform(pdist(points)).__getitem__, n, points, seed=1)
    assert drawn.shape == (n, 2) and np.isfinite(drawn).all()


def test_tsne_needs_five_samples_and_finite_neighbors():
    with pytest.raises(UserError, match="t-SNE needs at least 5 samples, this study has 4"):
        tsne_layout(np.ones((4, 4)).__getitem__, 4, np.ones((4, 2)), seed=1)
    distances = np.ones((8, 8)) - np.eye(8)
    distances[0, 1] = distances[1, 0] = np.inf
    with pytest.raises(UserError, match="no finite geodesic"):
        tsne_layout(distances.__getitem__, 8, np.ones((8, 2)), seed=1)


@pytest.mark.parametrize(("method", "axis"), [("densmap", "densMAP"), ("tsne", "tSNE")])
def test_a_frame_does_not_move_when_newcomers_arrive(tmp_path, groups, method, axis):
    """Founders and one newcomer, then two, with files as the rule writes them."""
    points, distances = groups
    tables = []
    for n in (121, 122):
        order = pd.DataFrame({"sample": [f"s{i}" for i in range(n)]})
        order["cohort"] = ["old"] * 120 + ["new"] * (n - 120)
        order.to_csv(tmp_path / "order.tsv", sep="\t", index=False)
        np.save(tmp_path / "scores.npy", points[:n])
        np.save(tmp_path / "near.npy", distances[:n, :120])
        compute_further_map(
            method,
            tmp_path / "not-read.npy",
            tmp_path / "scores.npy",
            tmp_path / "order.tsv",
            tmp_path / "order.tsv",
            neighbors=OPTIONS["neighbors"],
            seed=OPTIONS["seed"],
            out=tmp_path / f"{n}.tsv",
            frame=tmp_path / "near.npy",
            founders={"old"},
        )
        tables.append(read_table(tmp_path / f"{n}.tsv"))
    assert list(tables[0].columns) == ["sample", f"{axis}1", f"{axis}2", "cohort"]
    pd.testing.assert_frame_equal(tables[0], tables[1][:121])
