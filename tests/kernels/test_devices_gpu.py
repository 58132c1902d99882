"""What devices with less shared memory run gives the same results (an H200 stands in for them)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles.epistasis import assert_same, draw_scan
from oracles.residuals import random_residuals
from support.operands import draw_weights

from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.devices import KERNEL_VARIABLE, SHARED_VARIABLE, supported_kernels
from popdesic.epistasis.scan_sites import scan_pairs, scan_residual_pairs, scan_triples
from popdesic.geodesic.closure import close_paths

pytestmark = pytest.mark.gpu

#: Limits of other cards (tests/support/cards.py), and the best kernel that fits each.
LIMITS = [(163 << 10, "mma"), (99 << 10, "mma"), (99 << 10, "popc"), (64 << 10, "popc")]
CPU = CpuBackend(4)


@pytest.fixture(params=LIMITS, ids=lambda limit: f"{limit[0] >> 10} KB, {limit[1]}")
def small(request, gpu_device, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend

    limit, kernel = request.param
    if kernel not in supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {kernel}")
    monkeypatch.setenv(SHARED_VARIABLE, str(limit))
    monkeypatch.setenv(KERNEL_VARIABLE, kernel)
    backend = GpuBackend()
    assert backend.kernel == kernel
    assert backend.device.shared_bytes == min(limit, gpu_device.shared_bytes)
    return backend


@pytest.mark.parametrize("score", ["k2", "interaction"])
@pytest.mark.parametrize("n_samples", [(700, 577), (3000, 17)])
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize(("order", "n_sites"), [(2, 300), (3, 90)])
def test_scans(small, order, n_sites, missing, n_samples, score, rng):
    """Shares of cases that small weights express, and a share that needs wide counts."""
    data, *_ = draw_scan(rng, score, n_sites, n_samples, missing)
    scans = (
        partial(scan_pairs if order == 2 else scan_triples, one)(data, range(n_sites), 50)
        for one in (small, CPU)
    )
    assert_same(*scans)


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_scans_of_residuals(small, missing, rng):
    data, _ = random_residuals(rng, 300, 1023, missing=missing, effect=60)
    assert_same(*(scan_residual_pairs(one, data, range(300), 50) for one in (small, CPU)))


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "int64"])
@pytest.mark.parametrize("n", [65, 700])
def test_shortest_paths(small, dtype, n):
    weights = draw_weights(np.random.default_rng(n), n, dtype)
    expected, found = weights.copy(), weights.copy()
    close_paths(expected, CPU)
    held = small.minplus().hold(weights)
    close_paths(held, small)
    small.minplus().fetch(held, found)
    assert found.tobytes() == expected.tobytes()


def test_the_kernel_of_scans_is_measured_where_there_is_no_wgmma(gpu_device):
    from popdesic.engine.tune_gpu import choose_scan_kernel

    kernels = supported_kernels(gpu_device)
    if "wgmma" in kernels:
        assert choose_scan_kernel(gpu_device) == "wgmma"
    other = replace(gpu_device, shared_bytes=min(gpu_device.shared_bytes, 99 << 10))
    assert choose_scan_kernel(other) in kernels[-2:]
    assert choose_scan_kernel(replace(other, shared_bytes=64 << 10)) == "popc"


def test_a_kernel_that_does_not_fit_is_refused(gpu_device, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setenv(SHARED_VARIABLE, "65536")
    with pytest.raises(UserError, match="does not run the micro-kernel 'mma'; it runs popc"):
        GpuBackend(kernel="mma")
