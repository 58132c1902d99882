"""PC-Relate on a GPU: the bytes of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.relatives.pc_relate import ancestry_of, pc_relate

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend(gpu_device):
    from popdesic.engine.backend_gpu import GpuBackend

    return GpuBackend()


@pytest.mark.parametrize(
    ("n", "n_sites"),
    [(2, 1), (15, 17), (63, 63), (64, 64), (65, 65), (129, 1_025), (700, 3_000), (1_501, 200)],
)
def test_kinships_are_those_of_the_cpu(backend, n, n_sites, rng):
    genotypes = rng.integers(0, 3, (n_sites, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.05] = -1
    genotypes[:, n // 2 :] = genotypes[:, : n - n // 2]
    training = np.arange(n) <= n * 2 // 3
    ancestry = ancestry_of(rng.normal(size=(n, 3)), training, 3)
    found, expected = (
        pc_relate(lambda first, last: genotypes[first:last], n_sites, ancestry, one)
        for one in (backend, CpuBackend(2))
    )
    assert type(found.pairs).__name__ == "GpuExpected"
    np.testing.assert_array_equal(found.matrix(), expected.matrix())
    np.testing.assert_array_equal(found.own, expected.own)
    for one, other in zip(found.close(0.1), expected.close(0.1), strict=True):
        np.testing.assert_array_equal(one, other)
