"""Closures of a matrix that is spread over devices, by the kernels' sources, on a CPU."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from oracles import reference
from support.operands import draw_weights, wide

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic.closure import close_matrix, close_paths

CPU = CpuBackend(2)


def close_spread(weights: np.ndarray, devices: list[int], prune: bool = False):
    """A closure on some devices, and what it skipped."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.spread_gpu import Spread

    spread, found = Spread(weights, devices), np.empty_like(weights)
    close = functools.partial(close_paths, backend=GpuBackend(), prune=False)
    work = spread.close(close, prune=prune)
    spread.fetch(found)
    return found, work


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    "n, devices", [(1, 2), (2, 2), (63, 1), (129, 2), (300, 2), (650, 3), (401, 1)]
)
def test_closure_has_the_bytes_of_the_cpu(machine, rng, dtype, n, devices):
    machine.devices, machine.backward = devices, n % 2 == 0
    weights = draw_weights(rng, n, dtype, 0.3)
    given, mine = weights.copy(), weights.copy()
    close_paths(mine, CPU)
    found, (_, skipped) = close_spread(weights, list(range(devices)))
    assert found.tobytes() == mine.tobytes()
    assert weights.tobytes() == given.tobytes()
    assert skipped == 0
    if n < 64:
        wanted = reference.floyd_warshall(wide(weights))
        np.testing.assert_allclose(wide(found), wanted, rtol=1e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_pruning_skips_work_and_changes_nothing(machine, rng, monkeypatch, dtype):
    """Groups of individuals that are far from each other, on two devices."""
    from popdesic.engine import spread_gpu as spread

    machine.devices = 2
    monkeypatch.setattr(spread, "PANEL", 128)
    points = rng.normal(size=(512, 4)) + 40 * np.repeat(np.eye(4), 128, axis=0)
    points[128:256] = points[128]  # identical
    weights = (((points[:, None] - points[None]) ** 2).sum(-1) * 2**10).astype(dtype)
    mine = weights.copy()
    close_paths(mine, CPU)
    found, (possible, skipped) = close_spread(weights, [0, 1], prune=True)
    assert found.tobytes() == mine.tobytes()
    assert 0.1 < skipped / possible < 1


def test_panels_that_cannot_change(machine, monkeypatch):
    """Equal weights everywhere: no path is shorter than an edge, and no panel is closed."""
    from popdesic.engine import spread_gpu as spread

    machine.devices = 2
    monkeypatch.setattr(spread, "PANEL", 128)
    weights = np.full((384, 384), 7, np.int32)
    np.fill_diagonal(weights, 0)
    found, _ = close_spread(weights, [0, 1], prune=True)
    assert found.tobytes() == weights.tobytes()
    assert "close_block" not in machine.launched


def test_a_job_closes_large_matrices_on_all_its_devices(machine, rng, monkeypatch, tmp_path):
    """Leased whole; few samples and a matrix beyond the memory stay on one."""
    from popdesic.engine import backend_gpu, lease, needs

    machine.devices = 2
    monkeypatch.setattr(lease.tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(lease.TooFewGpusError, match=r"_GPUS is 3, .* finds 2 GPUs here"):
        backend_gpu.GpuBackend.leased(gpus=3)
    both = backend_gpu.GpuBackend.leased(gpus=2)
    assert both.devices == [0, 1] and "GPU 0, with 1: A100" in both.describe()
    weights, order = draw_weights(rng, 300, "int32", 0.3), rng.permutation(300)
    assert both.minplus().spread_matrix(weights, order) is None
    monkeypatch.setattr(needs, "SPREAD_LEAST", 300)
    mine = weights.copy()
    close_paths(mine, CPU)
    before = weights.copy()
    found, work = close_matrix(weights, order, both)
    assert found.tobytes() == mine.tobytes() and weights.tobytes() == before.tobytes()
    assert work.possible == 384**3 // 2
    both.device_bytes = 100_000
    assert both.minplus().spread_matrix(weights, order) is None
    assert backend_gpu.GpuBackend().minplus().spread_matrix(weights, order) is None
