"""Scans of pairs and triples on a GPU give the hits of the oracle and of the CPU exactly."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles.epistasis import assert_same, draw_scan, make_scan, random_partners, random_scan, scan

from popdesic.epistasis.scan_data import Hits, OneHot, ScanData
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import lr_bits, score_tables

pytestmark = pytest.mark.gpu
cupy = pytest.importorskip("cupy")

#: Kernels, and wgmma with the cores for more samples; `single`: `deep`, first sites one by one.
KERNELS = ("deep", "single", "middle", "wgmma", "mma", "popc")


@pytest.fixture(params=KERNELS)
def gpu(request, gpu_device, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.devices import supported_kernels
    from popdesic.epistasis import scan_plan

    kernel = request.param
    if kernel in ("deep", "single"):
        monkeypatch.setattr(scan_plan, "DEEP_STEPS", {2: 0, 3: 0})
        least = -np.inf if kernel == "deep" else np.inf
        monkeypatch.setattr(scan_plan, "SHARED_STEPS", {2: least, 3: least})
        kernel = "wgmma"
    if kernel == "middle":
        monkeypatch.setattr(scan_plan, "MIDDLE_STEPS", 0)
        kernel = "wgmma"
    if kernel not in supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {kernel}")
    return GpuBackend(kernel=kernel)


def run(backend, order, data, first, top, cutoff=None):
    return partial(scan_pairs if order == 2 else scan_triples, backend)(data, first, top, cutoff)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information", "gini", "interaction"])
@pytest.mark.parametrize(
    ("order", "n_sites", "n_samples"),
    [(2, 33, (40, 31)), (2, 2, (3, 2)), (3, 17, (50, 61)), (3, 3, (1, 1)), (2, 70, (300, 257))],
)
def test_hits_equal_the_oracle(gpu, rng, missing, score, order, n_sites, n_samples):
    data, states, cases = draw_scan(rng, score, n_sites, n_samples, missing)
    expected = scan(data, states, cases, order, range(n_sites), 20)
    assert_same(run(gpu, order, data, range(n_sites), 20), expected)


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("max_r2", [1.0, 0.01])
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
def test_permitted_partners_and_first_sites_are_respected(gpu, rng, score, order, max_r2, missing):
    n_sites, n_samples = 40 if order == 2 else 20, (90, 70)
    data, states, cases = draw_scan(rng, score, n_sites, n_samples, missing)
    first, permitted = range(3, 11), 0
    while permitted < 10:  # rules drawn at random seldom permit so few
        data = replace(data, partners=random_partners(rng, n_sites, max_r2))
        expected = scan(data, states, cases, order, first, 30)
        permitted = len(expected.cost)
    assert_same(run(gpu, order, data, first, 30), expected)
    cutoff = int(expected.cost[9])
    few = run(gpu, order, data, first, 30, cutoff)
    n = int((expected.cost <= cutoff).sum())
    assert_same(Hits(few.cost[:n], few.sites[:n]), Hits(expected.cost[:n], expected.sites[:n]))


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information", "gini", "interaction"])
@pytest.mark.parametrize("frequencies", [None, (0.067, 0.237, 0.696), (1 / 3, 1 / 3, 1 / 3)])
@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize(("order", "n_sites"), [(2, 700), (3, 230)])
def test_hits_equal_the_cpu(gpu, rng, score, frequencies, missing, order, n_sites):
    from popdesic.engine.backend_cpu import CpuBackend

    n_samples = (700, 577)
    data, *_ = random_scan(
        rng,
        n_sites,
        n_samples,
        missing=missing,
        frequencies=frequencies,
        tables=score_tables(score, *n_samples),
    )
    data = replace(data, lr_bits=lr_bits(score, sum(n_samples)))
    expected = run(CpuBackend(threads=8), order, data, range(n_sites), 100)
    assert_same(run(gpu, order, data, range(n_sites), 100), expected)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
@pytest.mark.parametrize("n_samples", [(3000, 17), (24, 900), (9000, 61), (1000, 1000)])
@pytest.mark.parametrize("order", [2, 3])
def test_classes_of_any_balance(gpu, rng, n_samples, order, score):
    """Shares of cases that small weights can express, and shares that they cannot."""
    from popdesic.engine.backend_cpu import CpuBackend

    n = sum(n_samples)
    data, *_ = random_scan(rng, 90, n_samples, tables=score_tables(score, *n_samples))
    data = replace(data, lr_bits=lr_bits(score, n))
    expected = run(CpuBackend(threads=8), order, data, range(90), 40)
    assert_same(run(gpu, order, data, range(90), 40), expected)


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("order", [2, 3])
def test_interactions_where_many_sites_have_effects_of_their_own(gpu, rng, order, missing):
    """The filter lets much through, more than a launch has room for; the list is the CPU's."""
    from popdesic.engine.backend_cpu import CpuBackend
    from popdesic.epistasis import launches_gpu

    n_sites, n_samples = (900, 120)[order - 2], (1500, 1500)
    data, states, cases = random_scan(
        rng,
        n_sites,
        n_samples,
        missing=missing,
        frequencies=(0.1, 0.4, 0.5),
        tables=score_tables("interaction", 1500, 1500),
    )
    for row in states[::3]:  # cases carry the rarest genotype more often
        more = (rng.random(3000) < 0.15) & cases & (row != 2)
        row[more] = 0
    data = make_scan(states, cases, data.rank, data.total, data.part)
    data = replace(data, lr_bits=lr_bits("interaction", 3000))
    expected = run(CpuBackend(threads=8), order, data, range(n_sites), 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launches_gpu, "CAPACITY", 1 << 17)
        assert_same(run(gpu, order, data, range(n_sites), 60), expected)


