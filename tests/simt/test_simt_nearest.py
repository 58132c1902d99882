"""Lists of nearest samples and points, and pairs, by the kernels' sources on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.neighbor_checks import (
    METRICS,
    SCREENS,
    check_between,
    check_nearest,
    check_points,
    check_screen,
    draw_people,
)

from popdesic.engine import tile_plan


@pytest.fixture(params=["mma", "popc"])
def backend(request, machine, schedule):
    from popdesic.engine.backend_gpu import GpuBackend

    return GpuBackend(kernel=request.param, rare_sites=False)


@pytest.fixture
def short_tiles(machine, monkeypatch) -> None:

    monkeypatch.setattr(tile_plan, "TILE_SAMPLES", 256)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "cut", "k"), [(90, 1, 3), (90, 40, 6), (300, 20, 9)])
def test_nearest_of_two_cohorts_in_each_other(backend, metric, n, cut, k):
    """Also with fewer others than neighbours, and with nobody who can be compared."""
    genotypes = draw_people(n + cut, n, 65, 0.3, copies=n // 4)
    genotypes[2] = -1
    check_between(backend, genotypes, cut, k, metric, min_called=15)


@pytest.mark.parametrize("kept", ["a", "b", "ab"])
def test_either_cohort_may_be_on_the_device(backend, kept):
    genotypes = draw_people(len(kept), 120, 130, 0.1, copies=20)
    held = dict.fromkeys(kept, backend.keep_planes)
    check_between(backend, genotypes, 50, 5, "normalized", min_called=15, **held)


def test_one_cohort_may_be_complete(backend):
    genotypes = draw_people(7, 90, 70, 0.2, copies=20)
    genotypes[:30] = draw_people(8, 30, 70)
    check_between(backend, genotypes, 30, 5, "manhattan", a=lambda planes: planes.without_mask())


def test_cohorts_of_several_tiles(machine, short_tiles, monkeypatch):
    """More candidates than have room, too."""
    from popdesic.distance import nearest_gpu, nearest_plan
    from popdesic.engine.backend_gpu import GpuBackend

    backend = GpuBackend(kernel="mma", rare_sites=False)
    genotypes = draw_people(5, 1400, 33, 0.1, copies=300)
    check_between(backend, genotypes, 300, 20, "euclidean")
    whole = ((0, 31),)
    for module in (nearest_gpu, nearest_plan):
        monkeypatch.setattr(module, "BANDS", whole)
    monkeypatch.setattr(tile_plan, "TILE_SAMPLES", 2048)
    check_between(backend, genotypes, 300, 3, "ibs")


@pytest.mark.parametrize("metric", METRICS)
def test_nearest_of_a_matrix(backend, short_tiles, metric):
    check_nearest(backend, draw_people(1, 270, 60, 0.3, copies=60), 7, metric, min_called=20)


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65])
def test_nearest_of_any_number_of_sites(machine, n_sites):
    from popdesic.engine.backend_gpu import GpuBackend

    backend = GpuBackend(kernel="mma", rare_sites=False)
    genotypes = draw_people(n_sites, 40, n_sites, 0.2)
    genotypes[3] = -1
    check_nearest(backend, genotypes, 5, "euclidean")
    check_between(backend, genotypes, 17, 5, "euclidean")


@pytest.mark.parametrize(("n", "m"), [(33, 3), (260, 17)])
def test_nearest_points(machine, schedule, n, m):
    from popdesic.engine.backend_gpu import GpuBackend

    check_points(GpuBackend(), np.random.default_rng(n).normal(size=(n, m)), 5)


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("cut", [None, 1, 40])
def test_pairs_to_look_at_again(backend, monkeypatch, name, cut):
    """With little room, too, and with either cohort's planes on the device."""
    from popdesic.relatives import screen_gpu

    genotypes = draw_people(3, 90, 65, 0.2, copies=20)
    genotypes[2] = -1
    check_screen(backend, genotypes, cut, SCREENS[name], 2)
    monkeypatch.setattr(screen_gpu, "LEAST_PAIRS", 3)
    monkeypatch.setattr(screen_gpu, "MOST_PAIRS", 40)
    for kept in ("a", "b"):
        held = {kept: backend.keep_planes}
        check_screen(backend, genotypes, cut, SCREENS[name], 3, **held)


@pytest.mark.parametrize("cut", [None, 270])
def test_screens_of_several_tiles(machine, short_tiles, cut):
    from popdesic.engine.backend_gpu import GpuBackend

    genotypes = draw_people(4, 600, 40, 0.1, copies=100)
    for top in (0, 5):
        check_screen(GpuBackend(rare_sites=False), genotypes, cut, SCREENS["usual"], top)
