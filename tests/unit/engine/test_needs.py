"""Estimates of device memory: what they count, and that they grow with what they count."""

from __future__ import annotations

import pytest

from popdesic.engine.gpu import layout
from popdesic.engine.nearest import MOST_NEIGHBORS
from popdesic.engine.needs import (
    CANDIDATE_BYTES,
    CONTEXT_BYTES,
    TILE_SIDE,
    neighbors_bytes,
    points_bytes,
)


def test_the_constants_are_those_of_the_kernels():
    assert layout.LIST_LENGTH - MOST_NEIGHBORS == CANDIDATE_BYTES // 16
    plans = (layout.__file__).replace("layout.py", "neighbor_plans.py")
    with open(plans) as file:
        assert f"TILE_SAMPLES, TILE_POINTS = 1 << {TILE_SIDE.bit_length() - 1}," in file.read()


@pytest.mark.parametrize("n", [100, 5_000, 1_000_000])
def test_neighbours_need_their_planes_twice_lists_and_a_tile(n):
    planes = n * 2 * 8 * 1000
    need = neighbors_bytes(n, planes, 50, 2)
    assert need > CONTEXT_BYTES + planes + 16 * n * 50
    # Planes are held where they take at most half of what is free.
    assert need - CONTEXT_BYTES >= 2 * planes
    assert neighbors_bytes(n, planes, 100, 2) - need == 16 * n * 50
    assert neighbors_bytes(n, planes, 50, 4) >= need


def test_a_small_study_shares_a_device_and_a_large_one_does_not():
    """A thousand people at 100 000 sites take a small part of a card of 80 GB, a million all."""
    row = 2 * 100_000 // 8
    assert neighbors_bytes(1_000, 1_000 * row, 50, 2) < 8 << 30
    assert neighbors_bytes(1_000_000, 1_000_000 * row, 50, 2) > 64 << 30


def test_points():
    assert points_bytes(1000, 20, 50) - points_bytes(0, 20, 50) == 1000 * (12 * 20 + 16 * 50)
