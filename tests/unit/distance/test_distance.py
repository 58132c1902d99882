"""Tiles, assembly, metrics and export equal counts made pair by pair."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.spatial.distance
from oracles.reference import draw_genotypes, make_planes, pair_counts

from popdesic.core.errors import UserError
from popdesic.core.files import write_json
from popdesic.core.tables import write_npz
from popdesic.core.triangle import Tiled, open_symmetric, pack_counts, upper_triangle
from popdesic.distance import tiles as tiles_module
from popdesic.distance.matrix import (
    export_distances,
    load_distances,
    metric_distances,
    point_distances,
)
from popdesic.distance.measure_tile import measure_tile
from popdesic.distance.tiles import (
    SYMMETRIC,
    assemble_tiles,
    count_type,
    limit_in_words,
    study_matrices,
    tile_counts,
    tile_outputs,
    within_panel,
)
from popdesic.engine.backend_cpu import CpuBackend

N_SITES = 150
METRICS = ("euclidean", "manhattan", "ibs", "normalized")


@pytest.fixture(scope="module")
def backend():
    return CpuBackend(2)


@pytest.fixture
def genotypes():
    rng = np.random.default_rng(1)
    drawn = {name: draw_genotypes(rng, n, N_SITES, 0.1) for name, n in (("b", 5), ("a", 7))}
    return drawn | {"n": draw_genotypes(rng, 3, N_SITES)}  # a newcomer without missing genotypes


def write_cohort(
    folder: Path, name: str, genotypes, *, panel: str = "p1", fill=None, n_words: int = 8
) -> Path:
    folder = folder / name
    folder.mkdir(parents=True)
    np.save(folder / "planes.npy", make_planes(genotypes, fill=fill, n_words=n_words))
    samples = [f"{name}{k}" for k in range(len(genotypes))]
    about = {"cohort": name, "panel": panel, "n_sites": genotypes.shape[1], "samples": samples}
    write_json(folder / "planes.json", about)
    return folder


def make_tiles(tmp_path, genotypes: dict, backend, *, metric="ibs", missing="pairwise") -> dict:
    folders = {n: write_cohort(tmp_path / "cohorts", n, g) for n, g in genotypes.items()}
    order = list(genotypes)
    tiles = {}
    for i, a in enumerate(order):
        for b in order[i:]:
            tiles[a, b] = tmp_path / f"{a}__{b}.npz"
            measure_tile(
                folders[a], folders[b], tiles[a, b], backend, metric=metric, missing=missing
            )
    return tiles


def assemble(tiles, order, out, *, metric="ibs", min_called=1, on_uncomparable="error"):
    counts = assemble_tiles(
        tiles, order, out, metric=metric, min_called=min_called, on_uncomparable=on_uncomparable
    )
    matrices = {name: open_symmetric(out / f"{name}.npy")[:] for name in study_matrices(metric)}
    return counts, matrices, pd.read_csv(out / "samples.tsv", sep="\t")


@pytest.fixture(params=["numbers", "names"])
def written(request, monkeypatch):
    """The study's matrices have the numbers, or name the tiles that have them."""
    if request.param == "names":
        monkeypatch.setattr(tiles_module, "TILE_NUMBERS", 1)
    return request.param


# --- tiles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_tiles(tmp_path, genotypes, backend, metric):
    tiles = make_tiles(tmp_path, genotypes, backend, metric=metric)
    for (a, b), path in tiles.items():
        expected = pair_counts(genotypes[a], genotypes[b])
        other = pair_counts(genotypes[b], genotypes[a])
        for name in ("sums", "squares"):
            expected |= {f"{name}_a": expected[name], f"{name}_b": other[name].T}
        with np.load(path) as tile:
            names = set(tile_outputs(metric))
            least = {f"{name}_least" for name in names}
            assert set(tile) == names | least | {"samples_a", "samples_b", "n_sites", "panel"}
            for name in names:
                assert tile[name].dtype == np.uint16
                assert tile[name].ndim == (1 if a == b and name in SYMMETRIC else 2)
                np.testing.assert_array_equal(tile_counts(tile, name), expected[name])
            assert tile["samples_a"].tolist() == [f"{a}{k}" for k in range(len(genotypes[a]))]
            assert tile["samples_b"].tolist() == [f"{b}{k}" for k in range(len(genotypes[b]))]
            assert (int(tile["n_sites"]), str(tile["panel"])) == (N_SITES, "p1")


