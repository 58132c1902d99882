"""Sums over rows of blocks of columns on the CPU (`engine.columns`).

Formulas: `add_products` sums[p][i, j] = a[r, i] b[r, j] over the rows r of partial sum p, in their
order; `add_combination` out[r, j] += a[r, i] s[i, j], i by i. Shapes: blocks float64 (n, WIDTH).
Loops over j have a fixed length, so that they are vectorised; nothing is fused or reordered.
"""

from __future__ import annotations

import numba
import numpy as np

from ..columns import GRAM_ROWS, WIDTH

_OPTIONS = {"nogil": True, "cache": True, "boundscheck": False, "fastmath": False}


@numba.njit(**_OPTIONS)
def add_products(left: np.ndarray, right: np.ndarray, first: int, last: int, sums: np.ndarray):
    """Partial sums `first` to `last` of inner products; sums (n_parts, WIDTH, WIDTH)."""
    for part in range(first, last):
        own = sums[part]
        own[:] = 0.0
        for row in range(part * GRAM_ROWS, min((part + 1) * GRAM_ROWS, len(left))):
            for i in range(WIDTH):
                x = left[row, i]
                for j in range(WIDTH):
                    own[i, j] += x * right[row, j]


@numba.njit(**_OPTIONS)
def add_combination(out: np.ndarray, block: np.ndarray, shares: np.ndarray, first: int, last: int):
    """Add a block's columns times shares (WIDTH, WIDTH) to rows `first` to `last`."""
    for row in range(first, last):
        for i in range(WIDTH):
            x = block[row, i]
            for j in range(WIDTH):
                out[row, j] += x * shares[i, j]