@pytest.mark.parametrize("order", [2, 3])
def test_what_pairs_say_is_rounded_down(gpu, rng, order):
    """The offsets of the filter, beside the mutual information of all tables."""
    from oracles.epistasis import class_information

    from popdesic.epistasis.scan_gpu import Scanner
    from popdesic.epistasis.site_tables_cpu import count_tables

    data, *_ = random_scan(rng, 90, (700, 413), tables=score_tables("interaction", 700, 413))
    data = replace(data, lr_bits=lr_bits("interaction", 1113))
    scanner = Scanner(data, order, 10, None, gpu.device, gpu.kernel)
    (scanner.pairs if order == 2 else scanner.triples)(range(90))
    pairs = np.argwhere(np.triu(np.ones((90, 90), bool), 1))
    tables = count_tables(data, pairs)
    if order == 2:
        cells = tables.reshape(-1, 2, 3, 3)
        found = scanner.known.get()[pairs[:, 0]]
        exact = class_information(cells.sum(axis=3))
    else:
        found, exact = scanner.known.get()[pairs[:, 0], pairs[:, 1]], class_information(tables)
    assert (found <= exact).all()
    np.testing.assert_allclose(found, exact, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("first", [range(0, 1), range(130, 300), range(600, 699)])
def test_first_sites_and_planes_lie_anywhere(gpu, rng, missing, first):
    from popdesic.engine.backend_cpu import CpuBackend

    tables = score_tables("k2", 270, 230)
    data, *_ = random_scan(rng, 701, (270, 230), missing=missing, tables=tables)
    expected = run(CpuBackend(threads=8), 2, data, first, 60)
    assert_same(run(gpu, 2, data, first, 60), expected)
    on_device = tuple(OneHot(cupy.asarray(one.words), one.n_samples) for one in data.classes)
    data = ScanData(on_device, data.total, data.part, data.rank)
    assert_same(run(gpu, 2, data, first, 60), expected)


@pytest.mark.parametrize("missing", [0.0, 0.01])
def test_the_batch_size_changes_nothing(gpu, rng, missing, monkeypatch):
    from popdesic.epistasis import scan_gpu as epistasis_gpu
    from popdesic.epistasis.scan_gpu import Scanner

    tables = score_tables("k2", 900, 500)
    data, *_ = random_scan(rng, 700, (900, 500), missing=missing, tables=tables)
    found = []
    for batch in (256, 37):
        monkeypatch.setattr(epistasis_gpu, "BATCH", batch)
        scanner = Scanner(data, 3, 50, None, gpu.device, gpu.kernel)
        found.append(scanner.triples(range(90)))
    for other in found[1:]:
        assert_same(found[0], other)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
@pytest.mark.parametrize("missing", [0.0, 0.01])
@pytest.mark.parametrize("order", [2, 3])
def test_classes_beyond_sixteen_bits(gpu, rng, order, missing, score):
    from popdesic.engine.backend_cpu import CpuBackend

    n_samples = (70_001, 66_003)
    data, *_ = random_scan(
        rng,
        12,
        n_samples,
        missing=missing,
        frequencies=(0.01, 0.03, 0.96),
        tables=score_tables(score, *n_samples),
    )
    data = replace(data, lr_bits=lr_bits(score, 136_004))
    expected = run(CpuBackend(threads=8), order, data, range(12), 10)
    assert_same(run(gpu, order, data, range(12), 10), expected)


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("first", [range(0, 1), range(3, 10), range(4, 31), range(29, 40)])
def test_first_sites_of_triples_lie_anywhere(gpu, rng, missing, first):
    from popdesic.engine.backend_cpu import CpuBackend

    tables = score_tables("k2", 700, 500)
    data, *_ = random_scan(rng, 40, (700, 500), missing=missing, tables=tables)
    expected = run(CpuBackend(threads=8), 3, data, first, 60)
    assert_same(run(gpu, 3, data, first, 60), expected)


def test_many_ties_are_ranked(gpu):
    """Every triple costs the same, so more pass than a launch has room for."""
    from popdesic.epistasis import launches_gpu

    words = np.full((200, 2, 1), 0b0110, np.uint64)
    words[:, 1] = 0b1001
    one = OneHot(words, 4)
    rank = np.arange(200, dtype=np.int32)[::-1].copy()
    data = ScanData((one, one), *score_tables("k2", 4, 4), rank)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launches_gpu, "CAPACITY", 1 << 20)
        hits = scan_triples(gpu, data, range(200), 5)
    ranks = np.sort(rank[hits.sites], axis=1).tolist()
    assert ranks == [[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5], [0, 1, 6]]


@pytest.mark.parametrize("gpu", ["deep", "popc"], indirect=True)
def test_bounds_allow_for_missing_genotypes_of_later_sites(gpu, rng):
    """The first block of sites is complete; later bounds allow for missing genotypes in others."""
    from popdesic.engine.backend_cpu import CpuBackend
    from popdesic.epistasis.scan_gpu import Scanner

    data, *_ = random_scan(rng, 1400, (60, 50), missing=0.3, tables=score_tables("k2", 60, 50))
    for one in data.classes:
        one.words[:512, 2] = 0
    scanner = Scanner(data, 2, 40, None, gpu.device, gpu.kernel)
    found = scanner.pairs(range(1400))
    sizes = [np.bitwise_count(one.words[:, 2]).sum(axis=1).max() for one in data.classes]
    assert scanner._missing() == tuple(2 * int(size) for size in sizes)
    assert_same(found, run(CpuBackend(threads=8), 2, data, range(1400), 40))
