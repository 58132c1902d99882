"""Weights that are corrected for the density of sampling, and closures of them."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import pdist, squareform

import popdesic
from popdesic.core.errors import UserError
from popdesic.engine.select import select_backend
from popdesic.geodesic import measure
from popdesic.geodesic.explain import explain_geodesics
from popdesic.geodesic.founder_paths import founder_lengths
from popdesic.geodesic.graph import Graph, founder_radii, neighbor_edges
from popdesic.geodesic.lengths import open_lengths
from popdesic.geodesic.measure import close_weights, measure_geodesics
from popdesic.geodesic.weights import power_weights

KINDS = ("complete", "knn")


@pytest.fixture(scope="module")
def backend():
    return select_backend("cpu", 2)


def corrected(kind: str = "complete", k: int = 5) -> Graph:
    return Graph(kind, k, "correct")


def names(n: int) -> list[str]:
    return [f"S{i}" for i in range(n)]


def close(distances, graph, backend, alpha=2.0, number="auto", founders=None, **options):
    n = len(distances)
    founders = np.ones(n, bool) if founders is None else founders
    options |= {"alpha": alpha, "number": number, "graph": graph}
    return close_weights(distances, founders, names(n), backend, **options)


def shortest(weights: np.ndarray) -> np.ndarray:
    """SciPy's Dijkstra. Of dense matrices it would take weights below 1e-8 for missing edges."""
    joined = np.isfinite(weights)
    return dijkstra(csr_array((weights[joined], np.nonzero(joined)), weights.shape))


def slow_weights(distances, founders, k, alpha):
    """The definition, pair by pair."""
    n = len(distances)
    radius = []
    for i in range(n):
        far = sorted(distances[i, j] for j in range(n) if founders[j] and j != i)
        far = [d for d in far if 0 < d < np.inf]
        radius.append(far[min(k, len(far)) - 1] if far else None)
    weights = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            d = distances[i, j]
            if d > 0:
                r = [d if radius[one] is None else radius[one] for one in (i, j)]
                weights[i, j] = (
                    np.inf if np.isinf(d) else d * (d / (r[0] * r[1]) ** 0.5) ** (alpha - 1)
                )
    return weights


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("k", [1, 4, 99])
def test_weights_against_the_definition(rng, alpha, k):
    points = rng.normal(size=(40, 2))
    points[-3:] = points[:3]  # copies of three others
    distances = squareform(pdist(points))
    founders = np.arange(40) < 25
    # one that can be compared with no founder: it has no radius
    distances[30, :28] = distances[:28, 30] = np.inf
    found = corrected(k=k).edge_weights(distances, founders, alpha)
    expected = slow_weights(distances, founders, k, alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert (found == found.T).all()
    assert (np.diagonal(found) == 0).all()


def test_at_alpha_one_the_weights_are_the_distances(rng):
    distances = squareform(pdist(rng.normal(size=(30, 3))))
    everyone = np.ones(30, bool)
    assert (corrected().edge_weights(distances, everyone, 1.0) == distances).all()


def ratio_of_halves(lengths: np.ndarray, place: np.ndarray) -> float:
    """How much longer pairs 0.2 to 0.4 apart are in the half x > 0.5 than in the other."""
    apart = squareform(pdist(place[:, :1]))
    pairs = (apart > 0.2) & (apart < 0.4)
    level = np.abs(place[:, None, 1:] - place[:, 1:]).sum(axis=2) < 0.1
    means = []
    for half in (place[:, 0] > 0.5, place[:, 0] < 0.5):
        inside = pairs & level & half[:, None] & half
        means.append((lengths / apart.clip(1e-9))[inside].mean())
    return means[0] / means[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("alpha", [2.0, 4.0])
def test_density_plays_no_role(backend, dimensions, alpha, kind):
    """Four times as many samples in one half: equal true distances have equal lengths.

    Without correction they differ by 4 ** ((alpha - 1) / dimensions), before the root.
    """
    rng = np.random.default_rng(5)
    n = 1_000
    place = rng.uniform(size=(n, dimensions))
    dense = np.arange(n) % 5 > 0
    if dimensions == 1:  # even but for some jitter: else the few longest gaps are everything
        for half in (dense, ~dense):
            place[half, 0] = (np.arange(half.sum()) + 0.8 * place[half, 0]) / half.sum()
    place[:, 0] = np.where(dense, place[:, 0] / 2, 0.5 + place[:, 0] / 2)
    distances = squareform(pdist(place))
    kept = close(distances, Graph(kind, 20), backend, alpha)
    found = close(distances, corrected(kind, 20), backend, alpha)
    expected = 4 ** ((alpha - 1) / dimensions)
    ratio = ratio_of_halves(kept.number.value(kept.lengths), place)
    assert 0.7 * expected < ratio < 1.5 * expected
    assert ratio_of_halves(found.number.value(found.lengths), place) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0])
