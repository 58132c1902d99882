"""Nearest samples, nearest points and pairs on a GPU: the bytes of matrices of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.neighbor_checks import (
    METRICS,
    SCREENS,
    awkward_points,
    check_between,
    check_nearest,
    check_points,
    check_screen,
    draw_people,
    parts_of,
)

pytest.importorskip("cupy")

import cupy

from popdesic.distance import nearest_gpu, nearest_plan
from popdesic.distance.find_nearest import nearest_points, nearest_samples
from popdesic.distance.neighbors import measure_of
from popdesic.engine import tile_plan, tiles_gpu
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.devices import supported_kernels
from popdesic.engine.plane_parts import PlaneParts
from popdesic.engine.rare_sites_plan import SiteCosts
from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import Planes
from popdesic.relatives import screen_gpu

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend(gpu_device) -> GpuBackend:
    return GpuBackend()


@pytest.fixture(params=[256, 1 << 15])
def side(request, monkeypatch) -> int:
    monkeypatch.setattr(tile_plan, "TILE_SAMPLES", request.param)
    monkeypatch.setattr(nearest_plan, "TILE_POINTS", request.param)
    return request.param


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_nearest_of_a_matrix(backend, side, metric, missing):
    """Few sites and copies of people make ties, also at the last place of a list."""
    genotypes = draw_people(1, 700, 60, missing, copies=100)
    check_nearest(backend, genotypes, 9, metric, min_called=20)
    check_nearest(backend, genotypes, 9, metric, min_called=20, cuts=(100, 101, 400))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kept", ["", "a", "b", "ab"])
def test_nearest_of_two_cohorts_in_each_other(backend, monkeypatch, metric, kept):
    """With either cohort's planes on the device or in host memory, in one tile and in several."""
    genotypes = draw_people(3, 900, 70, 0.2, copies=100)
    held = dict.fromkeys(kept, backend.keep_planes)
    for cut in (1, 300):
        check_between(backend, genotypes, cut, 9, metric, 20, **held)
    monkeypatch.setattr(tile_plan, "TILE_SAMPLES", 256)
    check_between(backend, genotypes, 300, 9, metric, 20, **held)


@pytest.mark.parametrize(("n", "cut"), [(1030, 515), (3000, 2900), (5000, 1000)])
@pytest.mark.parametrize("k", [1, 50, 256])
def test_lists_of_two_cohorts_of_any_size(backend, monkeypatch, n, cut, k):
    """More neighbours than the first band offers, and more candidates than have room."""
    genotypes = draw_people(n, n, 90, 0.1, copies=200)
    check_between(backend, genotypes, cut, k, "euclidean", 20)
    monkeypatch.setattr(nearest_gpu, "BANDS", nearest_gpu.WHOLE)
    monkeypatch.setattr(nearest_plan, "BANDS", nearest_plan.WHOLE)
    check_between(backend, genotypes, cut, k, "ibs", 20)


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 1100])
def test_two_cohorts_of_any_number_of_sites(backend, n_sites):
    genotypes = draw_people(n_sites, 300, n_sites, 0.2)
    genotypes[3] = -1  # nobody can be compared with it
    check_between(backend, genotypes, 140, 5, "euclidean")
    genotypes[:] = -1
    check_between(backend, genotypes, 140, 5, "normalized")


@pytest.mark.parametrize("k", [1, 50, 256])
def test_lists_of_any_length(backend, monkeypatch, k):
    """More neighbours than the first band offers, and more candidates than have room."""
    genotypes = draw_people(2, 2100, 90, 0.1, copies=100)
    check_nearest(backend, genotypes, k, "euclidean", min_called=20)
    monkeypatch.setattr(nearest_plan, "BANDS", ((0, 31),))
    check_nearest(backend, genotypes, k, "euclidean", min_called=20)


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 1100])
def test_nearest_of_any_number_of_sites(backend, n_sites):
    genotypes = draw_people(n_sites, 300, n_sites, 0.2)
    genotypes[3] = -1  # nobody can be compared with it
    check_nearest(backend, genotypes, 5, "euclidean")
    check_nearest(backend, np.ones((300, n_sites), np.int8), 5, "ibs")
    genotypes[:] = -1
    found = check_nearest(backend, genotypes, 5, "euclidean")
    assert np.isinf(found.distance).all()


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_few_people(backend, n):
    for k in (0, 5):
        check_nearest(backend, draw_people(n, n, 30, 0.1), k, "euclidean")
    check_points(backend, np.random.default_rng(n).random((n, 3)), 5)


