"""Launch the bit-GEMM kernels (`kernels/engine/`) on packed planes."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from .bitgemm_plan import Plan
from .compile_gpu import load_function
from .devices import Device
from .layout import (
    BLOCK_ROWS,
    CHUNK_BYTES,
    STAGE_BITS,
    STAGE_WORDS,
    TURN_LINES,
    TURN_SIDE,
    Pass,
    divide_up,
    layout_tiles,
)
from .terms import PLANE_LETTERS
from .variants import (
    MICRO_KERNELS,
    PACK_FINISH,
    PACK_ROWS,
    PACK_STAGES,
    Variant,
    choose_splits,
    defines_of,
    launch_shape,
    step_table,
)


@dataclass(frozen=True)
class Launch:
    """One problem on the device: packed operands, its blocks, its accumulators.

    `a`, `b` are packed planes (uint8, kernels/common.cuh) of `a_tiles`, `b_tiles` tiles and
    `n_stages` stages; `acc` int32 (n_slots, padded rows of a, padded rows of b); `blocks` int32
    (n_blocks, 2).
    """

    a: cupy.ndarray
    b: cupy.ndarray
    acc: cupy.ndarray
    blocks: cupy.ndarray
    n_stages: int
    symmetric: bool


def load_variant(variant: Variant, one: Pass, complete: bool, device: Device) -> cupy.RawKernel:
    """The kernel of a variant for one pass of a plan."""
    return load_function(
        *MICRO_KERNELS[variant.kernel],
        defines_of(variant, one, complete),
        device.capability,
    )


def launch(
    variant: Variant, device: Device, plan: Plan, work: Launch, splits: int | None = None
) -> None:
    """Add the products of one site range to the accumulators, on the current stream."""
    shape = launch_shape(variant)
    for one in plan.passes:
        steps = cupy.asarray(step_table(one.steps))
        function = load_variant(variant, one, plan.complete, device)
        if shape.shared_bytes:
            function.max_dynamic_shared_size_bytes = shape.shared_bytes
        n_blocks = len(work.blocks)
        at_once = shape.at_once(device.multiprocessors)
        emits = sum(step.slot >= 0 for step in one.steps)
        n_splits = splits or choose_splits(n_blocks, at_once, work.n_stages, len(one.steps), emits)
        arguments = [
            work.a,
            work.b,
            work.acc,
            steps,
            work.blocks,
            np.int32(len(one.steps)),
            np.int32(n_blocks),
            np.int32(n_splits),
            np.int32(work.n_stages),
            np.int32(layout_tiles(work.acc.shape[1])),
            np.int32(layout_tiles(work.acc.shape[2])),
            np.int64(work.acc.shape[2]),
            np.int64(work.acc.shape[1] * work.acc.shape[2]),
            np.int32(work.symmetric),
        ]
        if shape.persistent:
            arguments.append(cupy.zeros(1, np.uint32))
        function(
            (shape.grid(n_blocks * n_splits, device.multiprocessors),),
            (shape.threads,),
            tuple(arguments),
            shared_mem=shape.shared_bytes,
        )


def pack_range(
    words: cupy.ndarray,
    first_word: int,
    n_words: int,
    n_sites: int,
    letters: tuple[str, ...],
    packed: cupy.ndarray,
    counts: cupy.ndarray,
    capability: int,
) -> int:
    """Pack one site range of stored planes for the products, on the current stream.

    Parameters
    ----------
    words : uint64 device array, (n_samples, n_planes, row_words)
    first_word, n_words, n_sites : int
        The range: its words and how many of their bits are sites.
    letters : letters of the planes to make, in order.
    packed : uint8 device array, at least `packed_bytes` long
    counts : uint64 device array, (n_samples, 3)
        The number of set bits of u, v and c of each sample is added to it.

    Returns
    -------
    int : the number of stages packed.
    """
    n_samples, n_planes, row_words = words.shape
    n_stages = divide_up(n_words, STAGE_WORDS)
    padded = divide_up(n_samples, BLOCK_ROWS) * BLOCK_ROWS
    codes = cupy.asarray(np.array([PLANE_LETTERS.index(letter) for letter in letters], np.int32))
    function = load_function(PACK_FINISH, "pack_planes", (), capability)
    function(
        (padded // PACK_ROWS, divide_up(n_stages, PACK_STAGES)),
        (PACK_ROWS * STAGE_BITS // 8 // CHUNK_BYTES,),
        (
            words,
            packed,
            counts,
            codes,
            np.int32(len(letters)),
            np.int32(n_samples),
            np.int32(n_planes),
            np.int64(row_words),
            np.int64(first_word),
            np.int64(n_words),
            np.int64(n_sites),
            np.int32(layout_tiles(n_samples)),
            np.int32(n_stages),
        ),
    )
    return n_stages


def finish_rows(
    acc: cupy.ndarray | None,
    total: cupy.ndarray | None,
    row_term: cupy.ndarray,
    column_term: cupy.ndarray,
    out: cupy.ndarray,
    scale: int,
    first_row: int,
    columns_padded: int,
    symmetric: bool,
    capability: int,
) -> None:
    """Rows ``first_row ...`` of one output, ``(n_rows, n)`` int64, from its accumulators."""
    n_rows, n_columns = out.shape
    null = np.uint64(0)
    function = load_function(PACK_FINISH, "finish_rows", (), capability)
    function(
        (divide_up(n_columns, TURN_SIDE), divide_up(n_rows, TURN_SIDE)),
        (TURN_SIDE * TURN_LINES,),
        (
            null if acc is None else acc,
            null if total is None else total,
            row_term,
            column_term,
            out,
            np.int64(scale),
            np.int32(first_row),
            np.int32(n_rows),
            np.int32(n_columns),
            np.int64(columns_padded),
            np.int32(symmetric),
        ),
    )
