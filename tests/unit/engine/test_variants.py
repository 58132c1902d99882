"""How a launch of the bit-GEMM is divided: every block of the result once, the device filled."""

from __future__ import annotations

import numpy as np
import pytest
from support.launches import AMPERE, HOPPER, TURING

from popdesic.engine import bitgemm_plan, layout, tune_plan, variants
from popdesic.engine.devices import supported_kernels
from popdesic.engine.terms import SQUARED


def test_blocks_cover_the_triangle_once():
    for rows in (1, 3, 8, 9, 20):
        blocks = list(map(tuple, variants.block_order(rows, rows, True).tolist()))
        assert sorted(blocks) == [(i, j) for i in range(rows) for j in range(i, rows)]
        blocks = list(map(tuple, variants.block_order(rows, 5, False).tolist()))
        assert sorted(blocks) == [(i, j) for i in range(rows) for j in range(5)]


@pytest.mark.parametrize(
    ("device", "kernels"),
    [(HOPPER, ("wgmma", "mma", "popc")), (AMPERE, ("mma", "popc")), (TURING, ("popc",))],
)
def test_variants_fit_their_device(device, kernels):
    assert supported_kernels(device) == kernels
    found = tune_plan.variants_to_measure(device)
    assert {variant.kernel for variant in found} == set(kernels)
    for variant in found:
        shape = variants.launch_shape(variant)
        assert shape.shared_bytes * shape.resident <= device.shared_bytes
        assert shape.threads * shape.resident <= 1024
        assert shape.grid(10**6, device.multiprocessors) % shape.parts == 0
        few = shape.grid(3, device.multiprocessors)
        assert few == 3 * shape.parts


def test_persistent_grids_are_no_larger_than_the_device():
    for variant in tune_plan.variants_to_measure(HOPPER):
        shape = variants.launch_shape(variant)
        resident = HOPPER.multiprocessors * shape.resident
        assert (shape.grid(10**6, HOPPER.multiprocessors) <= resident) == shape.persistent


def test_definitions_describe_the_pass():
    popc = tune_plan.variants_to_measure(TURING)[0]
    (one,) = bitgemm_plan.plan_xor(SQUARED, True).passes
    given = dict(variants.defines_of(popc, one, True))
    assert given.items() >= {"FORM_XOR": 1, "MASKED": 0, "W0": 0, "W1": 1, "W2": 4}.items()
    assert dict(variants.defines_of(popc, one, False))["MASKED"] == 1
    (one,) = bitgemm_plan.plan_products(SQUARED, True).passes
    assert dict(variants.defines_of(popc, one, True))["FORM_XOR"] == 0
    mma = tune_plan.variants_to_measure(AMPERE)[0]
    given = dict(variants.defines_of(mma, one, True))
    shape = variants.launch_shape(mma)
    assert given.items() >= dict(mma.parameters).items()
    assert (given["LAUNCH_THREADS"], given["LAUNCH_PARTS"]) == (shape.threads, shape.parts)
    assert given["LAUNCH_SHARED"] == shape.shared_bytes


@pytest.mark.parametrize(("n_blocks", "n_stages"), [(1, 1), (1, 1000), (7, 300), (500, 40)])
def test_splits_fill_the_device(n_blocks, n_stages):
    """The site axis is split while blocks of the result are few, not where they fill the device."""
    splits = variants.choose_splits(n_blocks, 66, n_stages, 3, 1)
    assert 1 <= splits <= min(n_stages, variants.MAX_SPLITS)
    alone = variants.divide_up(n_blocks, 66) * (n_stages * 3 + variants.EMIT_STAGES)
    chosen = variants.divide_up(n_blocks * splits, 66)
    chosen *= variants.divide_up(n_stages, splits) * 3 + variants.EMIT_STAGES
    assert chosen <= alone


def test_a_step_has_five_integers():
    plan = bitgemm_plan.plan_products(SQUARED, True)
    table = variants.step_table(plan.passes[0].steps)
    assert table.dtype == np.int32
    assert table.shape == (plan.n_products, 5)
    assert table[-1, 3] == plan.n_slots - 1


@pytest.mark.parametrize("n", [1, 128, 129, 256, 257, 1000])
def test_packed_planes_are_padded_to_whole_blocks(n):
    tiles = layout.layout_tiles(n)
    assert tiles % 2 == 0
    assert 0 <= tiles * layout.TILE_ROWS - n < layout.BLOCK_ROWS
    assert layout.packed_bytes(n, 3, 5) == 3 * 5 * tiles * layout.TILE_BYTES