@pytest.mark.parametrize("kernel", ["wgmma", "mma", "popc"])
def test_every_micro_kernel(gpu_device, side, kernel):
    if kernel not in supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {kernel}")
    backend = GpuBackend(kernel=kernel)
    for missing in (0.0, 0.1):
        genotypes = draw_people(3, 600, 500, missing, copies=60)
        check_nearest(backend, genotypes, 9, "euclidean")
        check_between(backend, genotypes, 250, 9, "euclidean")
        check_screen(backend, genotypes, 250, SCREENS["usual"], 3)
        check_screen(backend, genotypes, None, SCREENS["usual"], 3)


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_rare_sites(gpu_device, side, missing):
    """Sums of listed sites and of homozygotes' carriers, tile after tile of the same stream."""
    backend = GpuBackend(rare_sites=SiteCosts(1e-9, 1e-12, 1e-12, 1e-12, 1e-12))
    genotypes = np.where(draw_people(4, 700, 900, missing) == 2, 0, draw_people(5, 700, 900))
    genotypes[:, ::3] = draw_people(6, 700, 300, missing, copies=50)
    check_nearest(backend, genotypes.astype(np.int8), 9, "manhattan")
    check_between(backend, genotypes.astype(np.int8), 300, 9, "manhattan", a=backend.keep_planes)


def test_planes_that_do_not_fit(backend, monkeypatch, side):
    monkeypatch.setattr(tiles_gpu, "HELD_SHARE", 0.0)
    genotypes = draw_people(7, 700, 300, 0.1, copies=50)
    check_nearest(backend, genotypes, 9, "euclidean", cuts=(300,))


def test_planes_go_up_in_parts(backend, monkeypatch):
    monkeypatch.setattr(tiles_gpu, "UPLOAD_BYTES", 10_000)
    genotypes = draw_people(8, 700, 300, 0.1)
    planes = parts_of(genotypes, (1, 300))
    np.testing.assert_array_equal(
        tiles_gpu.upload(backend, planes).get(), planes.block(0, 700).words
    )


def test_planes_that_are_on_the_device(backend):
    genotypes = draw_people(9, 400, 300, 0.1, copies=30)
    host = parts_of(genotypes)
    there = PlaneParts.of([Planes(cupy.asarray(host.parts[0].words), 300)])
    measure = measure_of("euclidean", 300, 1)
    wanted = check_nearest(backend, genotypes, 9, "euclidean")
    for one in (host, there):
        found = nearest_samples(backend, one, measure, 9)
        assert found.index.tobytes() == wanted.index.tobytes()


@pytest.mark.parametrize(("n", "m"), [(129, 33), (400, 1), (700, 16), (2049, 20), (5000, 2)])
@pytest.mark.parametrize("k", [1, 15, 100])
def test_nearest_points(backend, side, n, m, k):
    points = np.random.default_rng(n).normal(size=(n, m))
    found = check_points(backend, points, k)
    other = nearest_points(cpu_backend(2), points, k)
    assert found.index.tobytes() == other.index.tobytes()
    assert found.distance.tobytes() == other.distance.tobytes()


@pytest.mark.parametrize("name", awkward_points())
def test_nearest_of_awkward_points(backend, side, name):
    check_points(backend, awkward_points()[name], 8)


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("cut", [None, 1, 300])
@pytest.mark.parametrize("kept", ["", "a", "b"])
def test_pairs_to_look_at_again(backend, side, monkeypatch, name, cut, kept):
    """With either cohort's planes on the device or in host memory, and with little room."""
    genotypes = draw_people(12, 700, 70, 0.2, copies=100)
    genotypes[3] = -1
    held = dict.fromkeys(kept, backend.keep_planes)
    check_screen(backend, genotypes, cut, SCREENS[name], 3, **held)
    monkeypatch.setattr(screen_gpu, "LEAST_PAIRS", 8)
    monkeypatch.setattr(screen_gpu, "MOST_PAIRS", 1000)
    check_screen(backend, genotypes, cut, SCREENS[name], 0, **held)


@pytest.mark.parametrize("top", [1, 100, 300])
@pytest.mark.parametrize("cut", [None, 100, 3900])
def test_best_matches_of_many(backend, top, cut):
    """More matches than the lists on the device have, too."""
    genotypes = draw_people(13, 4000, 120, 0.05, copies=400)
    check_screen(backend, genotypes, cut, SCREENS["usual"], top)


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 1100])
def test_screens_of_any_number_of_sites(backend, n_sites):
    genotypes = draw_people(n_sites, 300, n_sites, 0.2, copies=30)
    for cut in (None, 140):
        check_screen(backend, genotypes, cut, SCREENS["usual"], 2)
        check_screen(backend, np.full_like(genotypes, -1), cut, SCREENS["all"], 2)