def test_lengths_have_the_unit_of_the_distances(rng, backend, alpha):
    distances = squareform(pdist(rng.normal(size=(60, 2))))
    graph = corrected()
    one = close(distances, graph, backend, alpha, "float64").lengths
    thousand = close(1000 * distances, graph, backend, alpha, "float64").lengths
    np.testing.assert_allclose(thousand, 1000 * one, rtol=1e-10)
    assert graph.distances(one, alpha) is one
    found = close(distances, graph, backend, alpha)
    assert found.statistics.median_stretch_of_indirect >= 1


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_against_scipy(rng, backend, kind, alpha):
    distances = squareform(pdist(rng.normal(size=(90, 3))))
    everyone = np.ones(90, bool)
    found = close(distances, corrected(kind, 6), backend, alpha)
    weights = slow_weights(distances, everyone, 6, alpha)
    if kind == "knn":
        weights[~neighbor_edges(distances, everyone, 6)] = np.inf
    exact = shortest(weights)
    value = found.number.value(found.lengths)
    np.testing.assert_allclose(value, exact, rtol=2e-6, atol=1e-6 * np.median(exact))
    assert found.statistics.indirect_pairs > 0


# --- duplicates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [2.0, 8.0])
def test_more_copies_than_neighbours_are_neither_glued_nor_sent_away(rng, backend, kind, alpha):
    """Nine founders have the same genotypes, and k is 4: without care their radius is 0."""
    factors = []
    for _ in range(9):
        points = rng.normal(size=(60, 2))
        many = np.concatenate([points, np.repeat(points[:1], 8, axis=0)])
        distances = squareform(pdist(many))
        assert founder_radii(distances, np.ones(68, bool), 4)[0] == 0
        found = close(distances, corrected(kind, 4), backend, alpha, "float64").lengths
        copies = [0, *range(60, 68)]
        assert np.isfinite(found).all()
        assert (found[np.ix_(copies, copies)] == 0).all()
        apart = found[0, 1:60]
        assert (apart > 0).all()
        alone = close(distances[:60, :60], corrected(kind, 4), backend, alpha, "float64").lengths
        factors.append(np.median(apart / alone[0, 1:]))
        # and nobody else is joined by them
        others = np.triu_indices(59, 1)
        assert np.median((found[1:60, 1:60] / alone[1:, 1:].clip(1e-300))[others]) > 0.8
    # The copies are closer neighbours to those around: lengths change, but by a bounded factor. Of
    # one study, where they may lie beside the only way to all others, it is larger in 1 of 500.
    assert 0.5 < np.median(factors) < 2 ** (alpha - 1)


def test_a_copy_that_arrives_has_the_weights_of_the_original(rng):
    points = rng.normal(size=(40, 3))
    points[-4:] = points[2]
    distances = squareform(pdist(points))
    founders = np.arange(40) < 30
    weights = corrected(k=5).edge_weights(distances, founders, 3.0)
    for copy in range(36, 40):
        assert weights[copy].tobytes() == weights[2].tobytes()


@pytest.mark.parametrize("n_founders", [1, 2, 6])
def test_founders_that_are_all_the_same_person(rng, backend, n_founders):
    """No founder has a radius: an edge's own length takes its place, and weights are distances."""
    points = rng.normal(size=(12, 2))
    points[:n_founders] = points[0]
    distances = squareform(pdist(points))
    founders = np.arange(12) < n_founders
    weights = corrected().edge_weights(distances, founders, 4.0)
    assert (weights[:n_founders, :n_founders] == 0).all()
    newcomers = distances[n_founders:, 0]  # their radius is the distance to the founders
    np.testing.assert_allclose(weights[n_founders:, 0], newcomers, rtol=1e-14)
    found = close(distances, corrected(), backend, 4.0, founders=founders)
    assert np.isfinite(found.number.value(found.lengths)).all()


