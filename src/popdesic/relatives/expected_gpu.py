"""`ExpectedKinship` on a GPU: digits on tensor cores (`kernels/relatives/expected.cu`)."""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from .expected import FREQUENCIES, UNIT, ExpectedKinship
from .expected_plan import (
    CLOSE_ROOM,
    EXPECT_BLOCK,
    EXPECTED,
    PAIR_THREADS,
    PRODUCT_THREADS,
    SHARED_BYTES,
    PaddedSizes,
    kinship_defines,
)


class GpuExpected(ExpectedKinship):
    """`ExpectedKinship` on one device, which holds digits of all sites, then all kinships."""

    def __init__(self, basis: np.ndarray, n_sites: int, device: Device) -> None:
        super().__init__(basis, n_sites)
        self.device, self.sizes = device, PaddedSizes.of(self.n, n_sites)
        self.axes = cupy.asarray(np.ascontiguousarray(basis.T))
        shape = (4, self.sizes.n_padded, self.sizes.row_bytes)
        self.digits: cupy.ndarray | None = cupy.zeros(shape, np.int8)
        self.kinship: cupy.ndarray | None = None

    def add(self, first: int, genotypes: np.ndarray, coefficients: np.ndarray) -> None:
        numbers = map(np.int64, (len(genotypes), self.n))
        rest = map(np.int64, (self.sizes.n_padded, self.sizes.row_bytes, first))
        given = (
            cupy.asarray(np.ascontiguousarray(genotypes, np.int8)),
            cupy.asarray(np.ascontiguousarray(coefficients)),
        )
        limits = map(np.float64, FREQUENCIES)
        arguments = *given, self.axes, self.digits, *numbers, np.int32(self.n_axes), *rest, *limits
        grid = self.sizes.expect_grid(len(genotypes))
        self._load("expect_genotypes")(grid, EXPECT_BLOCK, arguments)

    def divide(self) -> None:
        kernel = self._load("multiply_digits")
        kernel.max_dynamic_shared_size_bytes = SHARED_BYTES
        self.kinship = cupy.empty((self.n, self.n), np.float64)
        numbers = [*map(np.int64, (self.n, self.sizes.n_padded, self.sizes.row_bytes))]
        for unit, digits in ((UNIT, self.digits[:2]), (0.0, self.digits[2:])):  # then the divisor
            arguments = (digits, self.kinship, *numbers, np.float64(unit))
            kernel(self.sizes.grid, (PRODUCT_THREADS,), arguments, shared_mem=SHARED_BYTES)
        self.digits = None

    def subtract(self, right: np.ndarray, shares: np.ndarray) -> None:
        given = (cupy.asarray(np.ascontiguousarray(one)) for one in (right, shares))
        self._pairs("subtract_products", self.axes, *given, np.int64(self.n), np.int32(self.n_axes))

    def scale(self, roots: np.ndarray) -> None:
        self._pairs("divide_roots", cupy.asarray(roots), np.int64(self.n))

    def squares(self, marked: np.ndarray) -> tuple[int, int]:
        sums = cupy.zeros((2, self.sizes.tiles**2), np.int64)
        self._pairs("sum_squares", cupy.asarray(marked.astype(np.uint8)), sums, np.int64(self.n))
        total, pairs = cupy.asnumpy(sums)
        return sum(total[total > 0].tolist()), int(pairs.sum())

    def close(self, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        room, found = CLOSE_ROOM, CLOSE_ROOM + 1
        while found > room:
            room = max(room, found)
            places, counter = cupy.empty(room, np.int64), cupy.zeros(1, np.uint64)
            sizes = np.float64(least), np.int64(self.n), np.int64(room)
            self._pairs("list_close", *sizes, places, counter)
            found = int(cupy.asnumpy(counter)[0])
        rows, columns = np.divmod(np.sort(cupy.asnumpy(places[:found])), self.n)
        return rows, columns, self.of(rows, columns)

    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        places = cupy.asarray(rows * self.n + columns)
        return cupy.asnumpy(self.kinship.reshape(-1)[places])

    def block(self, first: int, last: int) -> np.ndarray:
        return cupy.asnumpy(self.kinship[first:last, first:last])

    def _pairs(self, function: str, *arguments) -> None:
        """Launch a kernel for all tiles of pairs."""
        self._load(function)(self.sizes.grid, (PAIR_THREADS,), (self.kinship, *arguments))

    def _load(self, function: str) -> cupy.RawKernel:
        return load_function(EXPECTED, function, kinship_defines(), self.device.capability)
