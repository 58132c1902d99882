"""Scans of quads on a GPU give the hits of the oracle and of the CPU exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracles.epistasis import assert_same, draw_scan, random_partners, scan

from popdesic.epistasis.scan_data import Hits
from popdesic.epistasis.scan_sites import scan_quads

pytestmark = pytest.mark.gpu
cupy = pytest.importorskip("cupy")

ASSOCIATION = ("k2", "k2_excess", "mutual_information", "gini")


@pytest.fixture(params=("wgmma", "mma", "popc"))
def gpu(request, gpu_device):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.devices import supported_kernels

    if request.param not in supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {request.param}")
    return GpuBackend(kernel=request.param)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("score", [*ASSOCIATION, "interaction"])
@pytest.mark.parametrize(("n_sites", "n_samples"), [(9, (50, 61)), (4, (1, 1)), (6, (700, 3))])
def test_hits_equal_the_oracle(gpu, rng, missing, score, n_sites, n_samples):
    data, states, cases = draw_scan(rng, score, n_sites, n_samples, missing)
    expected = scan(data, states, cases, 4, range(n_sites), 20)
    assert_same(scan_quads(gpu, data, range(n_sites), 20), expected)


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("n_samples", [(9_000, 7_000), (210_000, 190_000)])
def test_many_samples(gpu, rng, missing, n_samples):
    """Many stages; then counts above 65 535, which do not share a word."""
    data, states, cases = draw_scan(rng, "k2", 6, n_samples, missing)
    expected = scan(data, states, cases, 4, range(6), 15)
    assert_same(scan_quads(gpu, data, range(6), 15), expected)


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("most", [10, 45, 90])
def test_every_way_to_count_gives_the_same_hits(gpu, rng, most, missing, monkeypatch):
    from popdesic.epistasis import classes_gpu, packing_gpu, scan_gpu

    for module in (classes_gpu, packing_gpu, scan_gpu):
        monkeypatch.setattr(module, "MAX_SHARED", most)
    data, states, cases = draw_scan(rng, "mutual_information", 7, (120, 131), missing)
    expected = scan(data, states, cases, 4, range(7), 20)
    assert_same(scan_quads(gpu, data, range(7), 20), expected)


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("n_sites", [69, 137, 300])
def test_quads_of_several_tiles(gpu, rng, n_sites, missing):
    """The last eleven sites, and the seven that lie around the end of a tile."""
    data, states, cases = draw_scan(rng, "k2_excess", n_sites, (900, 860), missing)
    last = slice(n_sites - 11, n_sites)
    expected = scan(data.of_sites(last), states[last], cases, 4, range(11), 50)
    found = scan_quads(gpu, data, range(last.start, n_sites), 50)
    assert_same(found, replace(expected, sites=expected.sites + last.start))
    here = data.of_sites(slice(60, 69))
    expected = scan(here, states[60:69], cases, 4, range(9), 50)
    assert_same(scan_quads(gpu, here, range(9), 50), expected)


def test_a_whole_scan_and_its_parts_and_batches(gpu, rng, monkeypatch):
    """All quads of 70 sites: as by the CPU, in parts of first sites, and with other batches."""
    from popdesic.engine.backend_cpu import CpuBackend
    from popdesic.epistasis import scan_gpu
    from popdesic.epistasis.scan_data import merge_hits

    data, _, _ = draw_scan(rng, "k2", 70, (300, 257), 0.0)
    expected = scan_quads(CpuBackend(8), data, range(70), 200)
    assert_same(scan_quads(gpu, data, range(70), 200), expected)
    parts = [scan_quads(gpu, data, part, 200) for part in (range(9), range(9, 31), range(31, 70))]
    assert_same(merge_hits(parts, data.rank, 200), expected)
    monkeypatch.setattr(scan_gpu, "BATCH", 28)
    assert_same(scan_quads(gpu, data, range(70), 200), expected)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_partners_first_sites_and_cutoffs(gpu, rng, missing):
    data, states, cases = draw_scan(rng, "gini", 11, (90, 70), missing)
    first, permitted = range(1, 5), 0
    while not permitted:  # rules drawn at random may permit nothing
        data = replace(data, partners=random_partners(rng, 11, 0.2))
        expected = scan(data, states, cases, 4, first, 30)
        permitted = len(expected.cost)
    assert_same(scan_quads(gpu, data, first, 30), expected)
    cutoff = int(expected.cost[permitted // 2])
    few = scan_quads(gpu, data, first, 30, cutoff)
    n = int((expected.cost <= cutoff).sum())
    assert_same(Hits(few.cost[:n], few.sites[:n]), Hits(expected.cost[:n], expected.sites[:n]))
