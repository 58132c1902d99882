"""Counts of genotypes over groups of samples on a GPU: those of the oracle and of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.groups import check_counts

pytest.importorskip("cupy")

import cupyx

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.population import group_counts_plan as plans
from popdesic.population.count_groups import count_groups

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend(gpu_device) -> GpuBackend:
    return GpuBackend()


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65, 5000])
@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 700])
def test_counts_equal_the_oracle(backend, rng, n_sites, missing, n):
    check_counts(backend, rng, n, n_sites, 5, missing)


def test_parts_change_nothing(backend, rng, monkeypatch):
    monkeypatch.setattr(plans, "PART_BYTES", 20_000)
    monkeypatch.setattr(plans, "RESULT_BYTES", 9_000)
    for n_groups in (1, 30):
        check_counts(backend, rng, 500, 3000, n_groups, 0.05)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("n_planes", [2, 3])
@pytest.mark.parametrize("n_groups", [1, 300])
def test_counts_are_those_of_the_cpu(backend, rng, pinned, n_planes, n_groups):
    """Parts of 64 MB, some of which are sent while others are counted; the last one is shorter."""
    shape = (9000, n_planes, 1001)
    words = cupyx.empty_pinned(shape, np.uint64) if pinned else np.empty(shape, np.uint64)
    words[:] = rng.integers(0, 2**64, shape, np.uint64, endpoint=False)
    words[:, 1] &= words[:, 0]
    if n_planes == 3:
        words[:, 2] |= rng.integers(0, 2**64, words[:, 2].shape, np.uint64, endpoint=False)
    used = rng.integers(0, 2**64, 1001, np.uint64, endpoint=False)
    values = rng.integers(0, 2**36, 64 * 1001)
    group = rng.integers(-1, n_groups, len(words))

    def grouping(first: int, part: np.ndarray, sums: np.ndarray) -> np.ndarray:
        return group[first : first + len(part)]

    given = words, used, values, 64 * 1001, grouping, n_groups
    ours, theirs = count_groups(backend, *given), count_groups(CpuBackend(8), *given)
    for name in ("sums", "groups", "sizes", "counts"):
        found, wanted = getattr(ours, name), getattr(theirs, name)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, err_msg=name)
