"""Fermat geodesics equal Floyd-Warshall: exactly in integers, within a bound in floats."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles import reference
from scipy.sparse.csgraph import floyd_warshall
from support.operands import wide

from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.minplus import BASE, INFINITY_INT32, infinity
from popdesic.engine.minplus_cpu import CpuMinPlus
from popdesic.geodesic import measure
from popdesic.geodesic import weights as weights_module
from popdesic.geodesic.closure import close_paths, insert_paths, similar_order
from popdesic.geodesic.graph import COMPLETE, Graph
from popdesic.geodesic.lengths import open_lengths
from popdesic.geodesic.measure import close_weights, measure_geodesics
from popdesic.geodesic.neighbors import neighbor_paths
from popdesic.geodesic.weights import choose_number
from popdesic.relatives.kinship import SAME, relatives_but_one

DTYPES = ("int32", "int64", "float32", "float64")
#: Sizes around the base case and the first levels of the recursion.
SIZES = (1, 2, 3, 63, 64, 65, 127, 128, 129, 200, 257)


@pytest.fixture(scope="module")
def backend():
    return CpuBackend(2)


def draw_weights(rng, n: int, dtype: str, holes: float = 0.0) -> np.ndarray:
    """Symmetric integer weights of many magnitudes, some infinite, so that detours are shorter."""
    weights = np.exp(rng.uniform(0, 12, (n, n))).astype(dtype)
    weights[rng.random((n, n)) < holes] = infinity(np.dtype(dtype))
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    return weights if dtype.startswith("int") else np.rint(weights)


def shortest(weights: np.ndarray) -> np.ndarray:
    """SciPy's float64 Floyd-Warshall; zero off the diagonal is an edge, infinity is not."""
    n = len(weights)
    dense = np.ma.masked_array(weights, mask=np.isinf(weights) | np.eye(n, dtype=bool))
    return floyd_warshall(dense)


def draw_distances(rng, n: int, n_dimensions: int = 3, apart: float = 1e-3) -> np.ndarray:
    """Euclidean distances of points. The last is near the first, `apart` in each dimension."""
    points = rng.normal(size=(n, n_dimensions))
    points[-1] = points[0] + apart
    difference = points[:, None, :] - points[None, :, :]
    return np.sqrt((difference**2).sum(axis=2))


def close(distances, backend, *, alpha=2.0, number="float64", founders=None, names=None):
    n = len(distances)
    founders = np.ones(n, bool) if founders is None else founders
    names = [f"S{k}" for k in range(n)] if names is None else names
    found = close_weights(distances, founders, names, backend, alpha=alpha, number=number)
    return found.lengths, found.number, found.statistics


# --- the recursion ------------------------------------------------------------------------------


def test_worked_example(backend):
    """Three individuals at distances 1, 2 and sqrt 2: at alpha 2 the middle one is a bridge."""
    distances = np.array([[0, 1, 2], [1, 0, np.sqrt(2)], [2, np.sqrt(2), 0]])
    for number in DTYPES:
        closure, chosen, statistics = close(distances, backend, alpha=2, number=number)
        # sqrt(2)**2 is off by one unit of float64; float32 and fixed point round it to 2
        np.testing.assert_allclose(
            chosen.value(closure), [[0, 1, 3], [1, 0, 2], [3, 2, 0]], rtol=1e-15
        )
        assert (statistics.indirect_pairs, statistics.pairs) == (1, 3)
        assert statistics.median_stretch_of_indirect == pytest.approx(np.sqrt(4 / 3))
    closure, chosen, statistics = close(distances, backend, alpha=1)
    np.testing.assert_array_equal(closure, distances)
    assert statistics.indirect_pairs == 0


@pytest.mark.parametrize("holes", [0.0, 0.9])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_closure_against_scipy(backend, dtype, n, holes):
    weights = draw_weights(np.random.default_rng(n), n, dtype, holes)
    w = weights.copy()
    close_paths(w, backend)
    # integers below 2**24: every sum is exact in every type
    np.testing.assert_array_equal(wide(w), shortest(wide(weights)))


