"""Tiles of the min-plus kernels, and blocks of matrices larger than the device."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.engine.gpu import minplus_plans
from popdesic.engine.gpu.layout import BOUND_RUN, BOUND_TILE, NUMBERS
from popdesic.engine.gpu.minplus_plans import SHAPES

DTYPES = tuple(SHAPES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_divide_the_tiles_of_the_bounds(dtype):
    shape = minplus_plans.shape_of(dtype)
    assert BOUND_TILE % shape.block == 0
    assert BOUND_RUN % shape.depth == 0
    assert shape.itemsize == np.dtype(dtype).itemsize
    assert shape.shared_bytes * shape.resident <= 232448
    assert dict(shape.defines)["NUMBER"] == NUMBERS[dtype]


def test_every_number_type_has_its_own_code():
    assert len({minplus_plans.shape_of(dtype).number for dtype in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_thread_blocks_cover_the_result(dtype):
    shape = minplus_plans.shape_of(dtype)
    rows, columns = 3 * BOUND_TILE, 5 * BOUND_TILE
    assert shape.blocks((rows, columns), False) * shape.block**2 == rows * columns
    n = rows // shape.block
    upper = sum(1 for i in range(n) for j in range(i, n))
    assert shape.blocks((rows, rows), True) == upper


@pytest.mark.parametrize("free", [0, 10**6, 10**8, 10**10])
@pytest.mark.parametrize("depth", [1, 512, 16384])
def test_blocks_of_host_matrices_fit(depth, free):
    side = minplus_plans.host_block(depth, 4, free)
    assert side % BOUND_TILE == 0
    if side > BOUND_TILE:
        assert 4 * (2 * side**2 + 4 * side * depth) <= free


@pytest.mark.parametrize("n", [1, 127, 128, 129, 30_000])
def test_memory_of_a_closure(n):
    side = minplus_plans.padded(n)
    assert side % BOUND_TILE == 0
    assert 0 <= side - n < BOUND_TILE
    assert minplus_plans.closure_bytes(n, 512, np.int32) == 4 * side * (side + 3 * 512)
