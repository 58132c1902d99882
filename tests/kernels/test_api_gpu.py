"""The public functions on a GPU give the CPU's results, and CuPy arrays for CuPy arrays."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.reference import draw_genotypes

import popdesic

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy(gpu_device):
    """CuPy, on the device that the other tests use.

    Otherwise the functions would lease one until this process ends, and tests in other processes
    would wait for it.
    """
    import cupy

    from popdesic.engine import select
    from popdesic.engine.backend_gpu import GpuBackend

    select._leased.append(GpuBackend())
    yield cupy
    select._leased.clear()


@pytest.fixture(scope="module")
def genotypes() -> np.ndarray:
    return draw_genotypes(np.random.default_rng(1), 70, 300, 0.1)


CALLS = {
    "pairwise_distance": lambda g, **o: popdesic.pairwise_distance(g, **o),
    "imputed": lambda g, **o: popdesic.pairwise_distance(g, missing="imputed", **o),
    "normalized": lambda g, **o: popdesic.pairwise_distance(g, metric="normalized", **o),
    "tetraploids": lambda g, **o: popdesic.pairwise_distance(g, ploidy=4, **o),
    "of many ploidies": lambda g, **o: popdesic.pairwise_distance(
        g, ploidy=2 + np.arange(len(g)) % 5, metric="ibs", **o
    ),
    "kinship": lambda g, **o: popdesic.kinship(g, **o),
    "ld_r2": lambda g, **o: popdesic.ld_r2(g, **o),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_equal_the_cpu_and_stay_on_their_device(name, cupy, genotypes):
    call = CALLS[name]
    expected = call(genotypes, device="cpu")
    from_host = call(genotypes, device="gpu")
    assert isinstance(from_host, np.ndarray)
    np.testing.assert_array_equal(from_host, expected)
    floats = np.where(genotypes < 0, np.nan, genotypes)
    for given in (cupy.asarray(genotypes), cupy.asarray(floats)):
        for device in ("gpu", "auto"):
            found = call(given, device=device)
            assert isinstance(found, cupy.ndarray)
            np.testing.assert_array_equal(found.get(), expected)
        assert isinstance(call(given, device="cpu"), np.ndarray)


def test_closures_equal_the_cpu(cupy, genotypes):
    distances = np.rint(100 * popdesic.pairwise_distance(genotypes, device="cpu"))
    expected = popdesic.shortest_paths(distances, 2, device="cpu")
    assert expected.number.startswith("int")
    found = popdesic.shortest_paths(cupy.asarray(distances), 2, device="gpu")
    assert isinstance(found.lengths, cupy.ndarray)
    np.testing.assert_array_equal(np.asarray(found), expected.lengths)
    first = popdesic.shortest_paths(cupy.asarray(distances[:50, :50]), 2, device="gpu")
    later = popdesic.insert(first, cupy.asarray(distances[50:]), device="gpu")
    assert later.continued and isinstance(later.lengths, cupy.ndarray)
    np.testing.assert_array_equal(np.asarray(later), expected.lengths)
    weights = popdesic.fermat_weights(cupy.asarray(distances), 2)
    assert isinstance(weights, np.ndarray)
    np.testing.assert_array_equal(weights, distances**2)


@pytest.mark.parametrize("graph", ["complete", "knn"])
@pytest.mark.parametrize("number", ["int32", "int64"])
def test_closures_corrected_for_density_equal_the_cpu(cupy, graph, number):
    place = np.random.default_rng(3).normal(size=(70, 2))
    distances = np.sqrt(((place[:, None] - place) ** 2).sum(axis=2))
    options = {"graph": graph, "neighbors": 6, "density": "correct", "number": number}
    expected = popdesic.shortest_paths(distances, 3, device="cpu", **options)
    found = popdesic.shortest_paths(cupy.asarray(distances), 3, device="gpu", **options)
    assert np.asarray(found).tobytes() == expected.lengths.tobytes()
    first = popdesic.shortest_paths(cupy.asarray(distances[:50, :50]), 3, device="gpu", **options)
    later = popdesic.insert(first, cupy.asarray(distances[50:]), device="gpu")
    before = popdesic.shortest_paths(distances[:50, :50], 3, device="cpu", **options)
    on_cpu = popdesic.insert(before, distances[50:], device="cpu")
    assert later.continued == on_cpu.continued
    assert np.asarray(later).tobytes() == on_cpu.lengths.tobytes()


@pytest.mark.parametrize("order", [2, 3])
def test_hits_equal_the_cpu_api(cupy, order):
    rng = np.random.default_rng(order)
    genotypes = rng.binomial(2, 0.4, (300, 40)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.05] = -1
    phenotype = rng.integers(0, 2, 300)
    given = cupy.asarray(genotypes), cupy.asarray(phenotype)
    # no GPU kernel ranks by interaction yet
    for score, device in (("k2", "gpu"), ("interaction", "auto")):
        expected = popdesic.scan(genotypes, phenotype, order=order, score=score, device="cpu")
        assert popdesic.scan(*given, order=order, score=score, device=device).equals(expected)


def test_components_are_returned_in_host_memory(cupy, genotypes):
    found = popdesic.pca(cupy.asarray(genotypes), n_components=3)
    expected = popdesic.pca(genotypes, n_components=3)
    np.testing.assert_array_equal(found.scores, expected.scores)
