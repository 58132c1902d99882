"""Scans of pairs and triples by the kernels' sources, on a CPU, give the oracle's hits."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest
from oracles import residuals as oracle
from oracles.epistasis import assert_same, draw_scan, random_partners, scan

from popdesic.core.errors import UserError
from popdesic.epistasis.scan_data import Hits
from popdesic.epistasis.scan_sites import scan_pairs, scan_residual_pairs, scan_triples


def run(backend, order, data, first, top, cutoff=None):
    return partial(scan_pairs if order == 2 else scan_triples, backend)(data, first, top, cutoff)


@pytest.mark.parametrize(
    ("kernel", "score"),
    [("mma", "k2"), ("mma", "interaction"), ("popc", "k2"), ("mma", "gini"), ("popc", "k2_excess")],
)
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("order", "n_sites", "n_samples"), [(2, 33, (40, 31)), (3, 9, (50, 61))])
def test_hits_equal_the_oracle(machine, rng, kernel, missing, score, order, n_sites, n_samples):
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = missing > 0
    data, states, cases = draw_scan(rng, score, n_sites, n_samples, missing)
    expected = scan(data, states, cases, order, range(n_sites), 20)
    assert_same(run(GpuBackend(kernel=kernel), order, data, range(n_sites), 20), expected)
    assert machine.launched.count("epistasis_scan") >= order - 1


@pytest.mark.parametrize("batch", [1, 3, 512])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_the_size_of_batches_changes_no_hit(machine, rng, batch, missing, monkeypatch):
    """As `bench_epistasis.py --batch` sets it."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.epistasis import scan_gpu

    monkeypatch.setattr(scan_gpu, "BATCH", batch)
    data, states, cases = draw_scan(rng, "k2", 9, (50, 61), missing)
    expected = scan(data, states, cases, 3, range(9), 20)
    assert_same(run(GpuBackend(kernel="mma"), 3, data, range(9), 20), expected)
    # Of first sites that have two sites behind them; drawn sites may have no carrier.
    carried = (states[:7] != 3).any(axis=1)
    batches = sum(carried[i : i + batch].any() for i in range(0, 7, batch))
    assert machine.launched.count("compact_rows") == batches


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information", "gini"])
@pytest.mark.parametrize("order", [2, 3])
def test_the_bound_rules_out_none_of_the_best(machine, rng, score, order, monkeypatch):
    """The scan starts with the cost of the tenth hit: it finds these, and not all others."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.epistasis.scan_gpu import ClassBest

    written, merge = [], ClassBest.merge
    monkeypatch.setattr(
        ClassBest, "merge", lambda best, found: (written.append(len(found)), merge(best, found))
    )
    n_sites = 40 if order == 2 else 14
    data, states, cases = draw_scan(rng, score, n_sites, (420, 380), 0.0)
    expected = scan(data, states, cases, order, range(n_sites), 10)
    cutoff = int(expected.cost[-1])
    found = run(GpuBackend(kernel="mma"), order, data, range(n_sites), 10, cutoff)
    assert_same(found, expected)
    assert 10 <= sum(written) < math.comb(n_sites, order) * 2 / 3


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("n_sites", "n_samples"), [(2, 1), (17, 65), (20, 257)])
def test_scans_of_a_trait_equal_the_oracle(machine, rng, kernel, missing, n_sites, n_samples):
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = n_sites == 17
    if kernel == "mma" and missing:  # takes more shared memory than an A100 has
        machine.device = replace(machine.device, capability=90, shared_bytes=232_448)
    data, states = oracle.random_residuals(rng, n_sites, n_samples, missing=missing, effect=40)
    expected = oracle.scan(data, states, range(n_sites), 30)
    backend = GpuBackend(kernel=kernel)
    assert_same(scan_residual_pairs(backend, data, range(n_sites), 30), expected)


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize(("order", "first"), [(2, range(60, 66)), (3, range(59, 61))])
def test_many_stages_pass_through_the_slots(machine, rng, kernel, missing, order, first):
    """More depth than the pipeline has slots; one thread block walks over all items."""
    from popdesic.engine.backend_gpu import GpuBackend

    machine.device = replace(machine.device, multiprocessors=1)
    machine.backward = (missing > 0) == (kernel == "mma")
    data, states, cases = draw_scan(
        rng, "k2", 70, (2300, 1700) if order == 2 else (700, 600), missing
    )
    expected = scan(data, states, cases, order, first, 50)
    assert_same(run(GpuBackend(kernel=kernel), order, data, first, 50), expected)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_partners_first_sites_and_cutoffs(rng, order, missing):
    from popdesic.engine.backend_gpu import GpuBackend

    n_sites, first = 30 if order == 2 else 10, range(3, 8)
    data, states, cases = draw_scan(rng, "k2", n_sites, (90, 70), missing)
    permitted = 0
    while not permitted:  # rarely, rules drawn at random permit nothing
        data = replace(data, partners=random_partners(rng, n_sites, 0.05))
        expected = scan(data, states, cases, order, first, 30)
        permitted = len(expected.cost)
    backend = GpuBackend(kernel="popc")
    assert_same(run(backend, order, data, first, 30), expected)
    cutoff = int(expected.cost[len(expected.cost) // 2])
    few = run(backend, order, data, first, 30, cutoff)
    n = int((expected.cost <= cutoff).sum())
    assert_same(Hits(few.cost[:n], few.sites[:n]), Hits(expected.cost[:n], expected.sites[:n]))


@pytest.mark.parametrize("order", [2, 3])
def test_classes_whose_ratio_no_small_weights_express(rng, order):
    """Counts of both classes then lie in words of their own (WIDE)."""
    from popdesic.engine.backend_gpu import GpuBackend

    data, states, cases = draw_scan(rng, "k2", 11, (700, 3), 0.0)
    expected = scan(data, states, cases, order, range(11), 20)
    assert_same(run(GpuBackend(kernel="popc"), order, data, range(11), 20), expected)


def test_more_pass_than_a_launch_has_room_for(machine, rng, monkeypatch):
    """The launch is repeated with fewer items."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.epistasis import launches_gpu

    monkeypatch.setattr(launches_gpu, "CAPACITY", 6200)  # an item holds up to 6 112 pairs
    data, states, cases = draw_scan(rng, "k2", 140, (40, 31), 0.0)
    expected = scan(data, states, cases, 2, range(140), 20)
    assert_same(scan_pairs(GpuBackend(kernel="popc"), data, range(140), 20), expected)
    assert machine.launched.count("epistasis_scan") > 2


