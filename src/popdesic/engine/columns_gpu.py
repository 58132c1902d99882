"""Blocks of columns on a GPU (`kernels/engine/columns.cu`): the CPU's bytes."""

from __future__ import annotations

import cupy
import numpy as np

from .columns import GRAM_ROWS, NARROW, WIDTH, Columns
from .compile_gpu import load_function
from .devices import Device
from .genotype_plan import COLUMNS
from .layout import divide_up

#: Threads of a block of the kernels of narrow blocks.
THREADS = 256


class GpuColumns(Columns):
    """`Columns` on one device."""

    xp = cupy

    def __init__(self, device: Device) -> None:
        self.device = device

    def put(self, array: np.ndarray) -> cupy.ndarray:
        out = self.zeros(len(array))
        out[:, : array.shape[1]] = cupy.asarray(array)
        return out

    def get(self, block: cupy.ndarray) -> np.ndarray:
        return cupy.asnumpy(block)

    def zeros(self, n: int) -> cupy.ndarray:
        return cupy.zeros((n, WIDTH), np.float64)

    def copy(self, block: cupy.ndarray) -> cupy.ndarray:
        return block.copy()

    def gram(self, left: list, right: cupy.ndarray) -> np.ndarray:
        n = len(right)
        n_parts = divide_up(n, GRAM_ROWS)
        sums = cupy.empty((len(left), n_parts, WIDTH, WIDTH), np.float64)
        for block, own in zip(left, sums, strict=True):
            self._run("add_products", n, (block, right, own, np.int64(n)))
        total = np.zeros((len(left), WIDTH, WIDTH))
        parts = cupy.asnumpy(sums)
        for part in range(n_parts):
            total += parts[:, part]
        return total

    def add(self, out: cupy.ndarray, blocks: list, shares: np.ndarray) -> None:
        there = cupy.asarray(shares)
        for block, own in zip(blocks, there, strict=True):
            self._run("add_combination", len(out), (out, block, own, np.int64(len(out))))

    def rows(self, most: int, n: int) -> cupy.ndarray:
        return cupy.empty((most, n, NARROW), np.float64)

    def own_products(self, blocks: cupy.ndarray, right: cupy.ndarray) -> np.ndarray:
        n, n_parts = len(right), divide_up(len(right), GRAM_ROWS)
        sums = cupy.empty((len(blocks), n_parts, NARROW), np.float64)
        arguments = blocks, right, sums, np.int64(n), np.int64(n_parts)
        self._run_narrow("add_own_products", sums.size, arguments)
        total, parts = np.zeros((len(blocks), NARROW)), cupy.asnumpy(sums)
        for part in range(n_parts):
            total += parts[:, part]
        return total

    def add_own(self, out: cupy.ndarray, blocks: cupy.ndarray, shares: np.ndarray) -> None:
        arguments = out, blocks, cupy.asarray(shares), np.int64(len(out)), np.int64(len(blocks))
        self._run_narrow("add_own", out.size, arguments)

    def _run_narrow(self, function: str, n_threads: int, arguments: tuple) -> None:
        if n_threads:
            kernel = load_function(COLUMNS, function, (), self.device.capability)
            numbers = (*arguments, np.int64(n_threads))
            kernel((divide_up(n_threads, THREADS),), (THREADS,), numbers)

    def _run(self, function: str, n: int, arguments: tuple) -> None:
        if n:
            kernel = load_function(COLUMNS, function, (), self.device.capability)
            kernel((divide_up(n, GRAM_ROWS),), (WIDTH * WIDTH,), arguments)
