"""The statistic of the scan of residuals, and the CPU's scan, against least squares by person."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from oracles import epistasis
from oracles import residuals as oracle

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.interaction_cpu import UNIT
from popdesic.epistasis.residual_cpu import LEVEL_BITS, MAX_SAMPLES, level_planes, residual_costs
from popdesic.epistasis.scan_data import OneHot, ResidualData
from popdesic.epistasis.scan_sites import scan_residual_pairs


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_samples", [1, 2, 63, 64, 65, 400])
def test_costs_are_those_of_least_squares(n_samples, missing):
    rng = np.random.default_rng([n_samples, int(10 * missing)])
    data, states = oracle.random_residuals(rng, 17, n_samples, missing=missing, effect=20)
    pairs = np.array(list(itertools.combinations(range(17), 2)))
    found = [oracle.cells(states, data.levels, pair) for pair in pairs]
    counts, sums = map(np.array, zip(*found, strict=True))
    costs = residual_costs(counts, sums, data.variance, threads=2)
    for pair, cost in zip(pairs, costs, strict=True):
        expected, _ = oracle.statistic(states, data.levels, pair)
        # the least squares of `lstsq` are good to about 1e-12 of the whole sum of squares
        assert -cost * UNIT == pytest.approx(expected / data.variance / 2, abs=2 * UNIT)


def tables_of(rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of all shapes: full, sparse, with empty rows and columns, in two components."""
    found = []
    for _ in range(n):
        table = rng.multinomial(rng.integers(1, 3000), rng.dirichlet(np.full(9, 0.3))).reshape(3, 3)
        if rng.random() < 0.3:
            table[rng.integers(3)] = 0
        if rng.random() < 0.3:
            table[:, rng.integers(3)] = 0
        if rng.random() < 0.2:
            table = np.diag(np.diag(table))
        found.append(table.ravel())
    counts = np.array(found, np.int64)
    sums = np.rint(rng.normal(0, 40, counts.shape) * np.sqrt(counts) + 5 * counts)
    return counts, np.where(counts > 0, sums, 0).astype(np.int64)


def test_fit_of_every_shape_of_table():
    counts, sums = tables_of(np.random.default_rng(3), 3000)
    costs = residual_costs(counts, sums, 100.0)
    a, b = np.divmod(np.arange(9), 3)
    main = np.concatenate([np.eye(3)[a], np.eye(3)[b]], axis=1)
    for n, s, cost in zip(counts, sums, costs, strict=True):
        root = np.sqrt(n)
        y = np.divide(s, root, out=np.zeros(9), where=n > 0)
        design = root[:, None] * main
        explained = ((design @ np.linalg.lstsq(design, y, rcond=1e-10)[0]) ** 2).sum()
        expected = ((y**2).sum() - explained) / 200
        assert -cost * UNIT == pytest.approx(expected, rel=1e-9, abs=2 * UNIT)


def test_bound_by_one_site_is_never_below_the_statistic():
    counts, sums = tables_of(np.random.default_rng(4), 3000)
    n, s = counts.reshape(-1, 3, 3).astype(float), sums.reshape(-1, 3, 3).astype(float)

    def between(axis):
        total = n.sum(axis=axis)
        squares = np.divide(s.sum(axis=axis) ** 2, total, out=np.zeros_like(total), where=total > 0)
        return squares.reshape(len(n), -1).sum(axis=1)

    cells = np.divide(s**2, n, out=np.zeros_like(n), where=n > 0).sum(axis=(1, 2))
    bound = (cells - np.maximum(between(1), between(2))) / 100
    assert (-2 * residual_costs(counts, sums, 100.0) * UNIT <= bound + 1e-6).all()
    assert (bound < 1e-6).sum() < len(bound) / 2  # and it says something


def test_main_effects_and_constants_cost_nothing():
    counts = np.arange(1, 10, dtype=np.int64)
    effects = np.add.outer([0, 3, -7], [5, 0, 2]).ravel() + 11
    assert residual_costs(counts, counts * effects, 4.0).tolist() == [0]
    product = np.multiply.outer([0, 1, 2], [0, 1, 2]).ravel()
    assert residual_costs(counts, counts * (effects + product), 4.0)[0] < -(2**20)


