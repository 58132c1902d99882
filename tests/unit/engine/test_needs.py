"""Estimates of device memory: what they count, and that they grow with what they count."""

from __future__ import annotations

from popdesic.distance import nearest_plan
from popdesic.distance.nearest import MOST_NEIGHBORS
from popdesic.engine import layout
from popdesic.engine.needs import CANDIDATE_BYTES, TILE_SIDE, points_bytes


def test_the_constants_are_those_of_the_kernels():
    assert nearest_plan.LIST_LENGTH - MOST_NEIGHBORS == CANDIDATE_BYTES // 16
    plans = layout.__file__.replace("layout.py", "tile_plan.py")
    with open(plans) as file:
        assert f"TILE_SAMPLES = 1 << {TILE_SIDE.bit_length() - 1}" in file.read()


def test_points():
    assert points_bytes(1000, 20, 50) - points_bytes(0, 20, 50) == 1000 * (12 * 20 + 16 * 50)
