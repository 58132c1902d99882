"""Blocks of columns on the CPU, on threads."""

from __future__ import annotations

import numpy as np

from ..core.threads import run_tasks
from .column_sums_cpu import add_combination, add_own, add_own_products, add_products
from .columns import GRAM_ROWS, NARROW, WIDTH, Columns

#: Partial sums of one task, and rows of one task.
PARTS, ROWS = 16, 1 << 14


class CpuColumns(Columns):
    """`Columns` on the CPU.

    Parameters
    ----------
    threads : int
        Changes no byte.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def put(self, array: np.ndarray) -> np.ndarray:
        out = self.zeros(len(array))
        out[:, : array.shape[1]] = array
        return out

    def get(self, block: np.ndarray) -> np.ndarray:
        return block

    def zeros(self, n: int) -> np.ndarray:
        return np.zeros((n, WIDTH))

    def copy(self, block: np.ndarray) -> np.ndarray:
        return block.copy()

    def gram(self, left: list, right: np.ndarray) -> np.ndarray:
        n_parts = -(-len(right) // GRAM_ROWS)
        sums = np.empty((len(left), n_parts, WIDTH, WIDTH))
        tasks = [
            (block, right, first, min(first + PARTS, n_parts), own)
            for first in range(0, n_parts, PARTS)
            for block, own in zip(left, sums, strict=True)
        ]
        run_tasks(add_products, tasks, self.threads)
        total = np.zeros((len(left), WIDTH, WIDTH))
        for part in range(n_parts):
            total += sums[:, part]
        return total

    def add(self, out: np.ndarray, blocks: list, shares: np.ndarray) -> None:
        def work(first: int, last: int) -> None:
            for block, own in zip(blocks, shares, strict=True):
                add_combination(out, block, own, first, last)

        n = len(out)
        bounds = [(first, min(first + ROWS, n)) for first in range(0, n, ROWS)]
        run_tasks(work, bounds, self.threads)

    def rows(self, most: int, n: int) -> np.ndarray:
        return np.empty((most, n, NARROW))

    def own_products(self, blocks: np.ndarray, right: np.ndarray) -> np.ndarray:
        n_parts = -(-len(right) // GRAM_ROWS)
        sums = np.empty((len(blocks), n_parts, NARROW))

        def work(part: int) -> None:
            add_own_products(blocks, right, part, sums)

        run_tasks(work, zip(range(n_parts)), self.threads)
        total = np.zeros((len(blocks), NARROW))
        for part in range(n_parts):
            total += sums[:, part]
        return total

    def add_own(self, out: np.ndarray, blocks: np.ndarray, shares: np.ndarray) -> None:
        def work(first: int, last: int) -> None:
            add_own(out, blocks, shares, first, last)

        n = len(out)
        bounds = [(first, min(first + GRAM_ROWS, n)) for first in range(0, n, GRAM_ROWS)]
        run_tasks(work, bounds, self.threads)
