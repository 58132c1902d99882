"""Distances between samples of any ploidy are exact: by fractions, site by site."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.ploidy import draw_of_ploidy, frequency_sums
from scenes.ploidy import mixed_ploidies

from popdesic.cohort.encode import planes_in_memory
from popdesic.distance.any_ploidy import (
    mixed_counts,
    ploidy_counts,
    ploidy_distances,
    polyploid_counts,
    thermometer,
)
from popdesic.distance.matrix import distances_of_counts
from popdesic.distance.tiles import pairwise_counts
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.io.genotypes import pack_bed
from popdesic.io.layers import layers_each, most_layers, n_layers, split_layers

SITES = (1, 15, 16, 17, 33, 63, 64, 65)
#: Ploidies of samples: one, two of one kind, of several kinds, with a large common multiple.
PLOIDIES = {
    "haploid": [1] * 5,
    "diploid": [2] * 5,
    "triploid": [3, 3],
    "tetraploid": [4] * 6,
    "hexaploid": [6] * 4,
    "two and four": [2, 4, 2, 4, 4, 2],
    "haploid and diploid": [1, 2, 2, 1],
    "many": [1, 2, 3, 4, 5, 6, 8],
    "the largest": [15, 15, 13, 4, 1],
    "one": [4],
}


def assert_exact(genotypes, ploidy, threads: int = 1) -> None:
    linear, squared, called = frequency_sums(genotypes, ploidy)
    for sums, power in ((linear, 1), (squared, 2)):
        found = ploidy_counts(genotypes, ploidy, CpuBackend(threads), squared=power == 2)
        assert found.unit == math.lcm(*ploidy.tolist())
        expected = [[int(part * found.unit**power) for part in row] for row in sums]
        np.testing.assert_array_equal(found.sums, expected)
        np.testing.assert_array_equal(found.called, called)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("name", PLOIDIES)
def test_counts_equal_fractions(name, missing):
    ploidy = np.array(PLOIDIES[name])
    for n_sites in SITES:
        rng = np.random.default_rng(n_sites)
        assert_exact(draw_of_ploidy(rng, ploidy, n_sites, missing), ploidy, 1 + n_sites % 2)


def test_all_missing_and_monomorphic():
    ploidy = np.array([1, 4, 2])
    genotypes = draw_of_ploidy(np.random.default_rng(1), ploidy, 65, 0.1)
    genotypes[1] = -1
    assert_exact(genotypes, ploidy)
    genotypes[1] = 4
    genotypes[:, 3], genotypes[:, 64] = 0, ploidy
    assert_exact(genotypes, ploidy)


def test_thermometers_of_diploids_are_their_planes():
    """Bit for bit, so no file of diploids changes."""
    genotypes = draw_of_ploidy(np.random.default_rng(2), [2] * 7, 131, 0.1)
    rows = np.stack([pack_bed(site[None])[0] for site in genotypes.T])
    planes = planes_in_memory(rows, 7, 1, None)
    words = planes.words[:, :, : -(-131 // 64)]
    np.testing.assert_array_equal(thermometer(genotypes, 2), words)
    assert not planes.words[:, :, words.shape[2] :].any()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "ibs"])
def test_distances_of_diploids_are_those_of_the_workflow(metric):
    genotypes = draw_of_ploidy(np.random.default_rng(3), [2] * 9, 200, 0.3)
    genotypes[8] = -1
    rows = np.ascontiguousarray(genotypes.T)
    planes = planes_in_memory(pack_bed(rows), 9, 1, None)
    counts = pairwise_counts(planes, None, CpuBackend(), metric=metric, missing="pairwise")
    options = {"metric": metric, "n_sites": 200, "min_called": 95}
    expected = distances_of_counts(counts, np.arange(9), **options)
    own = ploidy_counts(genotypes, np.full(9, 2), CpuBackend(), squared=metric == "euclidean")
    np.testing.assert_array_equal(ploidy_distances(own, most=2, **options), expected)
    assert np.isinf(expected).any() and np.isfinite(expected[:8, :8]).sum() > 20


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "ibs"])
def test_diploids_and_tetraploids_of_two_populations(metric):
    """Everyone lies nearer to its own population, among the diploids and among the tetraploids."""
    genotypes, ploidy, population = mixed_ploidies([2, 4], n=6, seed=1)
    counts = ploidy_counts(genotypes, ploidy, CpuBackend(), squared=metric == "euclidean")
    options = {"n_sites": genotypes.shape[1], "min_called": 1}
    distances = ploidy_distances(counts, metric=metric, most=4, **options)
    np.fill_diagonal(distances, np.nan)
    for p in (2, 4):
        of = [np.nanmean(distances[:, (ploidy == p) & (population == k)], axis=1) for k in (0, 1)]
        np.testing.assert_array_equal(np.argmin(of, axis=0), population)


@pytest.mark.parametrize("ploidy", [3, 4, 6, 15])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_tiles_of_polyploids_equal_fractions(ploidy, missing):
    """From the layers that a study's files have; within a cohort and between two."""
    rng = np.random.default_rng(ploidy)
    genotypes = draw_of_ploidy(rng, np.full(7, ploidy), 65, missing)
    linear, squared, called = frequency_sums(genotypes, np.full(7, ploidy))
    linear, squared = (
        np.array([[int(part * ploidy**k) for part in row] for row in sums])
        for k, sums in ((1, linear), (2, squared))
    )
    layers, units = n_layers(ploidy), genotypes * (1 + ploidy % 2)

    def planes(which: slice):
        own = np.where(genotypes < 0, -1, units)[which].T.astype(np.int8)
        return planes_in_memory(pack_bed(split_layers(own, layers)), layers * own.shape[1])

    everyone, first, last = planes(slice(None)), planes(slice(3)), planes(slice(3, None))
    for a, b, rows, columns in (
        (everyone, None, slice(None), slice(None)),
        (first, last, slice(3), slice(3, None)),
    ):
        found = polyploid_counts(a, b, ploidy, CpuBackend(1), differences=True)
        np.testing.assert_array_equal(found["squared"], squared[rows, columns])
        np.testing.assert_array_equal(found["called"], called[rows, columns])
        sums = found["squared"] - 2 * found["ibs0"]
        np.testing.assert_array_equal(sums, linear[rows, columns])


