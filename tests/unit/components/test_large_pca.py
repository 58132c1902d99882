"""PCA without a matrix of all pairs: that of the matrix."""

import numpy as np
import pandas as pd
import pytest
from scenes.populations import linked_genotypes, populations

from popdesic.components import stretch_squares
from popdesic.components.krylov import Krylov
from popdesic.components.large_pca import (
    DRAWS,
    STRETCHES,
    draw_largest,
    flipped_excess,
    flips_of,
    significant_axes_of_many,
    signs_of_draws,
)
from popdesic.components.noise_null import stretches
from popdesic.components.relationship import alt_frequency, relationship_among
from popdesic.components.relationship_products import MOST_MISFIT, RelationshipProducts
from popdesic.core.random_numbers import lots_of, mix, signs_of
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.genotype_products import Calls
from popdesic.io.genotypes import pack_bed

CPU = CpuBackend(1)


def operator_of(genotypes: np.ndarray, sizes: list[int], threads: int = 1) -> RelationshipProducts:
    """Of genotypes (n, n_sites) of cohorts of these sizes."""
    ends = np.cumsum(sizes)
    rows = np.ascontiguousarray(genotypes.T)
    parts = [np.ascontiguousarray(rows[:, b - a : b]) for a, b in zip(sizes, ends, strict=True)]
    calls = Calls(
        tuple(map(pack_bed, parts)),
        None,
        tuple(np.ones(size, bool) for size in sizes),
        alt_frequency(rows),
    )
    return RelationshipProducts(CpuBackend(threads).genotype_products(calls))


def matrix_of(genotypes: np.ndarray, sizes: list[int]) -> np.ndarray:
    rows = genotypes.T
    return relationship_among(lambda a, b: rows[a:b], sizes, alt_frequency(rows))


def scene(seed: int, sizes: list[int], n_sites: int, k: int = 6, missing: float = 0.0):
    """Populations in cohorts; the second cohort lacks a fifth of the sites as a whole."""
    rng = np.random.default_rng(seed)
    genotypes, _ = populations(rng, k, 0.05, sum(sizes), n_sites)
    genotypes = genotypes[rng.permutation(len(genotypes))]
    if missing:
        often = rng.uniform(0, 2 * missing, genotypes.shape[1])
        own = rng.uniform(0.5, 1.5, len(genotypes))
        genotypes[rng.random(genotypes.shape) < often * own[:, None]] = -1
        if len(sizes) > 1:
            genotypes[sizes[0] : sizes[0] + sizes[1], : n_sites // 5] = -1
    return genotypes


@pytest.mark.parametrize(("n", "n_stretches"), [(1, 1), (37, STRETCHES + 1), (5, 2 * STRETCHES)])
@pytest.mark.parametrize("threads", [1, 3])
def test_signs_of_draws_are_drawn_by_names(n, n_stretches, threads):
    lots = lots_of([f"s{k}" for k in range(n)])
    stretch = np.arange(n_stretches)[::-1]
    found = signs_of_draws(stretch, lots, threads)
    assert found.shape == (n_stretches, n, DRAWS) and found.dtype == np.int8
    for name in stretch.tolist():
        for draw in range(DRAWS):
            expected = signs_of(mix(lots + np.uint64(draw)), name)
            np.testing.assert_array_equal(found[name, :, draw], expected)


@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_products_are_those_of_the_matrix(missing):
    sizes = [120, 70, 1]
    genotypes = scene(1, sizes, 9000, missing=missing)
    operator, matrix = operator_of(genotypes, sizes), matrix_of(genotypes, sizes)
    vectors = np.random.default_rng(2).normal(size=(191, 5))
    expected = matrix @ vectors
    tolerance = (2e-6 if not missing else 3e-3) * np.abs(expected).max()
    np.testing.assert_allclose(operator(vectors), expected, atol=tolerance)
    assert operator.trace == pytest.approx(np.trace(matrix), rel=1e-9)
    assert operator.complete == (not missing)


@pytest.mark.parametrize(("sizes", "missing"), [([700], 0.0), ([400, 250], 0.005)])
def test_components_are_those_of_eigh(sizes, missing):
    """|r| at least 0.99999, eigenvalues to 1e-4, for 20 components that stand out."""
    genotypes = scene(3, sizes, 12_000, k=21, missing=missing)
    n = sum(sizes)
    operator, matrix = operator_of(genotypes, sizes), matrix_of(genotypes, sizes)
    if missing:
        assert operator.misfit(lots_of(range(n))) < 20 * MOST_MISFIT
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(12_000) * 20_000})
    axes, tests, _ = significant_axes_of_many(operator, sites, 20, names=range(n), backend=CPU)
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1][:20], vectors[:, ::-1][:, :20]
    r = np.abs((axes.vectors[:, :20] * vectors).sum(axis=0))
    off = np.abs(axes.values[:20] / values - 1).max()
    print(f"\nsmallest |r| 1 - {1 - r.min():.1e}, eigenvalues {off:.1e}")
    assert r.min() >= 0.99999
    np.testing.assert_allclose(axes.values[:20], values, rtol=1e-4)
    assert tests.count == 20 and axes.k == 20


