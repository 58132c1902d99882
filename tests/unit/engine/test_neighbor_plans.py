"""Tiles and bands of neighbours on a GPU; no CuPy needed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from popdesic.engine.gpu import layout, neighbor_plans
from popdesic.engine.gpu.layout import BLOCK_ROWS
from popdesic.engine.gpu.neighbor_plans import (
    BANDS,
    HOST_PAIRS,
    TILE_SAMPLES,
    WHOLE,
    ordered_tiles,
    sides_between,
    tile_side,
)
from popdesic.engine.nearest import MOST_NEIGHBORS, tiles_of_pairs


@pytest.mark.parametrize("n", [1, 256, 257, 700, 32_768, 32_769, 1_000_000])
@pytest.mark.parametrize("most", [100, 256, 1000, 32_768])
def test_sides_are_whole_blocks_and_even(n, most):
    side = tile_side(n, most)
    assert side % layout.BLOCK_ROWS == 0
    assert side <= max(most, layout.BLOCK_ROWS)
    blocks = -(-n // side)
    assert blocks == -(-n // max(layout.BLOCK_ROWS, most // layout.BLOCK_ROWS * layout.BLOCK_ROWS))
    assert blocks * side - n < blocks * layout.BLOCK_ROWS  # no tile is much shorter than others


def test_tiles_of_a_shape_come_together_and_own_tiles_first():
    found = list(ordered_tiles(1000, 256))
    assert sorted(found) == sorted(tiles_of_pairs(1000, 256))
    own = [rows == columns for rows, columns in found]
    assert own == sorted(own, reverse=True)
    shapes = [(r[1] - r[0], c[1] - c[0], r == c) for r, c in found]
    changes = sum(a != b for a, b in pairwise(shapes))
    assert changes == len(set(shapes)) - 1


def test_bands_hold_every_pair_once():
    i, j = np.triu_indices(3000, 1)
    for bands in (BANDS, WHOLE):
        seen = sum(((i ^ j) >> high == 0) & ((i ^ j) >> low != 0) for low, high in bands)
        assert (seen == 1).all()
    assert 2 ** BANDS[0][1] == layout.POINT_TILE  # no other tile of points is in the first


def test_a_list_and_its_candidates_are_sorted_together():
    assert layout.LIST_ROOM + MOST_NEIGHBORS == layout.LIST_LENGTH
    assert layout.LIST_LENGTH & (layout.LIST_LENGTH - 1) == 0


def test_codes_of_forms():
    assert sorted(layout.FORMS.values()) == list(range(len(layout.FORMS)))
    form = neighbor_plans.Form.of_points(0.5, 1e-6)
    assert dict(form.defines(2))["FORM"] == layout.FORMS["POINTS"]


def test_planes_in_host_memory_pass_once():
    """The cohort that is on the device is one side of every tile, up to the largest tile."""
    assert sides_between(9_000, 700, (True, False))[0] == 9_000
    assert sides_between(700, 9_000, (False, True))[1] == 9_000
    assert sides_between(10**6, 700, (True, False))[0] == TILE_SAMPLES
    for kept in ((True, False), (False, True), (False, False), (True, True)):
        for m, n in ((1, 1), (10_000, 10_000), (10**6, 3)):
            rows, columns = sides_between(m, n, kept)
            assert rows * columns <= max(HOST_PAIRS, BLOCK_ROWS * TILE_SAMPLES)
            assert min(rows, columns) >= 1
