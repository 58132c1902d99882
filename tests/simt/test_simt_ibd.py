"""Candidates of identity by descent by the kernels' source, on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.ibd import check_candidates, draw_pair_of_cohorts, draw_windows
from support.operands import planes_of

from popdesic.ibd.find_candidates import find_candidates


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 700])
@pytest.mark.parametrize("width", [7, 128, 200])
def test_candidates_of_every_number_of_sites(machine, rng, n_sites, width):
    from popdesic.engine.backend_gpu import GpuBackend

    machine.backward = n_sites % 2 == 0
    a, b = draw_pair_of_cohorts(rng, 6, 5, n_sites)
    windows = draw_windows(rng, n_sites, width)
    found = check_candidates(GpuBackend(), rng, planes_of(a), planes_of(b), windows)
    if found:
        assert {"pack_windows", "find_runs"} <= set(machine.launched)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 257, 300])
def test_candidates_of_every_number_of_samples(schedule, rng, n):
    """More runs than a queue holds, and pairs of several thread blocks."""
    from popdesic.engine.backend_gpu import GpuBackend

    a, b = draw_pair_of_cohorts(rng, n, 70, 60)
    windows = draw_windows(rng, 60, 10)
    check_candidates(GpuBackend(), rng, planes_of(a), planes_of(b), windows)


def test_blocks_and_room_change_nothing(rng, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.ibd import candidates_gpu, candidates_plan

    a, b = draw_pair_of_cohorts(rng, 300, 260, 40)
    windows = draw_windows(rng, 40, 10)
    monkeypatch.setattr(candidates_gpu, "LEAST_ROOM", 3)
    monkeypatch.setattr(candidates_plan, "PACKED_SHARE", 0)
    monkeypatch.setattr(candidates_gpu, "UPLOAD_BYTES", 1000)
    check_candidates(GpuBackend(), rng, planes_of(a), planes_of(b), windows)


def test_a_device_without_the_instructions_leaves_it_to_the_cpu(machine, rng):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.devices import Device

    machine.device = Device(0, "T4", 75, 2, 65_536, 12040)
    a, b = draw_pair_of_cohorts(rng, 20, 10, 400)
    assert check_candidates(
        GpuBackend(), rng, planes_of(a), planes_of(b), draw_windows(rng, 400, 10)
    )
    assert "find_runs" not in machine.launched


def test_too_many_candidates_are_refused(rng):
    from popdesic.core.errors import UserError
    from popdesic.engine.backend_gpu import GpuBackend

    planes = planes_of(np.ones((40, 30), np.int8))
    windows = draw_windows(rng, 30, 10, masked=0, contigs=1)
    limits = {"tolerance": 1, "min_length": 0.0}
    assert len(find_candidates(GpuBackend(), planes, None, windows, **limits, most=780).i) == 780
    with pytest.raises(UserError, match=r"780 or more runs .* than the 779 .* raise ibd\.min_cm"):
        find_candidates(GpuBackend(), planes, None, windows, **limits, most=779)
