"""Sizes and host arithmetic of the SNP comparisons on a GPU (`kernels/engine/site_pairs.cu`)."""

from __future__ import annotations

import numpy as np

from .devices import Device, supported_kernels
from .layout import KernelSource
from .terms import Planes

#: Columns and rows that a thread block of `select_pairs` looks at together.
SELECT_COLUMNS, SELECT_ROWS = 32, 8
SELECT = KernelSource.of(
    "engine/site_pairs", SELECT_COLUMNS=SELECT_COLUMNS, SELECT_ROWS=SELECT_ROWS
)
#: Warps that share the partners of a site in `band_r2`.
BAND_WARPS = 8
BAND = KernelSource.of("engine/band", BAND_WARPS=BAND_WARPS)
#: By how much float32 may miss an r2, and the most samples for which that holds.
ROUNDING, MOST_SAMPLES = 1e-5, 20_000


def serves(device: Device, planes: Planes) -> bool:
    """Whether the fused correlations are made for this device and these sites."""
    return (
        "wgmma" in supported_kernels(device) and planes.complete and planes.n_sites <= MOST_SAMPLES
    )


def blocks_of_rows(blocks: np.ndarray, rows: range, n_columns: int) -> np.ndarray:
    """Those of some blocks (row, column) that lie in these rows and the first columns."""
    row, column = blocks.T
    return blocks[(row >= rows.start) & (row < rows.stop) & (column < n_columns)]
