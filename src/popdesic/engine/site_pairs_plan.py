"""Sizes and host arithmetic of correlations of sites on a GPU (kernels/engine/)."""

from __future__ import annotations

import numpy as np

from .bitgemm_plan import plan_products
from .devices import Device, supported_kernels
from .layout import BLOCK_ROWS, STAGE_WORDS, KernelSource, divide_up, packed_bytes
from .terms import PRODUCT, Planes
from .tile_plan import Bounds

#: Columns and rows that a thread block of `select_pairs` looks at together.
SELECT_COLUMNS, SELECT_ROWS = 32, 8
SELECT = KernelSource.of(
    "engine/site_pairs", SELECT_COLUMNS=SELECT_COLUMNS, SELECT_ROWS=SELECT_ROWS
)
#: Warps that share the partners of a site in `band_r2`.
BAND_WARPS = 8
BAND = KernelSource.of("engine/band", BAND_WARPS=BAND_WARPS)
#: Sites a side of one square of correlations.
SQUARE_SITES = 1 << 14
#: Pairs of sites that one launch has room for at first.
PAIRS_CAPACITY = 1 << 24
#: A thread block of `select_correlated`, and the rows that it walks over.
SUM_THREADS, SUM_ROWS = 256, 64
#: What it writes of a pair.
CORRELATED = np.dtype([("row", np.int32), ("column", np.int32), ("r2", np.float64)])
SELECT_SUMS = KernelSource.of(
    "engine/correlated",
    SUM_THREADS=SUM_THREADS,
    SUM_ROWS=SUM_ROWS,
    CORRELATED_BYTES=CORRELATED.itemsize,
)
#: Fewest sites a side of a tile of sums, however narrow the windows are.
LEAST_SIDE = 1 << 11
#: By how much float32 may miss an r2. Of exact integers, the covariance is rounded once, either
#: scale once, and three products: at most 1.2e-6, for any number of samples.
ROUNDING = 1e-5
#: Samples for which sums of one pair fit 31 bits: four for each.
MOST_SAMPLES = (1 << 31) // 4 - 1


def serves(device: Device, planes: Planes, free_bytes: int) -> bool:
    """Whether the fused correlations are made for this device and these sites, and fit there."""
    return (
        "wgmma" in supported_kernels(device)
        and planes.complete
        and planes.n_sites <= MOST_SAMPLES
        and fused_bytes(planes) <= free_bytes
    )


def fused_bytes(planes: Planes) -> int:
    """Device memory of the fused correlations: planes, packed planes, a strip, and pairs."""
    padded = divide_up(planes.n_samples, BLOCK_ROWS) * BLOCK_ROWS
    letters = len(plan_products(PRODUCT, True).letters)
    stages = divide_up(planes.words.shape[2], STAGE_WORDS)
    strip = 4 * padded * min(padded, SQUARE_SITES)
    packed = packed_bytes(planes.n_samples, letters, stages)
    return planes.words.nbytes + packed + strip + 8 * PAIRS_CAPACITY


def blocks_of_rows(blocks: np.ndarray, rows: range, n_columns: int) -> np.ndarray:
    """Those of some blocks (row, column) that lie in these rows and the first columns."""
    row, column = blocks.T
    return blocks[(row >= rows.start) & (row < rows.stop) & (column < n_columns)]


def tiles_of_windows(ends: np.ndarray, most: int) -> list[tuple[Bounds, Bounds]]:
    """Tiles (rows, columns) that hold every pair i < j < ends[i], of at most `most` sites a side.

    Sides are about as long as the widest window: longer ones hold pairs that no window asks for.
    """
    n = len(ends)
    widest = int((ends - np.arange(n)).max(initial=1))
    side = max(1, min(most, max(LEAST_SIDE, divide_up(widest, BLOCK_ROWS) * BLOCK_ROWS)))
    found = []
    for first in range(0, n, side):
        last = min(first + side, n)
        top = max(last, int(ends[first:last].max()))
        found += [((first, last), (at, min(at + side, top))) for at in range(first, top, side)]
    return found