@pytest.mark.parametrize("n", [1, 2])
def test_one_sample_and_two(backend, n):
    distances = np.full((n, n), 3.0)
    np.fill_diagonal(distances, 0)
    found = close(distances, corrected(), backend, 4.0)
    np.testing.assert_allclose(found.number.value(found.lengths), distances)


def test_a_weight_beyond_floats_is_one_sentence():
    distances = squareform(pdist(np.array([[0.0], [1e-9], [2e-9], [1.0]])))
    with pytest.raises(UserError, match=r"density-corrected weight of the distance 1 overflow"):
        corrected(k=1).edge_weights(distances, np.ones(4, bool), 100.0)
    with pytest.raises(ValueError, match="density-corrected weights at alpha = 100"):
        popdesic.shortest_paths(distances, 100, neighbors=1, density="correct", device="cpu")


# --- arrivals, devices, files -------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_arrivals_change_no_weight(rng, kind):
    points = rng.normal(size=(80, 2))
    points[70:] = points[:10] + 1e-6  # newcomers next to founders
    distances = squareform(pdist(points))
    founders = np.arange(80) < 40
    graph = corrected(kind)
    few = graph.edge_weights(distances[:60, :60], founders[:60], 3.0)
    many = graph.edge_weights(distances, founders, 3.0)
    assert few.tobytes() == np.ascontiguousarray(many[:60, :60]).tobytes()


