"""Sums over rows of blocks of columns on the CPU (`engine.columns`).

Formulas: `add_products` sums[p][i, j] = a[r, i] b[r, j] over the rows r of partial sum p, in their
order; `add_combination` out[r, j] += a[r, i] s[i, j], i by i. `add_own_products` and `add_own` take
columns with those of the same number: sums[b, p][j] = a[b][r, j] c[r, j], out[r, j] += a[b][r, j]
s[b, j], b by b. Shapes: blocks float64 (n, WIDTH), narrow ones (n, NARROW).
Loops over j have a fixed length, so that they are vectorised; four rows or columns at a time are
added one after the other, which saves loads and stores of the sums. Nothing is fused or reordered.
"""

from __future__ import annotations

import numba
import numpy as np

from .columns import GRAM_ROWS, NARROW, WIDTH

_OPTIONS = {"nogil": True, "cache": True, "boundscheck": False, "fastmath": False}


@numba.njit(**_OPTIONS)
def add_products(left: np.ndarray, right: np.ndarray, first: int, last: int, sums: np.ndarray):
    """Partial sums `first` to `last` of inner products; sums (n_parts, WIDTH, WIDTH)."""
    for part in range(first, last):
        own = sums[part]
        own[:] = 0.0
        row, end = part * GRAM_ROWS, min((part + 1) * GRAM_ROWS, len(left))
        while row + 4 <= end:
            for i in range(WIDTH):
                w, x, y, z = left[row, i], left[row + 1, i], left[row + 2, i], left[row + 3, i]
                for j in range(WIDTH):
                    sum_ = own[i, j] + w * right[row, j]
                    sum_ = sum_ + x * right[row + 1, j]
                    sum_ = sum_ + y * right[row + 2, j]
                    own[i, j] = sum_ + z * right[row + 3, j]
            row += 4
        for last_row in range(row, end):
            for i in range(WIDTH):
                x = left[last_row, i]
                for j in range(WIDTH):
                    own[i, j] += x * right[last_row, j]


@numba.njit(**_OPTIONS)
def add_combination(out: np.ndarray, block: np.ndarray, shares: np.ndarray, first: int, last: int):
    """Add a block's columns times shares (WIDTH, WIDTH) to rows `first` to `last`."""
    for row in range(first, last):
        for i in range(0, WIDTH, 4):
            w, x, y, z = block[row, i], block[row, i + 1], block[row, i + 2], block[row, i + 3]
            for j in range(WIDTH):
                sum_ = out[row, j] + w * shares[i, j]
                sum_ = sum_ + x * shares[i + 1, j]
                sum_ = sum_ + y * shares[i + 2, j]
                out[row, j] = sum_ + z * shares[i + 3, j]


@numba.njit(**_OPTIONS)
def add_own_products(blocks: np.ndarray, right: np.ndarray, part: int, sums: np.ndarray):
    """One partial sum of products of columns of the same number; sums (len, n_parts, NARROW).

    Four blocks at a time, for the same rows.
    """
    first, end = part * GRAM_ROWS, min((part + 1) * GRAM_ROWS, len(right))
    count = len(blocks)
    four = count - count % 4
    own = np.empty((4, NARROW))
    for number in range(0, four, 4):
        a, b, c, d = blocks[number], blocks[number + 1], blocks[number + 2], blocks[number + 3]
        own[:] = 0.0
        w, x, y, z = own[0], own[1], own[2], own[3]
        for row in range(first, end):
            for j in range(NARROW):
                times = right[row, j]
                w[j] += a[row, j] * times
                x[j] += b[row, j] * times
                y[j] += c[row, j] * times
                z[j] += d[row, j] * times
        for k in range(4):
            for j in range(NARROW):
                sums[number + k, part, j] = own[k, j]
    for number in range(four, count):
        a, w = blocks[number], own[0]
        w[:] = 0.0
        for row in range(first, end):
            for j in range(NARROW):
                w[j] += a[row, j] * right[row, j]
        for j in range(NARROW):
            sums[number, part, j] = w[j]


@numba.njit(**_OPTIONS)
def add_own(out: np.ndarray, blocks: np.ndarray, shares: np.ndarray, first: int, last: int):
    """Add narrow blocks times shares (len, NARROW) to rows `first` to `last`."""
    count = len(blocks)
    four = count - count % 4
    for number in range(0, four, 4):
        a, b, c, d = blocks[number], blocks[number + 1], blocks[number + 2], blocks[number + 3]
        own = shares[number : number + 4]
        for row in range(first, last):
            for j in range(NARROW):
                value = out[row, j] + a[row, j] * own[0, j]
                value = value + b[row, j] * own[1, j]
                value = value + c[row, j] * own[2, j]
                out[row, j] = value + d[row, j] * own[3, j]
    for number in range(four, count):
        a, share = blocks[number], shares[number]
        for row in range(first, last):
            for j in range(NARROW):
                out[row, j] += a[row, j] * share[j]
