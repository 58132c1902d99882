"""Candidates of identity by descent on a GPU: the bytes of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.ibd import check_candidates, draw_pair_of_cohorts, draw_windows
from support.operands import planes_of

pytest.importorskip("cupy")

import cupy

from popdesic.core.errors import UserError
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.terms import Planes
from popdesic.ibd import candidates_gpu, candidates_plan
from popdesic.ibd.find_candidates import find_candidates

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend(gpu_device) -> GpuBackend:
    return GpuBackend()


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 5000])
@pytest.mark.parametrize("width", [7, 33, 128, 129, 256])
@pytest.mark.parametrize("n", [1, 2, 255, 257, 700])
def test_candidates_are_those_of_the_cpu(backend, rng, n_sites, width, n):
    a, b = draw_pair_of_cohorts(rng, n, 300, n_sites)
    windows = draw_windows(rng, n_sites, width)
    check_candidates(backend, rng, planes_of(a), planes_of(b), windows)


def test_blocks_and_room_change_nothing(backend, rng, monkeypatch):
    a, b = draw_pair_of_cohorts(rng, 700, 600, 300)
    monkeypatch.setattr(candidates_gpu, "LEAST_ROOM", 3)
    monkeypatch.setattr(candidates_plan, "PACKED_SHARE", 0)
    monkeypatch.setattr(candidates_gpu, "UPLOAD_BYTES", 1000)
    check_candidates(backend, rng, planes_of(a), planes_of(b), draw_windows(rng, 300, 10))


def test_planes_may_be_on_the_device(backend, rng):
    planes = planes_of(draw_pair_of_cohorts(rng, 300, 3, 500)[0])
    there = Planes(cupy.asarray(planes.words), planes.n_sites)
    windows = draw_windows(rng, 500, 20)
    limits = {"tolerance": 1, "min_length": 0.5, "most": 1 << 22}
    ours = find_candidates(backend, there, None, windows, **limits)
    theirs = find_candidates(backend, planes, None, windows, **limits)
    np.testing.assert_array_equal(np.stack(ours), np.stack(theirs))


def test_too_many_candidates_are_refused(backend, rng):
    planes = planes_of(np.ones((400, 30), np.int8))
    windows = draw_windows(rng, 30, 10, masked=0, contigs=1)
    with pytest.raises(UserError, match=r"79800 or more runs .* ibd\.min_cm"):
        find_candidates(backend, planes, None, windows, tolerance=1, min_length=0.0, most=79_799)