@pytest.mark.parametrize("number", ["int32", "int64"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_continued_closure_has_the_same_bytes(rng, backend, kind, number):
    points = rng.normal(size=(130, 3))
    points[-1] = points[0]
    distances = squareform(pdist(points))
    founders = np.arange(130) < 70
    graph = corrected(kind)
    before = close(distances[:90, :90], graph, backend, 2.5, number, founders[:90])
    later = close(distances, graph, backend, 2.5, number, founders, known=before)
    whole = close(distances, graph, backend, 2.5, number, founders)
    assert later.record["continued"] and not whole.record["continued"]
    assert later.lengths.tobytes() == whole.lengths.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_samples_changes_no_weight(rng, kind):
    distances = squareform(pdist(rng.normal(size=(100, 3))))
    order = rng.permutation(100)
    founders = np.arange(100) < 60
    graph, permuted = corrected(kind), np.ascontiguousarray(distances[np.ix_(order, order)])
    one = graph.edge_weights(distances, founders, 2.5)
    other = graph.edge_weights(permuted, founders[order], 2.5)
    assert np.ascontiguousarray(one[np.ix_(order, order)]).tobytes() == other.tobytes()


@pytest.mark.parametrize("number", ["int32", "int64"])
def test_dijkstra_and_the_dense_closure_agree_in_every_byte(rng, monkeypatch, backend, number):
    distances = squareform(pdist(rng.normal(size=(150, 3))))
    found = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(measure, "SPARSE_SHARE", {number: share})
        found.append(close(distances, corrected("knn"), backend, 2.5, number).lengths.tobytes())
    assert found[0] == found[1]


def arrive(folder, distances, n, backend, graph, *, key="all") -> dict:
    """Run on the first n samples; S0 ... S29 are the founders."""
    folder.mkdir(exist_ok=True)
    cohort = np.where(np.arange(n) < 30, "founders", "new")
    return measure_geodesics(
        distances[:n, :n],
        pd.DataFrame({"sample": names(n), "cohort": cohort}),
        {"founders"},
        backend,
        alpha="2",
        value=2.0,
        ends=set(),
        graph=graph,
        code="1",
        out={
            "statistics": folder / "alpha.json",
            "record": folder / "alpha.run.json",
            "closure": folder / f"closure.{key}.npy",
            "about": folder / f"closure.{key}.json",
        },
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_closure_is_continued_with_its_own_setting_alone(rng, tmp_path, backend, kind):
    distances = squareform(pdist(rng.normal(size=(70, 3))))
    graph = corrected(kind)
    whole = arrive(tmp_path / "at once", distances, 70, backend, graph)
    folder = tmp_path / "later"
    arrive(folder, distances, 50, backend, graph, key="before")
    about = arrive(folder, distances, 70, backend, graph)
    assert about["continued"] == "closure.before.npy"
    assert about["graph"]["density"] == "correct" and whole["continued"] is None
    for name in ("alpha.json", "closure.all.npy", "closure.all.json"):
        assert (folder / name).read_bytes() == (tmp_path / "at once" / name).read_bytes()
    (folder / "closure.all.json").unlink()
    for other in (Graph(kind, 5), Graph(kind, 6, "correct")):
        assert arrive(folder, distances, 70, backend, other)["continued"] is None
        (folder / "closure.all.json").unlink()
    # the record holds the setting: the same weights under another name are not continued either
    before = json.loads((folder / "closure.before.json").read_text())
    assert before["graph"] == {"kind": kind, "neighbors": 5, "density": "correct"}
    before["graph"]["density"] = "keep"
    (folder / "closure.before.json").write_text(json.dumps(before))
    assert arrive(folder, distances, 70, backend, graph)["continued"] is None


def test_exported_lengths_are_the_closure_itself(rng, tmp_path, backend):
    distances = squareform(pdist(rng.normal(size=(60, 3))))
    about = arrive(tmp_path, distances, 60, backend, corrected())
    lengths = open_lengths(tmp_path / "closure.all.npy")
    closure = lengths.stored(np.arange(60)) / about["number"]["scale"]
    assert (lengths[:] == closure.astype(np.float32)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_explained_paths_have_the_lengths_of_the_closure(rng, tmp_path, backend, kind):
    distances = squareform(pdist(rng.normal(size=(70, 2))))
    graph = corrected(kind)
    about = arrive(tmp_path, distances, 70, backend, graph)
    samples = pd.DataFrame({"sample": names(70), "cohort": "x"})
    founders = np.arange(70) < 30
    explain_geodesics(
        distances,
        samples,
        founders=founders,
        statistics=about,
        ends=set(),
        threads=1,
        parents_out=tmp_path / "p.npy",
        hops_out=tmp_path / "h.json",
        bridges_out=tmp_path / "b.tsv",
    )
    parents = np.load(tmp_path / "p.npy")
    closure = open_lengths(tmp_path / "closure.all.npy").stored(np.arange(70))
    weights = slow_weights(distances, founders, 5, 2.0) * about["number"]["scale"]
    longest = 0
    for i in range(70):
        for j in range(70):
            length, at, edges = 0, j, 0
            while at != i:
                length, at, edges = (
                    length + np.rint(weights[parents[i, at], at]),
                    parents[i, at],
                    edges + 1,
                )
            assert length == pytest.approx(closure[i, j], rel=1e-12, abs=edges)
            longest = max(longest, edges)
    assert longest > 2


def test_lengths_to_founders_use_the_same_weights(rng, tmp_path, backend):
    distances = squareform(pdist(rng.normal(size=(40, 2))))
    founders = np.arange(40) < 30
    found = founder_lengths(
        distances,
        founders,
        names(40),
        backend,
        alpha=3.0,
        ends=np.zeros(40, bool),
        graph=corrected(),
        out=tmp_path / "l.npy",
    )
    weights = slow_weights(distances, founders, 5, 3.0)
    among = shortest(weights[:30, :30])
    np.testing.assert_allclose(found[:30], among, rtol=1e-6)
    through = (weights[30:, :30, None] + among).min(axis=1)
    np.testing.assert_allclose(found[30:], through, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_public_function(rng, kind):
    distances = squareform(pdist(rng.normal(size=(80, 2))))
    options = {"graph": kind, "neighbors": 7, "device": "cpu"}
    found = popdesic.shortest_paths(distances, 2, density="correct", **options)
    everyone = np.ones(80, bool)
    weights = corrected(kind, 7).edge_weights(distances, everyone, 2.0)
    exact = shortest(weights)
    np.testing.assert_allclose(found.lengths, exact, rtol=2e-6)
    assert (found.distances == found.lengths).all()
    first = popdesic.shortest_paths(distances[:60, :60], 2, density="correct", **options)
    later = popdesic.insert(first, distances[60:], device="cpu")
    assert later.continued and later.graph.density == "correct"
    old = founder_radii(distances[:60, :60], everyone[:60], 7)
    new = founder_radii(distances, np.arange(80) < 60, 7)
    assert (new[:60] == old).all()
    kept = popdesic.shortest_paths(distances, 2, **options)
    assert kept.graph.density == "keep"
    direct = np.where(np.isinf(weights), np.inf, power_weights(distances, 2.0))
    np.testing.assert_allclose(kept.lengths, shortest(direct), rtol=2e-6)
    with pytest.raises(ValueError, match="density"):
        popdesic.shortest_paths(distances, density="even")
    with pytest.raises(ValueError, match="neighbors is 0"):
        popdesic.shortest_paths(distances, 2, density="correct", neighbors=0)
