"""Haplotype copying on a GPU: the bytes of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.copied import check_copying, draw_mosaics

pytest.importorskip("cupy")

from popdesic.copying import copying, copying_plan
from popdesic.copying import copying_launches_plan as plans
from popdesic.copying.copying import haplotypes_of, impute_alleles
from popdesic.engine.backend_gpu import GpuBackend

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend(gpu_device) -> GpuBackend:
    return GpuBackend()


@pytest.mark.parametrize("n", [1, 2, 31, 33, 64, 65, 1000, 1088, 5008, 6000, 20_000])
def test_every_number_of_haplotypes(backend, rng, n):
    """One warp and several, half words; missing calls, own haplotypes, checkpoints."""
    own = np.array([[0, n - 1], [-1, -1], [n // 2, -1]]) if n > 2 else None
    check_copying(backend, draw_mosaics(rng, n, 400, 3), own)


def test_the_largest_panel(backend, rng):
    """States that pass through registers in chunks."""
    n = copying_plan.MOST_HAPLOTYPES
    assert [shape.chunks for shape in plans.shapes_for(n)[:2]] == [2, 4]
    check_copying(backend, draw_mosaics(rng, n, 100, 2), np.array([[5, n - 1], [-1, -1]]))


@pytest.mark.parametrize("ne", [1.0, 100.0, 1e6])
@pytest.mark.parametrize("mismatch", [1e-5, 0.1])
@pytest.mark.parametrize("n", [400, 5008])
def test_small_sums_are_counted_again(backend, rng, n, ne, mismatch):
    panel, cm, sites, alleles = draw_mosaics(rng, n, 140, 2)
    panel[:, ::5] = 0
    panel[7:9, ::5] = 1
    alleles[:, sites % 5 == 0] = 1
    check_copying(backend, (panel, cm, sites, alleles), ne=ne, mismatch=mismatch)


def test_every_haplotype_is_listed(backend, rng, monkeypatch):
    monkeypatch.setattr(copying, "SMALL_SHARE", 0.0)
    check_copying(backend, draw_mosaics(rng, 5008, 100, 2), ne=1e7)


def test_windows_and_batches_change_nothing(backend, rng, monkeypatch):
    """Many targets at once and each alone; windows in groups, targets in runs."""
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 3.0)
    panel, cm, sites, alleles = draw_mosaics(rng, 1000, 1500, 300)
    found = check_copying(backend, (panel, cm, sites, alleles))
    packed = haplotypes_of(panel, cm)
    for target in (0, 7, 299):
        one = alleles[target : target + 1]
        alone = impute_alleles(packed, sites, one, ne=3000.0, mismatch=1e-3, backend=backend)
        np.testing.assert_array_equal(alone[0], found[target])
    small = GpuBackend(device_bytes=8 << 20)
    again = impute_alleles(packed, sites, alleles, ne=3000.0, mismatch=1e-3, backend=small)
    np.testing.assert_array_equal(again, found)
