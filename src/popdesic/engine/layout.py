"""What Python and the CUDA sources in `kernels/` have in common, as far as several rooms share it.

Constants reach the kernels as definitions of the compiler (`-D`), stated once: a `KernelSource`
names a kernel file and the constants of Python that it is compiled with, and lies beside them in
the room that launches it. A kernel that needs one stops with `#error` where it is missing. Records
that both sides write are asserted by their size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

INT32_MAX = 2**31 - 1


class KernelSource(NamedTuple):
    """A kernel file and the constants that all its launches are compiled with.

    Attributes
    ----------
    file : str
        Path below `kernels/` without its suffix, such as ``engine/minplus``.
    defines : tuple of (str, int)
    """

    file: str
    defines: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, file: str, **defines: int) -> KernelSource:
        return cls(file, tuple(defines.items()))

    def options(self, defines: tuple[tuple[str, int], ...] = ()) -> tuple[str, ...]:
        """Options of the compiler: its own constants, then those of a launch."""
        return ("-std=c++17", *(f"-D{name}={value}" for name, value in (*self.defines, *defines)))


# --- packed planes (kernels/common.cuh)

#: Samples of one tile, and of one block of a result: a tile twice.
TILE_ROWS, BLOCK_ROWS = 128, 256
#: Sites of one stage of depth, and bytes of a row that move together.
STAGE_BITS, CHUNK_BYTES = 1024, 16
STAGE_WORDS = STAGE_BITS // 64
TILE_BYTES = TILE_ROWS * STAGE_BITS // 8
#: `Step` of kernels/common.cuh.
STEP = np.dtype([(n, np.int32) for n in ("plane_a", "plane_b", "multiplier", "slot", "weight")])
STEP_BYTES = STEP.itemsize
#: What a file that includes common.cuh is compiled with.
PACKED = {
    "TILE_ROWS": TILE_ROWS,
    "BLOCK_ROWS": BLOCK_ROWS,
    "STAGE_BITS": STAGE_BITS,
    "CHUNK_BYTES": CHUNK_BYTES,
    "STEP_BYTES": STEP_BYTES,
}
#: Sides of the squares that are transposed in shared memory, and rows that move together.
TURN_SIDE, TURN_LINES = 32, 8


@dataclass(frozen=True)
class Step:
    """accumulators = accumulators * multiplier + popcount(a & b); see `Step` in common.cuh."""

    plane_a: int
    plane_b: int
    multiplier: int
    slot: int = -1
    weight: int = 1


@dataclass(frozen=True)
class Pass:
    """One launch: a program of steps, or in `xor` form the three weights (w0, w1, w2)."""

    steps: tuple[Step, ...]
    xor: tuple[int, int, int] | None = None


def divide_up(value: int, step: int) -> int:
    return -(-value // step)


def layout_tiles(n_samples: int) -> int:
    """Tiles that some samples take, in whole blocks."""
    return divide_up(n_samples, BLOCK_ROWS) * (BLOCK_ROWS // TILE_ROWS)


def packed_bytes(n_samples: int, n_letters: int, n_stages: int) -> int:
    """Size of packed planes."""
    return n_letters * n_stages * layout_tiles(n_samples) * TILE_BYTES
