"""(min, +) products and closures by the kernels' sources, on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from operands import wide

from popdesic.engine.base import infinity
from popdesic.engine.cpu.backend import CpuBackend
from popdesic.geodesic.closure import close_paths

CPU = CpuBackend(2)


def draw(rng, shape, dtype: str, holes: float = 0.2) -> np.ndarray:
    weights = np.exp(rng.uniform(0, 15, shape)).astype(dtype)
    weights[rng.random(shape) < holes] = infinity(dtype)
    return weights


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 140), (130, 65, 16)])
def test_product(schedule, rng, dtype, shape):
    from popdesic.engine.gpu.backend import GpuBackend

    m, k, n = shape
    a, b, c = draw(rng, (m, k), dtype), draw(rng, (k, n), dtype), draw(rng, (m, n), dtype)
    start, mine = c.copy(), c.copy()
    CPU.minplus(mine, a, b)
    GpuBackend().minplus(c, a, b)
    assert c.tobytes() == mine.tobytes()
    wanted = reference.minplus(wide(a), wide(b))
    wanted = np.where(wanted >= infinity(dtype), np.inf, wanted)
    np.testing.assert_allclose(wide(c), np.minimum(wide(start), wanted), rtol=1e-6)
