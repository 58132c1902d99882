"""Compile the CUDA sources in `kernels/` and launch them on packed planes."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass

import cupy
import numpy as np

from ...io.errors import UserError
from ...io.places import KERNEL_FOLDER
from ..base import PLANE_LETTERS
from .plans import (
    BLOCK_ROWS,
    PACK_ROWS,
    PACK_STAGES,
    SLOT_BYTES,
    SLOT_OVERHEAD,
    STAGE_WORDS,
    TILE_BYTES,
    Device,
    Plan,
    Variant,
    choose_splits,
    divide_up,
    layout_tiles,
    step_table,
)

_SCAN_HEADERS = ("epistasis/cells.cuh", "epistasis/parts.cuh", "epistasis/scan.cuh")
_WGMMA_HEADERS = ("sm90.cuh", *_SCAN_HEADERS, "epistasis/sm90_mainloop.cuh")
#: The file of each micro-kernel of `plans.KERNELS`.
MICRO_KERNELS = {
    "wgmma": "bitgemm/sm90_wgmma",
    "mma": "bitgemm/sm80_mma",
    "popc": "bitgemm/simt_popc",
}
#: What stands between common.cuh and a kernel file that needs it.
HEADERS = {
    "bitgemm/sm90_wgmma": ("sm90.cuh",),
    "epistasis/compact_score": ("epistasis/cells.cuh", "epistasis/parts.cuh"),
    "epistasis/sm90_deep": _WGMMA_HEADERS,
    "epistasis/sm90_fused": (*_WGMMA_HEADERS, "epistasis/epilogue.cuh"),
    "epistasis/multistage": (*_SCAN_HEADERS, "epistasis/epilogue.cuh"),
}


def read_source(name: str) -> str:
    """Text of one kernel file behind what it needs (CuPy's cache does not see #include).

    Raises
    ------
    UserError
        The folder of kernels is not where the repository has it.
    """
    try:
        return "\n".join(
            (KERNEL_FOLDER / file).read_text()
            for file in ("common.cuh", *HEADERS.get(name, ()), f"{name}.cu")
        )
    except OSError as reason:
        raise UserError(
            f"{reason.filename}: this CUDA source cannot be read ({reason.strerror}); run Popdesic "
            f"from a whole copy of its repository, of which the folder kernels/ is a part."
        ) from None


@functools.cache
def source_digest() -> str:
    """Changes whenever a kernel changes: choices measured before are then measured again."""
    names = ("bitgemm/pack_finish", "bitgemm/rare_sites", *MICRO_KERNELS.values())
    return hashlib.sha256("".join(map(read_source, names)).encode()).hexdigest()[:16]


@functools.cache
def load_function(
    file: str, function: str, defines: tuple[tuple[str, int], ...], capability: int
) -> cupy.RawKernel:
    """Compile one kernel (NVRTC, then CuPy's cache on disk) for the current device."""
    options = ["-std=c++17", *(f"-D{name}={value}" for name, value in defines)]
    if capability == 90:
        options.append("-arch=sm_90a")
    module = cupy.RawModule(code=read_source(file), options=tuple(options))
    return module.get_function(function)


def current_device() -> Device:
    """The device that the calling thread uses."""
    return _describe_device(cupy.cuda.runtime.getDevice())


@functools.cache  # asking takes a millisecond
def _describe_device(index: int) -> Device:
    found = cupy.cuda.runtime.getDeviceProperties(index)
    return Device(
        index,
        found["name"].decode(),
        found["major"] * 10 + found["minor"],
        found["multiProcessorCount"],
        found.get("sharedMemPerBlockOptin") or found["sharedMemPerBlock"],
        cupy.cuda.runtime.driverGetVersion(),
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


def launch(
    variant: Variant, device: Device, plan: Plan, work: Launch, splits: int | None = None
) -> None:
    """Add the products of one site range to the accumulators, on the current stream."""
    for one in plan.passes:
        steps = cupy.asarray(step_table(one.steps))
        defines = dict(variant.parameters)
        if variant.kernel == "popc":
            w0, w1, w2 = one.xor or (0, 0, 0)
            xor, masked = int(one.xor is not None), int(one.xor is not None and not plan.complete)
            defines |= {"FORM_XOR": xor, "MASKED": masked, "W0": w0, "W1": w1, "W2": w2}
            shared, threads, parts, resident = 0, 256, 4, defines["BLOCKS_PER_SM"]
        elif variant.kernel == "mma":
            width = defines["B_TILES"]
            shared = defines["STAGES"] * (1 + width) * TILE_BYTES + SLOT_OVERHEAD
            threads, parts, resident = 128 * width, 4 // width, 3 - width
        else:
            shared = defines["STAGES"] * SLOT_BYTES + SLOT_OVERHEAD
            threads, parts, resident = 384, 2, 1
        function = load_function(
            MICRO_KERNELS[variant.kernel],
            f"bitgemm_{variant.kernel}",
            tuple(sorted(defines.items())),
            device.capability,
        )
        if shared:
            function.max_dynamic_shared_size_bytes = shared
        n_blocks = len(work.blocks)
        at_once = device.multiprocessors * resident
        emits = sum(step.slot >= 0 for step in one.steps)
        n_splits = splits or choose_splits(
            n_blocks, max(1, at_once // parts), work.n_stages, len(one.steps), emits
        )
        grid = n_blocks * n_splits * parts
        if variant.kernel != "popc":
            grid = min(grid, at_once // parts * parts)
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
        if variant.kernel != "popc":
            arguments.append(cupy.zeros(1, np.uint32))
        function((grid,), (threads,), tuple(arguments), shared_mem=shared)


def pack_planes(
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
    function = load_function("bitgemm/pack_finish", "pack_planes", (), capability)
    function(
        (padded // PACK_ROWS, divide_up(n_stages, PACK_STAGES)),
        (256,),
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
    function = load_function("bitgemm/pack_finish", "finish_rows", (), capability)
    function(
        (divide_up(n_columns, 32), divide_up(n_rows, 32)),
        (256,),
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
