"""Micro-kernels of the bit-GEMM with their tile parameters, and how a launch is cut up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .bitgemm_plan import Pass, Step
from .layout import SLOT_BYTES, SLOT_OVERHEAD, STEP, TILE_BYTES, divide_up

#: The file of each micro-kernel of `devices.KERNELS`.
MICRO_KERNELS = {
    "wgmma": "bitgemm/sm90_wgmma",
    "mma": "bitgemm/sm80_mma",
    "popc": "bitgemm/simt_popc",
}
#: Rows of 256 x 256 blocks walked together, so that their planes stay in L2.
BLOCK_GROUP = 8
#: What adding one output of a block to global memory costs, in stages of products
#: (tests/bench/bench_bitgemm_gpu.py --sweep). Only decides how far the site axis is cut.
EMIT_STAGES = 12
#: Most runs that the stages of one range are cut into.
MAX_SPLITS = 256


@dataclass(frozen=True)
class Variant:
    """One micro-kernel with the tile parameters that it is compiled for."""

    kernel: str
    parameters: tuple[tuple[str, int], ...]

    @property
    def label(self) -> str:
        return " ".join([self.kernel, *(f"{name}={value}" for name, value in self.parameters)])

    @property
    def xor(self) -> bool:
        """Whether it prefers the XOR form of a plan."""
        return self.kernel == "popc"


@dataclass(frozen=True)
class LaunchShape:
    """How a variant fills a device.

    Attributes
    ----------
    threads, shared_bytes : int
        Of one thread block.
    parts : int
        Thread blocks that make one block (256 x 256) of the result.
    resident : int
        Thread blocks of one multiprocessor.
    persistent : bool
        The grid is no larger than what is resident; thread blocks walk over the work.
    """

    threads: int
    shared_bytes: int
    parts: int
    resident: int
    persistent: bool

    def at_once(self, multiprocessors: int) -> int:
        """Blocks of the result that the device works on at a time."""
        return max(1, multiprocessors * self.resident // self.parts)

    def grid(self, n_items: int, multiprocessors: int) -> int:
        """Thread blocks for some items (blocks of the result by splits of the site axis)."""
        most = multiprocessors * self.resident // self.parts * self.parts
        return min(n_items * self.parts, most) if self.persistent else n_items * self.parts


def launch_shape(variant: Variant) -> LaunchShape:
    """The launch shape of a variant, from its tile parameters."""
    values = dict(variant.parameters)
    if variant.kernel == "popc":
        return LaunchShape(256, 0, 4, values["BLOCKS_PER_SM"], False)
    if variant.kernel == "mma":
        width = values["B_TILES"]
        shared = values["STAGES"] * (1 + width) * TILE_BYTES + SLOT_OVERHEAD
        return LaunchShape(128 * width, shared, 4 // width, 3 - width, True)
    return LaunchShape(384, values["STAGES"] * SLOT_BYTES + SLOT_OVERHEAD, 2, 1, True)


def defines_of(variant: Variant, one: Pass, complete: bool) -> tuple[tuple[str, int], ...]:
    """What a variant's kernel is compiled with for one pass of a plan."""
    defines, shape = dict(variant.parameters), launch_shape(variant)
    if variant.kernel == "popc":
        w0, w1, w2 = one.xor or (0, 0, 0)
        xor, masked = int(one.xor is not None), int(one.xor is not None and not complete)
        defines |= {"FORM_XOR": xor, "MASKED": masked, "W0": w0, "W1": w1, "W2": w2}
    if variant.kernel == "mma":
        defines["BLOCKS_PER_SM"] = shape.resident
    defines |= {"LAUNCH_THREADS": shape.threads, "LAUNCH_PARTS": shape.parts}
    defines["LAUNCH_SHARED"] = shape.shared_bytes
    return tuple(sorted(defines.items()))


def block_order(block_rows: int, block_columns: int, symmetric: bool) -> np.ndarray:
    """The 256 x 256 blocks of a result in the order in which they are worked on.

    Returns
    -------
    int32 array, (n_blocks, 2)
        Row and column of each block, grouped so that blocks that are worked on together share
        rows and columns. Where `symmetric`, the blocks on and above the diagonal.
    """
    return np.array(
        [
            (row, column)
            for first in range(0, block_rows, BLOCK_GROUP)
            for column in range(first if symmetric else 0, block_columns)
            for row in range(first, min(first + BLOCK_GROUP, block_rows))
            if not symmetric or row <= column
        ],
        dtype=np.int32,
    ).reshape(-1, 2)


def choose_splits(n_blocks: int, parallel: int, n_stages: int, n_steps: int, n_emits: int) -> int:
    """How many runs the stages of a range are cut into, so that the device is evenly full.

    Parameters
    ----------
    n_blocks, parallel : int
        Blocks of the result; blocks that the device works on at a time.
    n_stages, n_steps, n_emits : int
        Stages of the range, products of each, outputs that each run adds to global memory.
    """
    candidates = range(1, max(2, min(MAX_SPLITS, n_stages) + 1))
    return min(
        candidates,
        key=lambda splits: (
            divide_up(n_blocks * splits, parallel)
            * (divide_up(n_stages, splits) * n_steps + EMIT_STAGES * n_emits)
        ),
    )


def step_table(steps: tuple[Step, ...]) -> np.ndarray:
    """The steps of one pass as the kernels read them: int32 (n_steps, 5)."""
    rows = [(s.plane_a, s.plane_b, s.multiplier, s.slot, s.weight) for s in steps]
    return np.array(rows, STEP).view(np.int32).reshape(len(rows), -1)