@pytest.mark.parametrize(("most", "n_bytes"), [(60_000, 2), (2**24, 3), (2**24 + 2, 4)])
def test_rows_come_from_tiles_of_two_to_four_bytes(tmp_path, most, n_bytes):
    rng, sizes = np.random.default_rng(most), {"a": 9, "b": 1, "c": 300}
    ends = np.cumsum([0, *sizes.values()])
    matrix = rng.integers(-5, most - 5, (ends[-1],) * 2).astype(np.int32)
    matrix = np.maximum(matrix, matrix.T)
    matrix[:, 0] = matrix[0] = -5
    matrix[1] = matrix[:, 1] = most - 6
    parts, tiles = {name: slice(*ends[k : k + 2]) for k, name in enumerate(sizes)}, {}
    for i, a in enumerate(sizes):
        for b in list(sizes)[i:]:
            block = matrix[parts[a], parts[b]]
            tiles[a, b] = tmp_path / f"tiles/{b}/{a}.npz"
            write_npz(tiles[a, b], **pack_counts("x", upper_triangle(block) if a == b else block))
    Tiled.of(tmp_path, "x", sizes, tiles, matrix.dtype).write()
    found = open_symmetric(tmp_path / "x.npy")
    assert isinstance(found, Tiled) and found.shape == matrix.shape and found.dtype == np.int32
    np.testing.assert_array_equal(found[:], matrix)
    for which in (np.arange(7, 40), rng.permutation(310), np.array([309, 9, 9, 0])):
        np.testing.assert_array_equal(found[which], matrix[which])
    size = tiles["a", "c"].stat().st_size
    assert n_bytes * 2700 <= size < n_bytes * 2700 + 1000


def test_a_tile_that_is_not_the_one_that_was_named_is_refused(tmp_path):
    folder, matrix = tmp_path / "results/distance", np.arange(9, dtype=np.int32).reshape(3, 3)
    tile = folder / "tiles/a/a.npz"
    write_npz(tile, **pack_counts("x", upper_triangle(matrix)))
    Tiled.of(folder, "x", {"a": 3}, {("a", "a"): tile}, matrix.dtype).write()
    open_symmetric(folder / "x.npy")[:]
    write_npz(tile, **pack_counts("x", upper_triangle(matrix + matrix)))
    with pytest.raises(UserError, match=r"x.npy names the tile .*a.npz, which is another one now"):
        open_symmetric(folder / "x.npy")[:]
    write_npz(tile, **pack_counts("x", upper_triangle(matrix)))
    open_symmetric(folder / "x.npy")[:]
    os.truncate(tile, 99)
    with pytest.raises(UserError, match=r"which was cut or edited; delete .*/a.npz and run again"):
        open_symmetric(folder / "x.npy")[:]
    tile.unlink()
    with pytest.raises(UserError, match=r"a.npz, which is missing; delete .*/x.npy and run again"):
        open_symmetric(folder / "x.npy")[:]


def test_imputed_tiles(tmp_path, backend):
    rng = np.random.default_rng(2)
    filled = {}
    folders = {}
    for name, n in (("a", 6), ("b", 4)):
        drawn = draw_genotypes(rng, n, N_SITES, 0.2)
        fill = rng.integers(0, 3, N_SITES)
        folders[name] = write_cohort(tmp_path, name, drawn, fill=fill)
        filled[name] = np.where(drawn < 0, fill, drawn)
    counts = measure_tile(
        folders["a"], folders["b"], tmp_path / "t.npz", backend, metric="ibs", missing="imputed"
    )
    assert counts == {"samples_a": 6, "samples_b": 4, "sites": N_SITES, "site_pairs": 24 * N_SITES}
    expected = pair_counts(filled["a"], filled["b"])
    with np.load(tmp_path / "t.npz") as tile:
        for name in tile_outputs("ibs"):
            np.testing.assert_array_equal(tile_counts(tile, name), expected[name])


