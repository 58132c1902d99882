"""Micro-kernels of the bit-GEMM with their tile parameters, and how a launch is cut up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .layout import (
    BLOCK_ROWS,
    PACKED,
    STAGE_BITS,
    STEP,
    TILE_BYTES,
    TURN_LINES,
    TURN_SIDE,
    KernelSource,
    Pass,
    Step,
    divide_up,
)
from .terms import PLANE_LETTERS

#: Samples of one thread block of `pack_planes`, stages that it walks, letters whose bits it counts.
PACK_ROWS, PACK_STAGES, COUNTED_LETTERS = 32, 16, 3
#: What one thread block of wgmma (and the wider one of mma) keeps in shared memory for one stage,
#: and what it needs besides its slots (alignment, barriers).
SLOT_BYTES, SLOT_OVERHEAD = 3 * TILE_BYTES, 1024 + 256
#: `Moments` of bitgemm_wgmma.cu: sum and scale of a site.
MOMENTS_BYTES = np.dtype([("sum", np.int32), ("scale", np.float32)]).itemsize
#: The file and the name of each micro-kernel of `devices.KERNELS`.
MICRO_KERNELS = {
    "wgmma": (
        KernelSource.of("engine/bitgemm_wgmma", **PACKED, MOMENTS_BYTES=MOMENTS_BYTES),
        "bitgemm_wgmma",
    ),
    "mma": (KernelSource.of("engine/bitgemm_mma", **PACKED), "bitgemm_mma"),
    "popc": (KernelSource.of("engine/bitgemm_popc", **PACKED), "bitgemm_popc"),
}
#: Packs stored planes and finishes sums.
PACK_FINISH = KernelSource.of(
    "engine/pack_finish",
    **PACKED,
    PACK_ROWS=PACK_ROWS,
    PACK_STAGES=PACK_STAGES,
    COUNTED_LETTERS=COUNTED_LETTERS,
    TURN_SIDE=TURN_SIDE,
    TURN_LINES=TURN_LINES,
    **{f"LETTER_{letter.upper()}": i for i, letter in enumerate(PLANE_LETTERS)},
)
#: Rows of 256 x 256 blocks walked together, so that their planes stay in L2.
BLOCK_GROUP = 8
#: What adding one output of a block to global memory costs, in stages of products
#: (tests/bench/bench_bitgemm_gpu.py --sweep). Only decides how far the site axis is cut.
EMIT_STAGES = 12
#: Most runs that the stages of one range are cut into.
MAX_SPLITS = 256
#: Largest samples and stages measured: beyond them only the time of the measurement changes.
MOST_SAMPLES, MOST_STAGES = 16384, 1024
#: Sides of the square problems that are measured, each with the largest side that it decides for.
#: A job measures nothing larger than itself, up to half of MOST_SAMPLES.
MEASURED_SIDES = ((1024, 2048), (4096, 8192), (MOST_SAMPLES, MOST_SAMPLES))


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
class ShapeClass:
    """Problems that share one choice: sizes rounded up to powers of two, and the terms.

    `samples_a`, `samples_b` and `stages` (of 1 024 sites) are capped at what is measured.
    """

    samples_a: int
    samples_b: int
    stages: int
    symmetric: bool
    complete: bool

    @classmethod
    def of(cls, m: int, n: int, n_sites: int, symmetric: bool, complete: bool) -> ShapeClass:
        def up(value: int, least: int, most: int) -> int:
            return min(most, max(least, 1 << (value - 1).bit_length()))

        return cls(
            up(m, BLOCK_ROWS, MOST_SAMPLES),
            up(n, BLOCK_ROWS, MOST_SAMPLES),
            up(divide_up(n_sites, STAGE_BITS), 1, MOST_STAGES),
            symmetric,
            complete,
        )

    @property
    def measured(self) -> ShapeClass:
        """The class whose measurement decides for this one.

        What variants differ by is how many blocks of the result there are to share out, so that
        count alone is kept: few classes, which `usual.tune_usual` can measure in advance.
        """
        pairs = self.samples_a * self.samples_b // (2 if self.symmetric else 1)
        sides = (side for side, largest in MEASURED_SIDES if pairs <= largest**2)
        side = next(sides, MOST_SAMPLES)
        return ShapeClass(side, side, MOST_STAGES, False, self.complete)


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