def test_cutoff_keeps_what_reaches_it():
    counts, sums = tables_of(np.random.default_rng(5), 500)
    costs = residual_costs(counts, sums, 100.0)
    for cutoff in np.sort(costs)[[0, 20, 250, 499]]:
        cut = residual_costs(counts, sums, 100.0, int(cutoff))
        np.testing.assert_array_equal(cut[costs <= cutoff], costs[costs <= cutoff])
        assert (cut[costs > cutoff] > cutoff).all()
    assert (residual_costs(counts, sums, 100.0, int(np.median(costs))) == 2**63 - 1).sum() > 200


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_bit_slices_add_up_to_the_levels(n):
    levels = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8)
    slices = level_planes(levels)
    assert slices.shape == (LEVEL_BITS, -(-n // 64))
    bits = np.unpackbits(slices.view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, n:].any()
    np.testing.assert_array_equal((bits[:, :n] << np.arange(8)[:, None]).sum(axis=0), levels)


SHAPES = [(1, 5), (2, 1), (2, 2), (15, 63), (16, 64), (17, 65), (63, 130), (65, 300), (130, 257)]


@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n_sites, n_samples", SHAPES)
def test_scan_lists_the_pairs_of_the_slow_scan(n_sites, n_samples, missing):
    rng = np.random.default_rng([n_sites, n_samples])
    data, states = oracle.random_residuals(rng, n_sites, n_samples, missing=missing, effect=40)
    every = oracle.scan(data, states, range(n_sites), n_sites**2)
    for threads, top in ((1, 7), (3, 1000)):
        found = scan_residual_pairs(CpuBackend(threads), data, range(n_sites), top)
        np.testing.assert_array_equal(found.cost, every.cost[:top])
        np.testing.assert_array_equal(found.sites, every.sites[:top])


def test_scan_of_units_partners_and_cutoff():
    rng = np.random.default_rng(8)
    data, states = oracle.random_residuals(rng, 40, 200, missing=0.02, effect=60)
    allowed = replace(data, partners=epistasis.random_partners(rng, 40, 0.003))
    backend = CpuBackend(2)
    for first in (range(0, 13), range(13, 39), range(39, 40), range(5, 5)):
        expected = oracle.scan(allowed, states, first, 50)
        found = scan_residual_pairs(backend, allowed, first, 50)
        np.testing.assert_array_equal(found.cost, expected.cost)
        np.testing.assert_array_equal(found.sites, expected.sites)
    every = oracle.scan(data, states, range(40), 20)
    cut = scan_residual_pairs(backend, data, range(40), 1000, int(every.cost[19]))
    keep = cut.cost <= every.cost[19]
    np.testing.assert_array_equal(cut.cost[keep], every.cost[: keep.sum()])
    assert 20 <= len(cut.cost) < 200 and keep.sum() >= 20


def test_scan_finds_an_interaction_behind_strong_main_effects():
    """The list is not filled by a site with a main effect: T does not grow with it."""
    rng = np.random.default_rng(11)
    data, states = oracle.random_residuals(rng, 40, 3000, missing=0.0)
    # two sites in the middle of the scan, and a third one with ten times the effect
    shift = 15.0 * ((states[20] == 3) & (states[30] == 3)) + 40.0 * (states[35] == 3)
    levels = np.clip(np.rint(128 + rng.normal(0, 20, 3000) + shift), 1, 255).astype(np.uint8)
    data = replace(data, levels=levels, variance=float(levels.var()))
    found = scan_residual_pairs(CpuBackend(1), data, range(40), 5)
    assert found.sites[0].tolist() == [20, 30]
    assert -found.cost[1] * UNIT < 12 < -found.cost[0] * UNIT


def test_most_samples():
    assert 255 * MAX_SAMPLES < 2**31 <= 255 * (MAX_SAMPLES + 1)
    planes = OneHot(np.zeros((2, 2, -(-(MAX_SAMPLES + 1) // 64)), np.uint64), MAX_SAMPLES + 1)
    levels = np.zeros(MAX_SAMPLES + 1, np.uint8)
    data = ResidualData(planes, levels, 1.0, np.arange(2, dtype=np.int32))
    with pytest.raises(ValueError, match="at most 8421504"):
        scan_residual_pairs(CpuBackend(1), data, range(2), 1)
