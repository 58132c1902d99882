"""Correlated pairs of sites on a GPU: of a billion correlations, those that reach a limit."""

from __future__ import annotations

import cupy
import numpy as np

from .bitgemm_gpu import pack_range
from .bitgemm_plan import plan_products
from .compile_gpu import load_function
from .devices import Device
from .layout import BLOCK_ROWS, STAGE_WORDS, divide_up, layout_tiles, packed_bytes
from .site_pairs_plan import ROUNDING, SELECT, SELECT_COLUMNS, SELECT_ROWS, blocks_of_rows, serves
from .terms import PRODUCT, Planes
from .variants import (
    MICRO_KERNELS,
    SLOT_BYTES,
    SLOT_OVERHEAD,
    Variant,
    block_order,
    defines_of,
    launch_shape,
    step_table,
)

#: Correlations of one square of sites: 1 GiB of float32.
SQUARE_SITES = 1 << 14
#: Pairs of sites that one launch has room for at first.
PAIRS_CAPACITY = 1 << 24


class R2Squares:
    """Squared correlations of complete sites, square by square, without leaving the device.

    Needs wgmma (compute capability 9.0): its accumulators become correlations where they are.
    """

    def __init__(self, words: cupy.ndarray, n_samples: int, device: Device):
        """words: uint64 device array (n_sites, 2, n_words), variant-major planes u and v."""
        self.n_sites, self.n_samples, self.device = len(words), n_samples, device
        self.plan = plan_products(PRODUCT, True)
        if self.plan.n_slots != 1 or any(map(any, (*self.plan.rows, *self.plan.columns))):
            raise AssertionError("the product of two sites is one output without margins")
        stages = divide_up(words.shape[2], STAGE_WORDS)
        padded = divide_up(self.n_sites, BLOCK_ROWS) * BLOCK_ROWS
        counts = cupy.zeros((self.n_sites, 3), np.uint64)
        self.packed = cupy.empty(
            packed_bytes(self.n_sites, len(self.plan.letters), stages), np.uint8
        )
        letters = self.plan.letters
        self.n_stages = pack_range(
            *(words, 0, words.shape[2], n_samples, letters, self.packed, counts),
            device.capability,
        )
        carriers, homs = counts[:, 0].astype(np.int64), counts[:, 1].astype(np.int64)
        total, squares = carriers + homs, carriers + 3 * homs
        variance = (n_samples * squares - total * total).astype(np.float64)
        scale = cupy.where(variance > 0, 1 / cupy.sqrt(cupy.maximum(variance, 1)), np.nan)
        self.moments = cupy.zeros((padded, 2), np.int32)
        self.moments[: self.n_sites, 0] = total.astype(np.int32)
        self.moments[: self.n_sites, 1] = scale.astype(np.float32).view(np.int32)
        stages = (device.shared_bytes - SLOT_OVERHEAD) // SLOT_BYTES
        variant = Variant("wgmma", (("CLUSTER", 2), ("LOCKSTEP", 4), ("STAGES", stages)))
        self.shape = launch_shape(variant)
        self.kernel = load_function(
            *MICRO_KERNELS["wgmma"],
            (*defines_of(variant, self.plan.passes[0], True), ("R2", 1)),
            device.capability,
        )
        self.kernel.max_dynamic_shared_size_bytes = self.shape.shared_bytes
        self.steps = cupy.asarray(step_table(self.plan.passes[0].steps))

    def compute(self, out: cupy.ndarray, blocks: cupy.ndarray, first_block: int) -> None:
        """Write blocks of 256 x 256 correlations.

        out: float32 (rows, padded n_sites), row 0 standing for block row `first_block`; blocks:
        int32 (n_blocks, 2), numbered over all sites.
        """
        # the kernel addresses rows from the start of all sites
        origin = out.data.ptr - first_block * BLOCK_ROWS * out.shape[1] * 4
        tiles = layout_tiles(self.n_sites)
        self.kernel(
            (self.shape.grid(len(blocks), self.device.multiprocessors),),
            (self.shape.threads,),
            (
                self.packed,
                self.packed,
                np.uint64(origin),
                self.steps,
                blocks,
                np.int32(len(self.plan.passes[0].steps)),
                np.int32(len(blocks)),
                np.int32(1),
                np.int32(self.n_stages),
                np.int32(tiles),
                np.int32(tiles),
                np.int64(out.shape[1]),
                np.int64(0),
                np.int32(1),
                cupy.zeros(1, np.uint32),
                self.moments,
                self.moments,
                np.int32(self.n_samples),
                np.int32(self.plan.scale[0]),
            ),
            shared_mem=self.shape.shared_bytes,
        )

    def pairs(self, ends: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Pairs i < j < ends[i] whose r2, in float32, is at least `least`: sorted int64 arrays."""
        ends_there = cupy.asarray(ends.astype(np.int32))
        padded = divide_up(self.n_sites, BLOCK_ROWS) * BLOCK_ROWS
        per_pass = SQUARE_SITES // BLOCK_ROWS
        every = block_order(padded // BLOCK_ROWS, padded // BLOCK_ROWS, True)
        out = cupy.empty((min(padded, SQUARE_SITES), padded), np.float32)
        defines = (("N_PLANES", 3),)
        select = load_function(SELECT, "select_pairs", defines, self.device.capability)
        capacity = PAIRS_CAPACITY
        found, count = cupy.empty((capacity, 2), np.int32), cupy.zeros(1, np.uint64)
        parts = []
        for first in range(0, padded // BLOCK_ROWS, per_pass):
            row0, row1 = first * BLOCK_ROWS, min((first + per_pass) * BLOCK_ROWS, self.n_sites)
            last = divide_up(int(ends[row0:row1].max()), BLOCK_ROWS)
            chosen = blocks_of_rows(every, range(first, first + per_pass), last)
            self.compute(out, cupy.asarray(chosen), first)
            while True:
                count.fill(0)
                select(
                    (
                        divide_up(self.n_sites, SELECT_COLUMNS),
                        min(1024, divide_up(row1 - row0, SELECT_ROWS)),
                    ),
                    (SELECT_COLUMNS * SELECT_ROWS,),
                    (
                        out,
                        np.int64(padded),
                        np.int32(row1 - row0),
                        np.int32(self.n_sites),
                        np.int32(row0),
                        np.int32(0),
                        ends_there,
                        np.float32(least),
                        found,
                        count,
                        np.uint64(capacity),
                    ),
                )
                n_found = int(count[0])
                if n_found <= capacity:
                    break
                capacity = n_found
                found = cupy.empty((capacity, 2), np.int32)
            parts.append(found[:n_found].get())
        pairs = np.concatenate(parts).astype(np.int64)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return pairs[order, 0], pairs[order, 1]


def r2_candidates(
    planes: Planes, ends: np.ndarray, least: float, device: Device
) -> tuple[np.ndarray, np.ndarray] | None:
    """Pairs of variant-major planes within their windows that may reach `least`.

    float32 rounding is allowed for: every pair with r2 >= least is among them, with some just
    below. None where this device or data need the general path.
    """
    if not serves(device, planes):
        return None
    squares = R2Squares(cupy.asarray(np.ascontiguousarray(planes.words)), planes.n_sites, device)
    return squares.pairs(ends, least - ROUNDING)