def test_tiles_have_the_same_bytes_twice(tmp_path, genotypes, backend):
    first = make_tiles(tmp_path / "x", genotypes, backend)
    second = make_tiles(tmp_path / "y", genotypes, CpuBackend(1))
    assert all(first[pair].read_bytes() == second[pair].read_bytes() for pair in first)


def test_tiles_of_two_panels(tmp_path, backend):
    drawn = draw_genotypes(np.random.default_rng(3), 3, N_SITES)
    a = write_cohort(tmp_path, "a", drawn)
    b = write_cohort(tmp_path, "b", drawn, panel="p2")
    with pytest.raises(UserError, match=r"b/planes\.json: encoded on panel p2, but .*a on p1"):
        measure_tile(a, b, tmp_path / "t.npz", backend, metric="euclidean", missing="pairwise")
    assert not (tmp_path / "t.npz").exists()


# --- assembly -----------------------------------------------------------------------------------


def test_counts_that_32_bits_hold():
    """A difference of 2 counts 4 at every site."""
    assert count_type(2**29 - 1) is np.int32
    assert count_type(2**29) is np.int64


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("written")
def test_assembled_matrices(tmp_path, genotypes, backend, metric):
    tiles = make_tiles(tmp_path, genotypes, backend, metric=metric)
    counts, matrices, samples = assemble(tiles, list(genotypes), tmp_path / "out", metric=metric)
    everyone = np.concatenate(list(genotypes.values()))
    expected = pair_counts(everyone, everyone)
    for name, matrix in matrices.items():
        assert matrix.dtype == np.int32
        np.testing.assert_array_equal(matrix, expected[name])
    names = [f"{c}{k}" for c, drawn in genotypes.items() for k in range(len(drawn))]
    assert samples["sample"].tolist() == names
    assert samples.cohort.tolist() == [name[0] for name in names]
    assert counts == {"samples": 15, "samples_dropped": 0, "pairs_at_infinity": 0}


