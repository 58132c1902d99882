"""Scans of residuals on a GPU give the hits of the oracle and of the CPU exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles import residuals as oracle
from oracles.epistasis import assert_same, random_partners

from popdesic.epistasis.scan_sites import scan_residual_pairs

pytestmark = pytest.mark.gpu
cupy = pytest.importorskip("cupy")


@pytest.fixture(params=["wgmma", "mma", "popc"])
def gpu(request, gpu_device):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.devices import supported_kernels

    if request.param not in supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {request.param}")
    return GpuBackend(kernel=request.param)


def on_cpu(data, *given):
    from popdesic.engine.backend_cpu import CpuBackend

    return scan_residual_pairs(CpuBackend(threads=8), data, *given)


@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("n_sites", "n_samples"), [(2, 1), (2, 5), (17, 65), (70, 300), (33, 257)])
def test_hits_equal_the_oracle(gpu, rng, n_sites, n_samples, missing):
    data, states = oracle.random_residuals(rng, n_sites, n_samples, missing=missing, effect=40)
    expected = oracle.scan(data, states, range(n_sites), 30)
    assert_same(scan_residual_pairs(gpu, data, range(n_sites), 30), expected)


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("n_samples", [60, 1023, 4096, 20_001])
@pytest.mark.parametrize("effect", [0, 60])
def test_hits_equal_the_cpu(gpu, rng, n_samples, missing, effect):
    data, _ = oracle.random_residuals(rng, 700, n_samples, missing=missing, effect=effect)
    for first in (range(700), range(130, 300), range(699, 700)):
        assert_same(scan_residual_pairs(gpu, data, first, 100), on_cpu(data, first, 100))
    cutoff = int(on_cpu(data, range(700), 20).cost[-1])
    few = scan_residual_pairs(gpu, data, range(700), 100, cutoff)
    n = int((few.cost <= cutoff).sum())
    assert n >= 20
    expected = on_cpu(data, range(700), 100)
    assert (few.cost[:n] == expected.cost[:n]).all() and (few.sites[:n] == expected.sites[:n]).all()


@pytest.mark.parametrize("max_r2", [1.0, 0.005])
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_partners(gpu, rng, missing, max_r2):
    data, _ = oracle.random_residuals(rng, 300, 700, missing=missing, effect=60)
    limited = replace(data, partners=random_partners(rng, 300, max_r2))
    expected = on_cpu(limited, range(300), 500)
    assert_same(scan_residual_pairs(gpu, limited, range(300), 500), expected)
    assert not np.array_equal(expected.sites, on_cpu(data, range(300), 500).sites)


def test_levels_of_every_kind(gpu, rng):
    """All equal, two values as of cases and controls, and the whole range."""
    data, _ = oracle.random_residuals(rng, 200, 900, missing=0.0)
    for levels in (np.full(900, 128), rng.choice([1, 255], 900), np.arange(900) % 256):
        levels = levels.astype(np.uint8)
        given = replace(data, levels=levels, variance=max(1.0, float(levels.var())))
        assert_same(scan_residual_pairs(gpu, given, range(200), 60), on_cpu(given, range(200), 60))
