"""Closures in parts on several GPUs, or on one, have the bytes of one GPU and of the CPU."""

from __future__ import annotations

import functools
from contextlib import contextmanager

import numpy as np
import pytest
from oracles import reference
from support.operands import draw_weights, wide

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic.closure import close_paths

pytestmark = pytest.mark.gpu

DTYPES = ("int32", "int64", "float32", "float64")
CPU = CpuBackend(8)
#: Runs for about so many clock cycles.
SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""


@pytest.fixture(scope="module")
def backend(gpu_device):
    from popdesic.engine.backend_gpu import GpuBackend

    return GpuBackend()


def places(parts: int) -> list[int]:
    """Devices for some parts: different ones as far as there are."""
    import cupy

    return [part % cupy.cuda.runtime.getDeviceCount() for part in range(parts)]


def close_spread(backend, weights: np.ndarray, parts: int, prune: bool = False):
    from popdesic.engine.spread_gpu import Spread

    spread, found = Spread(weights, places(parts)), np.empty_like(weights)
    work = spread.close(functools.partial(close_paths, backend=backend, prune=False), prune)
    spread.fetch(found)
    return found, work


def close_held(backend, weights: np.ndarray, prune: bool = False) -> np.ndarray:
    held, found = backend.minplus().hold(weights), np.empty_like(weights)
    close_paths(held, backend, prune=prune)
    backend.minplus().fetch(held, found)
    return found


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize(
    "n, dtype",
    [(n, "int32") for n in (1, 2, 63, 64, 65, 257, 1000, 2300)]
    + [(n, dtype) for n in (65, 900) for dtype in DTYPES[1:]],
)
def test_closure_has_the_bytes_of_one_gpu_and_of_the_cpu(backend, dtype, n, parts):
    weights = draw_weights(np.random.default_rng(n), n, dtype, 0.3)
    found, _ = close_spread(backend, weights, parts)
    assert found.tobytes() == close_held(backend, weights).tobytes()
    if n <= 1000:
        mine = weights.copy()
        close_paths(mine, CPU)
        assert found.tobytes() == mine.tobytes()
    if n < 100:
        wanted = reference.floyd_warshall(wide(weights))
        np.testing.assert_allclose(wide(found), wanted, rtol=1e-5 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_pruning_skips_work_and_changes_nothing(backend, dtype):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(1600, 40)) + 4 * rng.normal(size=(16, 40)).repeat(100, axis=0)
    weights = (((points[:, None] - points[None]) ** 2).sum(-1) * 2**16).astype(dtype)
    np.fill_diagonal(weights, 0)
    found, (possible, skipped) = close_spread(backend, weights, 2, prune=True)
    assert found.tobytes() == close_held(backend, weights).tobytes()
    assert skipped / possible > 0.1


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_any_delay_of_any_stream_gives_the_same_bytes(backend, monkeypatch, seed, parts):
    """Streams are held up at random, so that a missing wait is seen."""
    import cupy

    from popdesic.engine import spread_gpu as spread

    rng = np.random.default_rng(seed)
    spin = cupy.RawModule(code=SPIN).get_function("spin")
    on = spread._Part.on

    @contextmanager
    def late(part, stream):
        with on(part, stream):
            if rng.random() < 0.5:
                spin((1,), (1,), (np.int64(rng.integers(1, 2_000_000)),))
            yield

    weights = draw_weights(np.random.default_rng(seed), 3000, "int32", 0.9)
    expected = close_held(backend, weights)
    monkeypatch.setattr(spread._Part, "on", late)
    found, _ = close_spread(backend, weights, parts)
    assert found.tobytes() == expected.tobytes()
