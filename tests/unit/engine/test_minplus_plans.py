"""Tiles of the min-plus kernels, and blocks of matrices larger than the device."""

from __future__ import annotations

import numpy as np
import pytest
from support.cards import CARDS

from popdesic.engine import minplus_plan
from popdesic.engine.minplus_plan import BOUND_RUN, BOUND_TILE, NUMBERS, SHAPES

DTYPES = tuple(SHAPES)
LARGE = 232448


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: str(card.capability))
@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_fit_a_card_and_divide_the_tiles_of_the_bounds(dtype, card):
    shape = minplus_plan.shape_of(dtype, card.shared_bytes)
    assert BOUND_TILE % shape.block == 0
    assert BOUND_RUN % shape.depth == 0
    assert shape.depth % 2 == 0  # two k in a step
    assert shape.itemsize == np.dtype(dtype).itemsize
    assert shape.shared_bytes + minplus_plan.STATIC_BYTES <= card.shared_bytes
    defines = dict(shape.defines)
    assert defines["NUMBER"] == NUMBERS[dtype]
    assert defines["SLOTS"] * defines["DEPTH"] * 2 * shape.block * shape.itemsize == (
        shape.shared_bytes
    )


def test_tiles_are_those_measured_where_they_fit():
    for dtype in DTYPES:
        side, depth, resident = SHAPES[dtype]
        shape = minplus_plan.shape_of(dtype, LARGE)
        assert (shape.side, shape.depth, shape.resident) == (side, depth, resident)
        assert shape.slots == minplus_plan.SLOTS
        assert shape.resident * shape.shared_bytes <= LARGE
    # less memory: as many thread blocks as share a multiprocessor fit
    for shared, depth in ((99 << 10, 16), (64 << 10, 8)):
        shape = minplus_plan.shape_of("int32", shared)
        assert (shape.depth, shape.slots) == (depth, minplus_plan.FEWER_SLOTS)
        assert shape.resident * (shape.shared_bytes + minplus_plan.STATIC_BYTES) <= shared


def test_every_number_type_has_its_own_code():
    assert len({minplus_plan.shape_of(dtype, LARGE).number for dtype in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_thread_blocks_cover_the_result(dtype):
    shape = minplus_plan.shape_of(dtype, LARGE)
    rows, columns = 3 * BOUND_TILE, 5 * BOUND_TILE
    assert shape.blocks((rows, columns), False) * shape.block**2 == rows * columns
    n = rows // shape.block
    upper = sum(1 for i in range(n) for j in range(i, n))
    assert shape.blocks((rows, rows), True) == upper


@pytest.mark.parametrize("free", [0, 10**6, 10**8, 10**10])
@pytest.mark.parametrize("depth", [1, 512, 16384])
def test_blocks_of_host_matrices_fit(depth, free):
    side = minplus_plan.host_block(depth, 4, free)
    assert side % BOUND_TILE == 0
    if side > BOUND_TILE:
        assert 4 * (2 * side**2 + 4 * side * depth) <= free


@pytest.mark.parametrize("n", [1, 127, 128, 129, 30_000])
def test_memory_of_a_closure(n):
    side = minplus_plan.padded(n)
    assert side % BOUND_TILE == 0
    assert 0 <= side - n < BOUND_TILE
    assert minplus_plan.device_closure_bytes(n, 512, np.int32) == 4 * side * (side + 3 * 512)