@pytest.mark.usefixtures("written")
def test_mixed_panels_do_not_assemble(tmp_path, genotypes, backend):
    tiles = make_tiles(tmp_path, genotypes, backend)
    with np.load(tiles["b", "a"]) as tile:
        content = dict(tile) | {"panel": np.array("other")}
    np.savez(tiles["b", "a"], **content)
    with pytest.raises(UserError, match=r"b__a\.npz: made on panel other, other tiles on p1"):
        assemble(tiles, list(genotypes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def sparse(tmp_path, backend):
    """Cohorts in which a1 and b0 have 30 and 60 of 150 sites called, jointly at most 30."""
    rng = np.random.default_rng(4)
    drawn = {"a": draw_genotypes(rng, 3, N_SITES), "b": draw_genotypes(rng, 2, N_SITES)}
    drawn["a"][1, 30:] = -1
    drawn["b"][0, :90] = -1
    return drawn, make_tiles(tmp_path, drawn, backend)


@pytest.mark.usefixtures("written")
def test_uncomparable_pair_is_an_error(tmp_path, sparse):
    with pytest.raises(UserError) as error:
        assemble(sparse[1], ["a", "b"], tmp_path / "out", min_called=20)
    sentence = str(error.value)
    assert "samples 'a1' and 'b0' have 0 jointly called sites" in sentence
    assert "distance.min_called = 20" in sentence
    assert "(1 such pairs)" in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("written")
def test_uncomparable_sample_is_dropped(tmp_path, sparse):
    drawn, tiles = sparse
    counts, matrices, samples = assemble(
        tiles, ["a", "b"], tmp_path / "out", min_called=20, on_uncomparable="drop"
    )
    kept = np.concatenate([drawn["a"][[0, 2]], drawn["b"]])  # a1 has more missing than b0
    expected = pair_counts(kept, kept)
    for name, matrix in matrices.items():
        np.testing.assert_array_equal(matrix, expected[name])
    assert samples["sample"].tolist() == ["a0", "a2", "b0", "b1"]
    assert counts == {"samples": 4, "samples_dropped": 1, "pairs_at_infinity": 0}


@pytest.mark.usefixtures("written")
def test_dropping_goes_on_until_all_pairs_are_comparable(tmp_path, sparse):
    _, _, samples = assemble(
        sparse[1], ["a", "b"], tmp_path / "out", min_called=100, on_uncomparable="drop"
    )
    assert samples["sample"].tolist() == ["a0", "a2", "b1"]


@pytest.mark.usefixtures("written")
def test_dropping_everyone_is_an_error(tmp_path, backend):
    rng = np.random.default_rng(4)
    drawn = {"a": draw_genotypes(rng, 3, N_SITES), "b": draw_genotypes(rng, 2, N_SITES)}
    for genotypes in drawn.values():
        genotypes[:, 7] = -1
    tiles = make_tiles(tmp_path, drawn, backend)
    with pytest.raises(UserError, match=r"distance\.min_called = 150") as error:
        assemble(tiles, ["a", "b"], tmp_path / "out", min_called=150, on_uncomparable="drop")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("written")
def test_uncomparable_pair_is_kept_at_infinity(tmp_path, sparse):
    counts, _, _ = assemble(
        sparse[1], ["a", "b"], tmp_path / "out", min_called=20, on_uncomparable="keep"
    )
    assert counts == {"samples": 5, "samples_dropped": 0, "pairs_at_infinity": 1}
    for metric in ("euclidean", "manhattan", "ibs"):
        distances = load_distances(tmp_path / "out", metric=metric, n_sites=N_SITES, min_called=20)
        assert np.argwhere(np.isinf(distances)).tolist() == [[1, 3], [3, 1]]


# --- metrics ------------------------------------------------------------------------------------


def one_metric(a, b, metric: str) -> float:
    """Distance of two samples by definition, scaled to all sites (PLINK's flat-missing)."""
    both = (a >= 0) & (b >= 0)
    difference = np.abs(a[both].astype(float) - b[both])
    if metric == "euclidean":
        return np.sqrt((difference**2).sum() * len(a) / both.sum())
    if metric == "manhattan":
        return difference.sum() * len(a) / both.sum()
    if metric == "ibs":
        return difference.sum() / (2 * both.sum())
    return np.linalg.norm(a[both] / a[both].sum() - b[both] / b[both].sum())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("written")
def test_metrics(tmp_path, genotypes, backend, metric):
    tiles = make_tiles(tmp_path, genotypes, backend, metric=metric)
    assemble(tiles, list(genotypes), tmp_path / "out", metric=metric)
    found = load_distances(tmp_path / "out", metric=metric, n_sites=N_SITES, min_called=1)
    everyone = np.concatenate(list(genotypes.values()))
    expected = [[one_metric(a, b, metric) for b in everyone] for a in everyone]
    # a product, a quotient and a root round three times; normalised profiles are sums of fractions
    tolerance = 1e-12 if metric == "normalized" else 1e-15
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    np.testing.assert_array_equal(found, found.T)
    assert (np.diagonal(found) == 0).all()


def test_scaling_is_exact_where_nothing_is_missing():
    squared = np.array([[9, 16]])
    called = np.array([[37, 37]])
    found = metric_distances(squared, called, None, metric="euclidean", n_sites=37, min_called=1)
    assert found.tolist() == [[3.0, 4.0]]


def test_pairs_below_the_limit_are_infinite():
    called = np.array([[0, 4, 5]])
    zeros = np.zeros_like(called)
    sums = np.ones_like(called)
    for metric in METRICS:
        found = metric_distances(
            zeros,
            called,
            zeros,
            metric=metric,
            n_sites=9,
            min_called=5,
            sums=(sums, sums),
            squares=(sums, sums),
        )
        assert found.tolist() == [[np.inf, np.inf, 0.0]]


@pytest.mark.usefixtures("written")
def test_normalized_individuals(tmp_path, backend):
    """Doubled genotypes at every site are at distance 0; without ALT there is no profile."""
    rng = np.random.default_rng(6)
    one = (rng.random(N_SITES) < 0.3).astype(np.int8)
    drawn = np.stack([one, 2 * one, np.zeros_like(one), one])
    drawn[3, np.flatnonzero(one)[0]] = -1
    tiles = make_tiles(tmp_path, {"a": drawn}, backend, metric="normalized")
    assemble(tiles, ["a"], tmp_path / "out", metric="normalized")
    found = load_distances(tmp_path / "out", metric="normalized", n_sites=N_SITES, min_called=1)
    assert (found[np.ix_([0, 1, 3], [0, 1, 3])] == 0).all()
    assert np.isinf(found[2, [0, 1, 3]]).all()
    assert found[2, 2] == 0


def test_normalized_of_near_duplicates_keeps_its_digits():
    """One differing site among 2**29, against the definition in exact integers."""
    n = 1 << 29
    square_a, sum_a, sum_b = n + 3, n + 1, n  # one homozygote among carriers, and a twin without
    found = metric_distances(
        *(np.array([[x]]) for x in (1, n)),
        None,
        metric="normalized",
        n_sites=n,
        min_called=1,
        sums=(np.array([[sum_a]]), np.array([[sum_b]])),
        squares=(np.array([[square_a]]), np.array([[n]])),
    )
    product = (square_a + n - 1) // 2
    exact = square_a * sum_b**2 + n * sum_a**2 - 2 * product * sum_a * sum_b
    np.testing.assert_allclose(found, np.sqrt(exact) / (sum_a * sum_b), rtol=1e-14)


@pytest.mark.usefixtures("written")
def test_export(tmp_path, genotypes, backend):
    tiles = make_tiles(tmp_path, genotypes, backend)
    assemble(tiles, list(genotypes), tmp_path / "out")
    arguments = {"metric": "manhattan", "n_sites": N_SITES, "min_called": 1}
    export_distances(tmp_path / "out", **arguments)
    distances = load_distances(tmp_path / "out", **arguments)
    called = open_symmetric(tmp_path / "out/called.npy")[:]
    written = np.loadtxt(tmp_path / "out/distance.mdist")
    np.testing.assert_allclose(written, distances, rtol=1e-8)  # nine digits are written
    names = pd.read_csv(tmp_path / "out/samples.tsv", sep="\t")["sample"].tolist()
    ids = (tmp_path / "out/distance.mdist.id").read_text().split("\n")[:-1]
    assert ids == [f"0\t{name}" for name in names]
    first = (tmp_path / "out/distance.tsv.gz").read_bytes()
    rows = [line.split("\t") for line in gzip.decompress(first).decode().split("\n")[:-1]]
    assert rows[0] == ["sample_a", "sample_b", "distance", "called"]
    pairs = [(i, j) for i in range(15) for j in range(i + 1, 15)]
    assert [(row[0], row[1]) for row in rows[1:]] == [(names[i], names[j]) for i, j in pairs]
    assert [int(row[3]) for row in rows[1:]] == [called[i, j] for i, j in pairs]
    np.testing.assert_allclose(
        [float(row[2]) for row in rows[1:]], [distances[i, j] for i, j in pairs], rtol=1e-8
    )
    export_distances(tmp_path / "out", **arguments)
    assert (tmp_path / "out/distance.tsv.gz").read_bytes() == first, "no time in the gzip header"


def test_point_distances(tmp_path):
    points = np.random.default_rng(5).normal(size=(9, 6))
    np.save(tmp_path / "points.npy", points)
    found = point_distances(tmp_path / "points.npy", 4)
    expected = scipy.spatial.distance.cdist(points[:, :4], points[:, :4])
    np.testing.assert_allclose(found, expected, rtol=1e-14)  # a sum of four squares and a root
    assert (np.diagonal(found) == 0).all()


@pytest.mark.parametrize(
    ("min_called", "n_sites", "least"),
    [(100, 100, 100), (100, 99, 50), (100, 50, 25), (100, 3, 2), (100, 1, 1), (1, 1, 1)],
)
def test_half_of_a_panel_below_the_limit_suffices(min_called, n_sites, least):
    assert within_panel(min_called, n_sites) == least
    assert f"distance.min_called = {min_called}" in limit_in_words(min_called, n_sites)
    assert (f"{least} suffice" in limit_in_words(min_called, n_sites)) == (least < min_called)
