"""Tiles of the min-plus kernels (kernels/engine/minplus.cu), and blocks that matrices pass in."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np

from .layout import TURN_SIDE, KernelSource, divide_up
from .minplus import BASE, INFINITY_INT32, INFINITY_INT64

#: Rows and columns of the tiles, and length of the runs, that bounds speak of.
BOUND_TILE, BOUND_RUN = 128, 32
#: Threads along each side of a thread block.
THREAD_SIDE = 16
#: Code of each number type.
NUMBERS = {"int32": 0, "float32": 1, "float64": 2, "int64": 3}
MINPLUS = KernelSource.of(
    "engine/minplus",
    BOUND_TILE=BOUND_TILE,
    BOUND_RUN=BOUND_RUN,
    THREAD_SIDE=THREAD_SIDE,
    TURN_SIDE=TURN_SIDE,
    BASE=BASE,
    **{f"NUMBER_{name.upper()}": code for name, code in NUMBERS.items()},
    LARGEST_INT32=int(INFINITY_INT32),
    LARGEST_INT64=int(INFINITY_INT64),
)
#: Shared memory that the driver takes of each resident thread block.
RESERVED_BYTES = 1024
#: Threads of a thread block.
THREADS = THREAD_SIDE**2
#: Register tile (TM = TN), rows of k in a slot and blocks a multiprocessor, by number type: the
#: fastest of 32 variants on an H200 (14.9, 14.4 and 4.7 T op/s; tests/bench/bench_minplus_gpu.py).
SHAPES = {"int32": (8, 32, 2), "float32": (8, 32, 2), "float64": (4, 16, 2), "int64": (4, 16, 2)}
SLOTS = 3
#: Slots and their rows where shared memory is less, and most runs of k that a thread block lists.
FEWER_SLOTS, FEWER_ROWS, MAX_RUNS = 2, (16, 8), 4096
#: What a thread block declares besides its slots: the list of runs and its length.
STATIC_BYTES = 2 * MAX_RUNS + 16


@dataclass(frozen=True)
class MinplusTiles:
    """Tiles of one number type.

    Attributes
    ----------
    number : int
        NUMBER in the kernel.
    side : int
        Rows and columns of the registers of one thread.
    depth : int
        Rows of k in one slot of shared memory.
    resident : int
        Thread blocks of one multiprocessor.
    itemsize : int
        Bytes.
    slots : int
        Of the pipeline.
    """

    number: int
    side: int
    depth: int
    resident: int
    itemsize: int
    slots: int = SLOTS

    @property
    def block(self) -> int:
        """Rows and columns of the result of one thread block."""
        return THREAD_SIDE * self.side

    @property
    def shared_bytes(self) -> int:
        """Slots of `depth` rows of both operands, for which a launch asks."""
        return self.slots * self.depth * 2 * self.block * self.itemsize

    @property
    def defines(self) -> tuple[tuple[str, int], ...]:
        """What the kernels are compiled with."""
        return (
            ("DEPTH", self.depth),
            ("MAX_RUNS", MAX_RUNS),
            ("NUMBER", self.number),
            ("RESIDENT", self.resident),
            ("SLOTS", self.slots),
            ("TM", self.side),
            ("TN", self.side),
        )

    def blocks(self, shape: tuple[int, int], symmetric: bool) -> int:
        """Thread blocks for a padded result; those of the upper triangle where `symmetric`."""
        rows, columns = shape[0] // self.block, shape[1] // self.block
        return rows * (rows + 1) // 2 if symmetric else rows * columns


@functools.cache  # names of dtypes are slow, and small kernels are many
def shape_of(dtype: np.dtype, shared_bytes: int) -> MinplusTiles:
    """The tiles for a number type on a device with so much shared memory for a thread block.

    Those measured, if one thread block of them fits; else those with the most rows in a slot of
    which as many thread blocks fit as share a multiprocessor.
    """
    dtype = np.dtype(dtype)
    shape = MinplusTiles(NUMBERS[dtype.name], *SHAPES[dtype.name], dtype.itemsize)
    if shape.shared_bytes + STATIC_BYTES <= shared_bytes:
        return shape
    for rows in FEWER_ROWS:
        shape = dataclasses.replace(shape, depth=rows, slots=FEWER_SLOTS)
        block = shape.shared_bytes + STATIC_BYTES + RESERVED_BYTES
        if shape.resident * block <= shared_bytes + RESERVED_BYTES:
            break
    return shape


def host_block(depth: int, itemsize: int, free_bytes: int) -> int:
    """Side of the blocks in which a result in host memory passes through the device.

    A block, its padded copy, and both operands of its rows and columns share `free_bytes`.
    """
    side = int(np.sqrt(depth**2 + free_bytes / (2 * itemsize)) - depth)
    return max(BOUND_TILE, side // BOUND_TILE * BOUND_TILE)


def padded(n: int) -> int:
    """Rows of a square matrix of n samples in whole tiles."""
    return divide_up(n, BOUND_TILE) * BOUND_TILE


def device_closure_bytes(n: int, panel: int, dtype: np.dtype) -> int:
    """Device memory of a closure of n samples: the matrix and three panels."""
    side = padded(n)
    return (side * side + 3 * panel * side) * np.dtype(dtype).itemsize