def test_margins_and_scratch_in_shared_memory(machine, rng):
    """With room for it, the sums of the three states of x stay in shared memory."""
    from popdesic.engine.backend_gpu import GpuBackend

    machine.device = replace(machine.device, capability=90, shared_bytes=232_448)
    data, states, cases = draw_scan(rng, "k2", 9, (50, 61), 0.1)
    expected = scan(data, states, cases, 3, range(9), 20)
    assert_same(scan_triples(GpuBackend(kernel="mma"), data, range(9), 20), expected)


@pytest.mark.parametrize("shared_bytes", [101_376, 65_536])
@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize(("order", "missing"), [(2, 0.0), (2, 0.1), (3, 0.0), (3, 0.1)])
def test_less_shared_memory(machine, schedule, rng, shared_bytes, kernel, order, missing):
    """The limits of an RTX 30 and an RTX 20, where the plan has a form for them."""
    from popdesic.engine.backend_gpu import GpuBackend

    machine.device = replace(machine.device, shared_bytes=shared_bytes, multiprocessors=1)
    first = range(61, 63) if order == 2 else range(61, 62)
    data, states, cases = draw_scan(rng, "k2", 70, (700, 600), missing)
    expected = scan(data, states, cases, order, first, 20)
    try:
        found = run(GpuBackend(kernel=kernel), order, data, first, 20)
    except UserError as refused:
        pytest.skip(f"the plan refuses: {refused}")
    assert_same(found, expected)