def test_draws_are_those_of_the_matrix(monkeypatch):
    """The same signs: the largest eigenvalues that LAPACK finds."""
    rng = np.random.default_rng(4)
    genotypes = variable(scene(4, [150], 2500, k=3))
    n_sites = genotypes.shape[1]
    operator = operator_of(genotypes, [150])
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(n_sites) * 40_000})
    stretch, lots = stretches(sites), lots_of(range(150))
    space = Krylov(operator, rng.normal(size=(150, 16)), operator.products.columns)
    space.search(2)
    found = draw_largest(space, operator, stretch, 2, lots)
    values, vectors, _ = space.pairs(2)
    flips = flips_of(operator.products, vectors, stretch, lots)
    af = alt_frequency(genotypes.T)
    x = (genotypes - 2 * af) / np.sqrt(2 * af * (1 - af))
    left = x - vectors @ (vectors.T @ x)
    matrix = matrix_of(genotypes, [150])
    total = np.trace(matrix) - values.sum()
    squares, largest = [], np.empty(8)
    for draw in range(8):
        turned = left * flips.signs[stretch, :, draw].T
        among = turned @ turned.T
        among *= total / np.trace(among)
        largest[draw] = np.linalg.eigvalsh(among)[-1]
        squares.append((among**2).sum())
    unit = found.scale[1]
    np.testing.assert_allclose(found.largest, largest, atol=0.2 * unit)
    assert found.largest.mean() == pytest.approx(largest.mean(), abs=0.05 * unit)
    expected = np.mean(squares) - total**2 / 150
    assert found.squares - total**2 / 150 == pytest.approx(expected, rel=0.2)
    for most_sites in (0, 256):  # by signs, and by pairs of sites
        monkeypatch.setattr(stretch_squares, "MOST_SITES", most_sites)
        assert flipped_excess(operator, flips, total, lots, CPU) == pytest.approx(
            expected, rel=0.02
        )


def test_the_order_of_samples_and_threads_play_no_role():
    genotypes = scene(5, [200, 100], 3000, k=3, missing=0.01)
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(3000) * 100_000})
    names = np.array([f"S{k}" for k in range(300)])
    found = []
    for threads, order in ((1, None), (3, None), (1, np.r_[200:300, 0:200])):
        sizes, own, called = [200, 100], genotypes, names
        if order is not None:
            sizes, own, called = [100, 200], genotypes[order], names[order]
        operator = operator_of(own, sizes, threads)
        axes, _, noise = significant_axes_of_many(
            operator, sites, "auto", names=called, backend=CpuBackend(threads)
        )
        vectors = np.empty((300, axes.k))
        vectors[slice(None) if order is None else order] = axes.vectors[:, : axes.k]
        found.append((axes.values[: axes.k], vectors, noise))
    for one, two in zip(found[0][:2], found[1][:2], strict=True):
        assert one.tobytes() == two.tobytes()
    assert found[0][2] == found[1][2]
    np.testing.assert_allclose(found[2][0], found[0][0], rtol=1e-6)
    np.testing.assert_allclose(np.abs((found[2][1] * found[0][1]).sum(axis=0)), 1, atol=1e-5)


def count(genotypes: np.ndarray, sites: pd.DataFrame | None = None) -> int:
    if sites is None:
        sites = pd.DataFrame({"chrom": "1", "pos": np.arange(genotypes.shape[1]) * 30_000})
    n = len(genotypes)
    operator = operator_of(genotypes, [n])
    return significant_axes_of_many(operator, sites, "auto", names=range(n), backend=CPU)[1].count


def variable(genotypes: np.ndarray) -> np.ndarray:
    return genotypes[:, np.ptp(genotypes, axis=0) > 0]


def test_one_population_has_no_component():
    rng = np.random.default_rng(6)
    found = [count(variable(populations(rng, 1, 0.0, 120, 1500)[0])) for _ in range(24)]
    assert sum(number > 0 for number in found) <= 1, found


@pytest.mark.parametrize(("k", "fst", "n", "sites"), [(2, 0.01, 100, 4000), (10, 0.4, 120, 4000)])
def test_k_populations_have_one_component_less(k, fst, n, sites):
    rng = np.random.default_rng(k)
    found = [count(variable(populations(rng, k, fst, n, sites)[0])) for _ in range(4)]
    assert np.median(found) == k - 1
    assert sum(number != k - 1 for number in found) <= 1, found


def test_linked_sites_of_one_population_have_no_component():
    found = [count(*linked_genotypes(seed, 60)) for seed in range(12)]
    assert sum(number > 0 for number in found) <= 1, found


def test_arrays_mixed_in_one_cohort_are_noticed():
    """Half of a cohort lacks half of the sites: no factor for the cohort describes that."""
    genotypes = scene(7, [200], 3000, k=2)
    even = operator_of(genotypes, [200])
    assert even.misfit(lots_of(range(200))) == 0
    genotypes[:100, :1500] = -1
    assert operator_of(genotypes, [200]).misfit(lots_of(range(200))) > 100 * MOST_MISFIT
    apart = operator_of(genotypes, [100, 100])
    assert apart.misfit(lots_of(range(200))) < MOST_MISFIT