@pytest.mark.parametrize("kinds", [(2, 4), (1, 2), (4, 6), (2, 3, 4)])
def test_tiles_of_several_ploidies_equal_fractions(kinds):
    """In units of 1 over the common multiple; a cohort of one ploidy has missing layers too."""
    ploidy = np.array([kinds[0]] * 3 + [*kinds, *kinds[::-1]])
    genotypes = draw_of_ploidy(np.random.default_rng(9), ploidy, 65, 0.2)
    unit = math.lcm(*kinds)
    linear, squared, called = frequency_sums(genotypes, ploidy)
    linear, squared = (
        np.array([[int(part * unit**k) for part in row] for row in sums])
        for k, sums in ((1, linear), (2, squared))
    )
    layers, sizes = most_layers(kinds), layers_each(ploidy, kinds)
    sums = np.where(genotypes < 0, -1, genotypes * (2 * sizes // ploidy)[:, None])

    def planes(which: slice):
        parts = split_layers(sums[which].T.astype(np.int8), layers, sizes[which])
        return planes_in_memory(pack_bed(parts), parts.shape[1]), ploidy[which]

    everyone, first, last = planes(slice(None)), planes(slice(3)), planes(slice(3, None))
    for (a, own), other, rows, columns in (
        (everyone, None, slice(None), slice(None)),
        (first, last, slice(3), slice(3, None)),
    ):
        b, others = other or (None, own)
        each = own, others
        found = mixed_counts(a, b, each, kinds, CpuBackend(1), differences=True)
        np.testing.assert_array_equal(found["squared"], squared[rows, columns])
        np.testing.assert_array_equal(found["called"], called[rows, columns])
        difference = found["squared"] - 2 * found["ibs0"]
        np.testing.assert_array_equal(difference, linear[rows, columns])
