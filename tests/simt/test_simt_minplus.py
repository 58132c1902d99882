"""(min, +) products and closures by the kernels' sources, on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import reference
from support.operands import wide

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.minplus import infinity
from popdesic.geodesic import closure
from popdesic.geodesic.closure import close_paths

CPU = CpuBackend(2)


def draw(rng, shape, dtype: str, holes: float = 0.2) -> np.ndarray:
    weights = np.exp(rng.uniform(0, 15, shape)).astype(dtype)
    weights[rng.random(shape) < holes] = infinity(dtype)
    return weights


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 140), (130, 65, 16)])
def test_product(schedule, rng, dtype, shape):
    from popdesic.engine.backend_gpu import GpuBackend

    m, k, n = shape
    a, b, c = draw(rng, (m, k), dtype), draw(rng, (k, n), dtype), draw(rng, (m, n), dtype)
    start, mine = c.copy(), c.copy()
    CPU.minplus().multiply(mine, a, b)
    GpuBackend().minplus().multiply(c, a, b)
    assert c.tobytes() == mine.tobytes()
    wanted = reference.minplus(wide(a), wide(b))
    wanted = np.where(wanted >= infinity(dtype), np.inf, wanted)
    np.testing.assert_allclose(wide(c), np.minimum(wide(start), wanted), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
@pytest.mark.parametrize("n", [1, 65, 129, 300])
def test_closure_has_the_bytes_of_the_cpu(machine, rng, dtype, n):
    """Blocks, panels, transposes and bounds, on a matrix that stays on the device."""
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = n == 300
    weights = draw(rng, (n, n), dtype)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    mine, theirs, backend = weights.copy(), weights.copy(), GpuBackend()
    close_paths(mine, CPU)
    held = backend.minplus().hold(weights)
    close_paths(held, backend, prune=False)
    backend.minplus().fetch(held, theirs)
    assert theirs.tobytes() == mine.tobytes()
    if n == 65:
        wanted = reference.floyd_warshall(wide(weights))
        np.testing.assert_allclose(wide(theirs), wanted, rtol=1e-14 if dtype == "float64" else 0)
    assert "close_block" in machine.launched
    assert n < 300 or "transpose" in machine.launched


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize(("n", "staged"), [(1, 1), (70, 2000), (129, 1 << 20)])
def test_a_matrix_goes_and_comes_in_another_order(machine, rng, monkeypatch, dtype, n, staged):
    """In ranges of one row, of some and of all, by several threads; also a view."""
    from popdesic.engine import matrix_copy_gpu
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setattr(matrix_copy_gpu, "STAGED_BYTES", staged)
    whole, order = draw(rng, (n + 3, n + 5), dtype), rng.permutation(n)
    weights = whole[2 : n + 2, 3 : n + 3]
    np.fill_diagonal(weights, 0)
    kernels, before = GpuBackend(threads=3).minplus(), weights.copy()
    held, found = kernels.hold(weights, order), np.full_like(before, 7)
    assert held.get()[:n, :n].tobytes() == before[np.ix_(order, order)].tobytes()
    kernels.fetch(held, found, order)
    assert found.tobytes() == before.tobytes()
    held = kernels.hold(weights)
    assert held.get()[:n, :n].tobytes() == before.tobytes()
    weights[:] = 7
    kernels.fetch(held, weights)
    assert weights.tobytes() == before.tobytes()
    placed = CPU.minplus().hold(weights, order)
    assert placed.tobytes() == before[np.ix_(order, order)].tobytes()
    CPU.minplus().fetch(placed, weights, order)
    assert weights.tobytes() == before.tobytes()


def test_pruning_skips_work_and_changes_nothing(machine, rng, monkeypatch):
    """Four groups of individuals that are far from each other."""
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setattr(closure, "PANEL", 128)
    points = rng.normal(size=(512, 4)) + 40 * np.repeat(rng.normal(size=(4, 4)), 128, axis=0)
    weights = (((points[:, None] - points[None]) ** 2).sum(-1) * 2**10).astype(np.int32)
    np.fill_diagonal(weights, 0)
    mine, theirs, backend = weights.copy(), np.empty_like(weights), GpuBackend()
    close_paths(mine, CPU)
    held = backend.minplus().hold(weights)
    work = close_paths(held, backend, prune=True)
    backend.minplus().fetch(held, theirs)
    assert work.skipped_share > 0.1
    assert theirs.tobytes() == mine.tobytes()
    assert "tile_extremes" in machine.launched