@pytest.mark.parametrize("n", [3, 30, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_closure_against_the_triple_loop(backend, dtype, n):
    weights = draw_weights(np.random.default_rng(n), n, dtype, 0.5)
    w = weights.copy()
    close_paths(w, backend)
    np.testing.assert_array_equal(wide(w), reference.floyd_warshall(wide(weights)))


@pytest.mark.parametrize("n", [65, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_closure_laws(backend, dtype, n):
    weights = draw_weights(np.random.default_rng(n), n, dtype, 0.3)
    w = weights.copy()
    close_paths(w, backend)
    np.testing.assert_array_equal(w, w.T)
    assert (np.diagonal(w) == 0).all()
    assert (w <= weights).all()
    lengths = wide(w)
    for k in range(n):
        assert (lengths <= lengths[:, k, None] + lengths[None, k, :]).all()
    again = w.copy()
    close_paths(again, backend)
    np.testing.assert_array_equal(again, w)


@pytest.mark.parametrize("dtype", DTYPES)
def test_permutation(backend, dtype):
    rng = np.random.default_rng(1)
    weights = draw_weights(rng, 140, dtype, 0.3)
    order = rng.permutation(140)
    w, permuted = weights.copy(), np.ascontiguousarray(weights[np.ix_(order, order)])
    close_paths(w, backend)
    close_paths(permuted, backend)
    np.testing.assert_array_equal(permuted, w[np.ix_(order, order)])


@pytest.mark.parametrize("new", [1, 2, 63, 65, 130, 199, 200])
@pytest.mark.parametrize("dtype", DTYPES)
def test_insertion_equals_from_scratch(backend, dtype, new):
    n = 200
    weights = draw_weights(np.random.default_rng(new), n, dtype, 0.2)
    scratch = weights.copy()
    close_paths(scratch, backend)
    inserted, old = weights.copy(), n - new
    close_paths(inserted[:old, :old], backend)
    inserted[old:, :old] = -1  # the lower left block is not read
    insert_paths(inserted, old, backend)
    np.testing.assert_array_equal(inserted, scratch)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_agree_in_floats(dtype):
    distances = draw_distances(np.random.default_rng(2), 200)
    results = []
    for threads in (1, 2):
        closure, _, _ = close(distances, CpuBackend(threads), alpha=8, number=dtype)
        results.append(closure.tobytes())
    assert results[0] == results[1]


def test_float64_on_real_valued_weights(backend):
    distances = draw_distances(np.random.default_rng(3), 150)
    for alpha in (1, 2, 4, 8):
        closure, _, _ = close(distances, backend, alpha=alpha)
        # sums of a path's edges in another order: a few units in the last place
        np.testing.assert_allclose(closure, shortest(distances**alpha), rtol=1e-14)


def test_alpha_one_is_the_distance_itself(backend):
    distances = draw_distances(np.random.default_rng(4), 100)
    closure, _, _ = close(distances, backend, alpha=1)
    # without missing genotypes the triangle inequality holds up to rounding
    np.testing.assert_allclose(closure, distances, rtol=1e-14)


# --- number types -------------------------------------------------------------------------------


def everyone(n: int) -> np.ndarray:
    return np.ones(n, bool)


def test_integer_weights_are_exact(backend):
    genotypes = reference.draw_genotypes(np.random.default_rng(5), 80, 300)
    squared = reference.pair_counts(genotypes, genotypes)["squared"]
    chosen = choose_number(squared.astype(float), everyone(80), "auto")
    assert (chosen.dtype, chosen.scale, chosen.error_bound) == ("int32", 1.0, 0.0)
    closure, chosen, _ = close(np.sqrt(squared), backend, alpha=2, number="auto")
    # squared roots are off by one unit of float64, which fixed point rounds away
    np.testing.assert_array_equal(
        chosen.value(closure), reference.floyd_warshall(squared.astype(float))
    )


@pytest.mark.parametrize("alpha", [1, 2, 4, 8])
@pytest.mark.parametrize("number", ["auto", *DTYPES])
def test_error_bound_holds(backend, number, alpha):
    """Against float64 SciPy, on every pair."""
    distances = draw_distances(np.random.default_rng(6), 150, 12)
    weights = distances**alpha
    closure, chosen, _ = close(distances, backend, alpha=alpha, number=number)
    exact = shortest(weights)
    upper = np.triu_indices(150, 1)
    error = np.abs(chosen.value(closure)[upper] / exact[upper] - 1)
    assert error.max() <= chosen.error_bound + 150 * np.finfo(float).eps  # SciPy's own sums
    if number != "auto":
        assert chosen.dtype == number
    elif alpha < 4:  # a near-duplicate lies a thousandth away
        assert chosen.dtype in ("int32", "int64")
        assert chosen.error_bound <= weights_module.FIXED_TOLERANCE


def test_auto_leaves_fixed_point_where_it_is_too_coarse():
    near = draw_distances(np.random.default_rng(7), 60)  # two are a thousandth apart
    weights = np.where(near > 0, near + 1, 0)
    assert choose_number(weights, everyone(60), "auto").dtype == "int32"
    assert choose_number(weights**12, everyone(60), "auto").dtype == "int64"
    assert choose_number(weights**12, everyone(60), "auto").error_bound <= 6.25e-8
    assert choose_number(weights**12, everyone(60), "int32").error_bound > 1e-6
    assert choose_number(near, everyone(60), "auto").dtype == "int64"
    assert choose_number(near**12, everyone(60), "auto").dtype == "float64"
    assert choose_number(near**12, everyone(60), "int64").error_bound == 1


def test_threads_change_no_number_and_no_order():
    """Of 300 people, in blocks of a few rows, with pairs that cannot be compared."""
    distances = draw_distances(np.random.default_rng(6), 300)
    distances[:7, 9:90] = distances[9:90, :7] = np.inf
    founders = np.arange(300) % 3 > 0
    found = []
    for threads in (1, 3):
        weights = COMPLETE.edge_weights(distances, founders, 3.0, threads)
        number = choose_number(weights, founders, "auto", None, threads)
        stored = number.store(weights)
        found.append((weights.tobytes(), number, similar_order(stored, threads).tobytes()))
    assert found[0] == found[1]
    np.testing.assert_array_equal(weights, distances**3.0)
    inner = weights[np.ix_(founders, founders)]
    top = inner[np.isfinite(inner)].max()
    assert number.scale == 2.0 ** np.floor(
        np.log2(float(infinity(number.dtype)) / (weights_module.HEADROOM * top))
    )
    far = distances.copy()
    far[200, 5] = far[5, 200] = 1e200
    for threads in (1, 3):
        with pytest.raises(UserError, match=r"the distance 1e\+200 overflow"):
            COMPLETE.edge_weights(far, founders, 3.0, threads)


def test_scale_comes_from_the_founders():
    weights = draw_distances(np.random.default_rng(8), 60) * 1.37
    founders = np.arange(60) < 30
    scale = choose_number(weights, founders, "int32").scale
    assert np.log2(scale) % 1 == 0
    largest = weights[:30, :30].max()
    assert largest * scale * weights_module.HEADROOM <= INFINITY_INT32
    assert 2 * largest * scale * weights_module.HEADROOM > INFINITY_INT32
    newcomers = weights.copy()
    newcomers[30:, :] *= 1.5
    newcomers = np.maximum(newcomers, newcomers.T)
    assert choose_number(newcomers, founders, "int32").scale == scale
    assert not choose_number(newcomers, founders, "int32").rescaled
    newcomers[40, 41] = newcomers[41, 40] = 40 * largest
    chosen = choose_number(newcomers, founders, "int32")
    assert chosen.rescaled
    assert chosen.scale < scale
    assert (chosen.store(newcomers)[np.isfinite(newcomers)] < INFINITY_INT32).all()


@pytest.mark.parametrize("number", ["auto", "int32"])
def test_all_weights_zero(backend, number):
    closure, chosen, statistics = close(np.zeros((4, 4)), backend, number=number)
    assert (chosen.value(closure) == 0).all()
    assert statistics.indirect_pairs == 0


def test_number_keeps_infinity():
    weights = np.array([[0, np.inf], [np.inf, 0]])
    for number in DTYPES:
        chosen = weights_module.Number(number, 2.0 if number.startswith("int") else 1.0, 0.0)
        np.testing.assert_array_equal(chosen.value(chosen.store(weights)), weights)


# --- whole studies ------------------------------------------------------------------------------


def with_hole(distances: np.ndarray, *pairs) -> np.ndarray:
    distances = distances.copy()
    for i, j in pairs:
        distances[i, j] = distances[j, i] = np.inf
    return distances


def test_infinite_pairs_are_bridged(backend):
    distances = with_hole(draw_distances(np.random.default_rng(9), 70), (3, 5))
    closure, chosen, statistics = close(distances, backend, number="auto")
    assert statistics.unreachable_pairs == 0
    found = chosen.value(closure)
    # the fixed-point tolerance of the design
    np.testing.assert_allclose(found, shortest(distances**2), rtol=1e-6, atol=1e-9)
    assert np.isfinite(found[3, 5])


@pytest.mark.parametrize("number", [*DTYPES, "auto"])
def test_isolated_sample_is_named(backend, number):
    distances = draw_distances(np.random.default_rng(10), 5)
    distances = with_hole(distances, *((2, k) for k in (0, 1, 3, 4)))
    with pytest.raises(UserError, match="sample 'eva' has no comparable other sample") as error:
        close(distances, backend, number=number, names=["a", "b", "eva", "d", "e"])
    assert "\n" not in str(error.value)


def test_two_islands_are_counted(backend):
    distances = draw_distances(np.random.default_rng(11), 6)
    distances = with_hole(distances, *((i, j) for i in (0, 1) for j in (2, 3, 4, 5)))
    closure, chosen, statistics = close(distances, backend, number="auto")
    assert statistics.unreachable_pairs == 8
    assert np.isinf(chosen.value(closure)).sum() == 16


@pytest.mark.parametrize("number", ["auto", "int32"])
def test_an_alpha_that_overflows_floats_is_refused(backend, number):
    distances = 100 * draw_distances(np.random.default_rng(12), 10)
    with pytest.raises(UserError, match=r"geodesic\.alpha = 200 .*lower it") as error:
        close(distances, backend, alpha=200.0, number=number)
    assert "\n" not in str(error.value)


def test_statistics(backend):
    distances = draw_distances(np.random.default_rng(13), 90)
    founders = np.arange(90) % 3 > 0
    closure, _, statistics = close(distances, backend, alpha=4, founders=founders)
    weights = distances**4
    upper = np.triu(np.ones((90, 90), bool), 1)
    indirect = upper & (closure < weights)
    among = upper & founders[:, None] & founders[None, :]
    assert statistics.pairs == 90 * 89 // 2
    assert statistics.indirect_pairs == indirect.sum()
    assert statistics.indirect_share == indirect.sum() / upper.sum()
    assert statistics.founder_indirect_share == (indirect & among).sum() / among.sum()
    stretch = np.median((weights[indirect] / closure[indirect]) ** (1 / 4))
    assert statistics.median_stretch_of_indirect == pytest.approx(stretch, rel=1e-12)
    assert statistics.unreachable_pairs == 0


def write(
    tmp_path,
    distances,
    backend,
    *,
    alpha="2",
    value=None,
    key="all",
    code="1",
    graph=COMPLETE,
    points=None,
):
    n = len(distances)
    samples = pd.DataFrame({"sample": [f"S{k}" for k in range(n)], "cohort": "a"})
    samples.loc[n // 2 :, "cohort"] = "b"
    about = measure_geodesics(
        distances,
        samples,
        {"a"},
        backend,
        alpha=alpha,
        value=float(alpha) if value is None else value,
        ends=set(),
        graph=graph,
        points=points,
        code=code,
        out={
            "statistics": tmp_path / "alpha.json",
            "record": tmp_path / "alpha.run.json",
            "closure": tmp_path / f"closure.{key}.npy",
            "about": tmp_path / f"closure.{key}.json",
        },
    )
    found = open_lengths(tmp_path / f"closure.{key}.npy")
    return about, found[:], found.stored(np.arange(n))


@pytest.mark.parametrize(("alpha", "value"), [("2", 2.0), ("2.5", 2.5), ("auto", 1.5)])
def test_files(tmp_path, backend, alpha, value):
    distances = draw_distances(np.random.default_rng(16), 80, 20)
    about, lengths, closure = write(tmp_path, distances, backend, alpha=alpha, value=value)
    stored = json.loads((tmp_path / "alpha.json").read_text())
    stored |= json.loads((tmp_path / "alpha.run.json").read_text())
    assert stored == about
    assert about["alpha"] == alpha
    assert about["value"] == value and about["plain"] is False
    assert lengths.dtype == np.float32
    assert closure.dtype == about["number"]["dtype"]
    assert about["graph"] == {"kind": "complete", "neighbors": 0, "density": "keep"}
    exact = shortest(distances ** about["value"])
    # float32 keeps 24 bits; below a thousandth of the median only the absolute error counts
    found = lengths.astype(np.float64) ** about["value"]
    np.testing.assert_allclose(found, exact, rtol=2e-6, atol=1e-6 * np.median(exact))
    stored = (closure / about["number"]["scale"]) ** (1 / about["value"])
    np.testing.assert_allclose(lengths, stored, rtol=1.2e-7)


@pytest.mark.parametrize("factor", [1000.0, 1e-6])
def test_weights_beyond_float32_have_distances_within_it(tmp_path, backend, factor):
    """A Manhattan distance of 20 000 alleles to the 16th power exceeds float32; its root is."""
    distances = factor * draw_distances(np.random.default_rng(17), 40)
    _, lengths, _ = write(tmp_path, distances, backend, alpha="16")
    assert lengths.dtype == np.float32
    np.testing.assert_allclose(lengths, shortest(distances**16) ** (1 / 16), rtol=1e-6)


@pytest.mark.parametrize("factor", [1000.0, 1e-6])
def test_weights_beyond_float32_are_refused(backend, factor):
    distances = factor * draw_distances(np.random.default_rng(17), 40)
    with pytest.raises(UserError, match=r"float32 cannot hold .* alpha = 16; take auto"):
        close(distances, backend, alpha=16.0, number="float32")


def test_recursion_reaches_the_base_case_only_in_blocks(monkeypatch):
    """The cubic base case never gets a block larger than BASE."""
    sizes = []

    class Counting(CpuMinPlus):
        def close_block(self, w):
            sizes.append(len(w))
            super().close_block(w)

    monkeypatch.setattr(CpuBackend, "minplus", lambda self: Counting(self.threads))
    close_paths(draw_weights(np.random.default_rng(18), 300, "int32"), CpuBackend(1))
    assert sum(sizes) == 300
    assert max(sizes) <= BASE


@pytest.mark.parametrize("dtype", DTYPES)
def test_pruning_skips_work_and_changes_nothing(backend, dtype):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(1536, 20)) + 4 * rng.normal(size=(4, 20)).repeat(384, axis=0)
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    weights = np.rint(squared * 2**12).astype(dtype)
    weights[7] = weights[:, 7] = infinity(dtype)  # a sample without edges
    weights[10, 11] = weights[11, 10] = 1  # duplicates
    np.fill_diagonal(weights, 0)
    results = []
    for prune in (False, True):
        w = weights.copy()
        work = close_paths(w, backend, prune=prune)
        results.append(w)
    assert 0.1 < work.skipped_share < 1
    assert (results[0] < weights).any()
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(wide(results[0]), shortest(wide(weights)))


def test_nearly_equal_weights_need_no_work(backend):
    """Row minima certify that every pair is direct: 2 * 60 >= 100."""
    rng = np.random.default_rng(6)
    weights = rng.integers(60, 100, (1100, 1100)).astype(np.int32)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    w = weights.copy()
    assert close_paths(w, backend).skipped_share > 0.99
    np.testing.assert_array_equal(w, weights)


# --- earlier closures ---------------------------------------------------------------------------


def arrive(
    folder,
    distances,
    chosen,
    backend,
    *,
    alpha="2",
    value=None,
    key="all",
    code="1",
    graph=COMPLETE,
    points=None,
) -> dict:
    """Run on some of the samples; S0 ... S29 are the founders."""
    chosen = np.array(chosen)
    samples = pd.DataFrame({"sample": [f"S{k}" for k in chosen], "cohort": "new"})
    samples.loc[chosen < 30, "cohort"] = "founders"
    return measure_geodesics(
        distances[np.ix_(chosen, chosen)],
        samples,
        {"founders"},
        backend,
        alpha=alpha,
        value=float(alpha) if value is None else value,
        ends=set(),
        graph=graph,
        points=points,
        code=code,
        out={
            "statistics": folder / "alpha.json",
            "record": folder / "alpha.run.json",
            "closure": folder / f"closure.{key}.npy",
            "about": folder / f"closure.{key}.json",
        },
    )


@pytest.mark.parametrize("alpha", ["2", "8"])
def test_order_of_arrival_changes_no_byte(tmp_path, backend, alpha):
    distances = draw_distances(np.random.default_rng(20), 90, 20, 0.7)
    outputs = ("alpha.json", "closure.all.npy", "closure.all.json")
    contents = []
    for case, before in enumerate([None, range(60), [*range(30), *range(70, 90)], range(0, 90)]):
        folder = tmp_path / str(case)
        folder.mkdir()
        if before is not None:
            arrive(folder, distances, before, backend, alpha=alpha, key="before")
        about = arrive(folder, distances, range(90), backend, alpha=alpha)
        contents.append([(folder / name).read_bytes() for name in outputs])
        assert contents[-1] == contents[0]
        if before is None:
            assert about["continued"] is None
        else:
            assert about["continued"] == "closure.before.npy"
            assert about["inserted"] == 90 - len(before)
            assert about["old_pairs"] == len(before) * (len(before) - 1) // 2
    # the relative of S0, which arrives last, is a shortcut between earlier samples
    assert (alpha == "2") or json.loads((tmp_path / "1/alpha.run.json").read_text())[
        "old_pairs_shortened"
    ] > 0


def test_closures_that_are_not_continued(tmp_path, backend):
    distances = draw_distances(np.random.default_rng(21), 60, 20, 0.7)
    arrive(tmp_path, distances, range(50), backend, key="before")
    assert arrive(tmp_path, distances, range(60), backend)["continued"]
    assert arrive(tmp_path, distances, range(1, 60), backend, key="less")["continued"] is None
    assert arrive(tmp_path, distances, range(60), backend, code="2")["continued"] is None
    changed = distances.copy()
    changed[3, 4] = changed[4, 3] = 1.01 * distances[3, 4]
    assert arrive(tmp_path, changed, range(60), backend, key="c")["continued"] is None
    for key in ("less", "c"):
        (tmp_path / f"closure.{key}.json").unlink()
    closure = tmp_path / "closure.before.npy"
    for damage in (closure.read_bytes()[:-100], b"", b"no array"):
        (tmp_path / "closure.all.json").unlink(missing_ok=True)
        closure.write_bytes(damage)
        assert arrive(tmp_path, distances, range(60), backend)["continued"] is None
    (tmp_path / "closure.before.json").write_text("{")
    (tmp_path / "closure.all.json").unlink()
    assert arrive(tmp_path, distances, range(60), backend)["continued"] is None


def test_a_duplicate_that_needs_a_wider_type_is_closed_anew(tmp_path, backend):
    """In the type of the earlier closure its distance would keep few digits."""
    distances = draw_distances(np.random.default_rng(20), 60, 20, 1e-4)
    for case, before in enumerate((None, range(59))):
        (tmp_path / str(case)).mkdir()
        if before is not None:
            about = arrive(tmp_path / str(case), distances, before, backend, key="before")
            assert about["number"]["dtype"] == "int32"
        about = arrive(tmp_path / str(case), distances, range(60), backend)
        assert about["continued"] is None and about["number"]["dtype"] == "int64"
        # float32 is what distances are exported as
        found = open_lengths(tmp_path / str(case) / "closure.all.npy")[0][59]
        np.testing.assert_allclose(found, distances[0, 59], rtol=2e-7)
    one, other = (tmp_path / case / "closure.all.npy" for case in "01")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("value", "graph"),
    [(2.0, COMPLETE), (1.0, Graph("knn", 5)), (1.0, Graph("knn", 6)), (1.5, COMPLETE)],
)
def test_another_choice_is_closed_anew(tmp_path, backend, value, graph):
    """`auto` keeps the names of its files where its graph and alpha change with the founders."""
    distances = draw_distances(np.random.default_rng(25), 60, 20, 0.7)
    chosen = {"alpha": "auto", "value": 1.0, "graph": Graph("knn", 4)}
    arrive(tmp_path, distances, range(50), backend, key="before", **chosen)
    assert arrive(tmp_path, distances, range(60), backend, key="same", **chosen)["continued"]
    (tmp_path / "closure.same.json").unlink()
    other = {"alpha": "auto", "value": value, "graph": graph}
    about = arrive(tmp_path, distances, range(60), backend, key="other", **other)
    assert about["continued"] is None
    (tmp_path / "alone").mkdir()
    arrive(tmp_path / "alone", distances, range(60), backend, key="other", **other)
    found, expected = (folder / "closure.other.npy" for folder in (tmp_path, tmp_path / "alone"))
    assert found.read_bytes() == expected.read_bytes()


def points_on_a_line(folder: Path, n: int) -> tuple[np.ndarray, dict]:
    """Distances between points, and where their coordinates are."""
    x = np.random.default_rng(26).uniform(0, 1, n)
    np.save(folder / "pca.npy", np.stack([x, 7 * x], axis=1))
    return np.abs(x[:, None] - x), {"file": folder / "pca.npy", "pcs": 1}


def test_plain_distances_of_points_are_kept(tmp_path, monkeypatch):
    """On a line every pair has ties, which rounding would break; and nothing is closed."""
    monkeypatch.setattr(CpuMinPlus, "close_block", None)
    monkeypatch.setattr(CpuBackend, "minplus", None)
    distances, points = points_on_a_line(tmp_path, 60)
    plain = {"alpha": "auto", "value": 1.0, "points": points}
    about, lengths, closure = write(tmp_path, distances, CpuBackend(1), **plain)
    np.testing.assert_array_equal(closure, distances)
    assert (tmp_path / "closure.all.npy").stat().st_size < 200  # nothing is stored twice
    np.testing.assert_array_equal(lengths, distances.astype(np.float32))
    assert about["plain"] and about["indirect_pairs"] == 0
    assert about["number"]["dtype"] == "float64" and about["number"]["error_bound"] == 0
    ends = close_weights(
        *(distances, np.arange(60) < 40, [str(k) for k in range(60)], CpuBackend(1)),
        **{"alpha": 1.0, "number": "auto", "of_points": True, "ends": np.arange(60) > 50},
    )
    np.testing.assert_array_equal(ends.lengths, distances)


def test_only_plain_distances_of_points_are_kept(tmp_path, backend):
    """Distances at jointly called sites need not be a metric: they are closed as well."""
    distances, points = points_on_a_line(tmp_path, 40)
    about, _, _ = write(tmp_path, distances, backend, alpha="2", points=points)
    assert not about["plain"] and about["indirect_share"] > 0.8
    graph = Graph("knn", 3)
    about, _, _ = write(tmp_path, distances, backend, alpha="1", graph=graph, points=points)
    assert not about["plain"] and about["indirect_share"] > 0.5
    distances[3, 4] = distances[4, 3] = 5.0
    about, lengths, _ = write(tmp_path, distances, backend, alpha="1")
    assert not about["plain"] and lengths[3, 4] < 1.1


# --- very many samples --------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 12, 199])
def test_neighbour_paths_are_never_too_short(k):
    distances = draw_distances(np.random.default_rng(24), 200, 3)
    weights = distances**4
    lengths, error = neighbor_paths(weights, k)
    exact = shortest(weights)
    assert (lengths >= exact * (1 - 1e-12)).all()
    assert (lengths <= weights).all()
    np.testing.assert_array_equal(lengths, lengths.T)
    upper = np.triu_indices(200, 1)
    excess = lengths[upper] / exact[upper] - 1
    assert error["largest_excess"] <= excess.max() + 1e-12
    assert error["checked_rows"] == 16
    if k == 199:
        assert excess.max() < 1e-12
    elif k == 3:
        assert error["largest_excess"] > 1e-3, "the data of this test must show an error"


def test_neighbour_paths_are_those_of_dijkstra(rng):
    """SciPy's, to the last bit, with weights of zero and infinity; threads change nothing."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n, k = 300, 7
    weights = draw_distances(rng, n, 3) ** 3
    weights[4, 5] = weights[5, 4] = 0.0
    apart = np.zeros(n, bool)
    apart[250:] = True
    weights[apart[:, None] != apart[None]] = np.inf
    weights[9], weights[:, 9], weights[9, 9] = np.inf, np.inf, 0.0  # no neighbour at all
    others = np.where(np.eye(n, dtype=bool), np.inf, weights)
    near = np.argsort(others, axis=1)[:, :k]  # no two weights of a row but infinities are equal
    rows, place = np.nonzero(np.isfinite(np.take_along_axis(others, near, axis=1)))
    ends = near[rows, place]
    graph = csr_array((weights[rows, ends], (rows, ends)), (n, n))
    expected = np.minimum(dijkstra(graph, directed=False), weights)
    expected = np.minimum(expected, expected.T)
    for threads in (1, 2):
        np.testing.assert_array_equal(neighbor_paths(weights, k, threads)[0], expected)


def test_above_the_limit_geodesics_are_called_approximate(backend, monkeypatch):
    monkeypatch.setattr(measure, "MOST_CLOSED", 79)
    distances = draw_distances(np.random.default_rng(25), 80, 3)
    names = [f"S{k}" for k in range(80)]
    found = close_weights(
        distances,
        everyone(80),
        names,
        backend,
        alpha=4,
    )
    assert found.number.dtype == "float64"
    assert found.approximate["neighbors"] == 50
    exact = close_weights(distances[:79, :79], everyone(79), names[:79], backend, alpha=4)
    assert exact.approximate is None


# --- relatives as endpoints only ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_ends", [0, 1, 7, 59])
def test_no_path_runs_through_excluded_bridges(backend, dtype, n_ends):
    rng = np.random.default_rng(n_ends)
    distances = draw_distances(rng, 60, 3)
    ends = np.zeros(60, bool)
    ends[rng.permutation(60)[:n_ends]] = True
    found = close_weights(
        distances,
        everyone(60),
        [f"S{k}" for k in range(60)],
        backend,
        alpha=4,
        number=dtype,
        ends=ends,
    )
    weights = wide(found.direct)
    inner = np.flatnonzero(~ends)
    exact = weights.copy()
    if len(inner):
        exact[np.ix_(inner, inner)] = reference.floyd_warshall(weights[np.ix_(inner, inner)])
    among = exact[np.ix_(inner, inner)]
    for i in range(60):
        for j in range(60):
            ways = [weights[i, j]]
            if len(inner) and i != j:
                ways.append((weights[i, inner][:, None] + among + weights[inner, j]).min())
            exact[i, j] = min(ways)
    np.testing.assert_allclose(wide(found.lengths), exact, rtol=1e-6 if "32" in dtype else 1e-12)


def test_families_keep_one_bridge(tmp_path):
    columns = "sample_a\tsample_b\tkinship\trelation\n"
    (tmp_path / "1.tsv").write_text(columns + "child\tfather\t0.25\tr\nchild\tmother\t0.24\tr\n")
    (tmp_path / "2.tsv").write_text(columns + f"a\ta.dup\tNA\t{SAME}\nx\tcousin\t0.06\tr\n")
    tiles = [tmp_path / "1.tsv", tmp_path / "2.tsv"]
    assert relatives_but_one(tiles) == {"child", "a.dup"}
    assert relatives_but_one([]) == set()
