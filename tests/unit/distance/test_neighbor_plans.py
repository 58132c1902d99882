"""Tiles and bands of neighbours on a GPU; no CuPy needed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from popdesic.distance import nearest_plan
from popdesic.distance.nearest import MOST_NEIGHBORS, tiles_of_pairs
from popdesic.distance.nearest_plan import BANDS, WHOLE, ordered_tiles, tiles_between
from popdesic.engine import layout
from popdesic.engine.tile_plan import tile_side


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
    i, j = np.indices((3000, 700))
    for bands in (BANDS, WHOLE):
        groups = i ^ j
        seen = sum((groups >> high == 0) & ((low == 0) | (groups >> low != 0))
                   for low, high in bands)  # fmt: skip
        assert (seen == 1).all()
    assert 2 ** BANDS[0][1] == nearest_plan.POINT_TILE  # no other tile of points is in the first


def test_a_list_and_its_candidates_are_sorted_together():
    assert nearest_plan.LIST_ROOM + MOST_NEIGHBORS == nearest_plan.LIST_LENGTH
    assert nearest_plan.LIST_LENGTH & (nearest_plan.LIST_LENGTH - 1) == 0


def test_codes_of_forms():
    assert sorted(nearest_plan.FORMS.values()) == list(range(len(nearest_plan.FORMS)))
    form = nearest_plan.LimitForm.of_points(0.5, 1e-6)
    assert dict(form.defines)["FORM"] == nearest_plan.FORMS["POINTS"]


@pytest.mark.parametrize(("m", "n"), [(1, 1), (700, 256), (300, 900)])
def test_tiles_of_two_cohorts_hold_every_pair_once(m, n):
    """Those of samples that have met nobody are looked at group by group."""
    seen, met = np.zeros((m, n), int), [np.zeros(size, bool) for size in (m, n)]
    for rows, columns, bands in tiles_between(m, n, (256, 512)):
        seen[slice(*rows), slice(*columns)] += 1
        mine = [who[slice(*bounds)] for who, bounds in zip(met, (rows, columns), strict=True)]
        assert (bands == WHOLE) == all(who.all() for who in mine)
        for who in mine:
            who[:] = True
    assert (seen == 1).all()
