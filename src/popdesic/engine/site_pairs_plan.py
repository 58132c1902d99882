"""Sizes and host arithmetic of the SNP comparisons on a GPU (kernels/compare/)."""

from __future__ import annotations

import numpy as np

from .devices import Device, supported_kernels
from .terms import Planes

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
