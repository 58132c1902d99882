"""Sums of whole numbers over packed genotypes on a GPU (`kernels/engine/code_sums.cu`)."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from .compile_gpu import load_function
from .devices import Device
from .genotype_plan import (
    CODE_SUMS,
    MOST_TILES,
    SUM_DIGITS,
    TILE_COLUMNS,
    TURNED_COLUMNS,
    TURNED_WORDS,
    column_tiles,
    plan_sums,
    site_words,
)
from .layout import divide_up

#: Threads of one block of `split_digits`.
THREADS = 256


@dataclass
class DeviceBlock:
    """Codes of some sites on the device, and if any genotype is missing.

    `people`: words of people of each site, uint32 (n_sites, row_words); `sites`: words of sites of
    each person, (16 row_words, site_words).
    """

    people: cupy.ndarray
    sites: cupy.ndarray
    missing: bool


class CodeSums:
    """Sums over the codes of rows, people of sites or sites of people, on one device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __call__(
        self, words: cupy.ndarray, numbers: cupy.ndarray, table: int, first: int, n_words: int
    ) -> cupy.ndarray:
        """Sums of `numbers` (n_items, k) over the codes of some words of each row.

        Float64 (n_rows, k); `numbers` are whole, below 2**23 - 2**15.
        """
        n_rows, row_words = words.shape
        k = numbers.shape[1]
        sums = cupy.empty((n_rows, k), np.float64)
        for start in range(0, k, TILE_COLUMNS * MOST_TILES):
            part = numbers[:, start : start + TILE_COLUMNS * MOST_TILES]
            columns = part.shape[1]
            tiles = column_tiles(columns)
            digits = self.split(part, 16 * row_words, tiles)
            out = cupy.zeros((n_rows, TILE_COLUMNS * tiles), np.int64)
            self.add(words, digits, out, tiles, table, (first, n_words))
            sums[:, start : start + columns] = out[:, :columns]
        return sums

    def split(self, numbers: cupy.ndarray, padded: int, tiles: int) -> cupy.ndarray:
        """Whole numbers (n_items, k) in digits of `padded` items: int8 (SUM_DIGITS, k', padded)."""
        digits = cupy.empty((SUM_DIGITS, TILE_COLUMNS * tiles, padded), np.int8)
        numbers = cupy.ascontiguousarray(numbers)
        n_items, columns = numbers.shape
        self._load("split_digits", tiles)(
            (divide_up(padded, THREADS),),
            (THREADS,),
            (numbers, digits, np.int64(n_items), np.int32(columns), np.int64(padded)),
        )
        return digits

    def add(
        self,
        words: cupy.ndarray,
        digits: cupy.ndarray,
        out: cupy.ndarray,
        tiles: int,
        table: int,
        span: tuple[int, int] | None = None,
    ) -> None:
        """Add the sums over the codes of each row to `out`, int64 (n_rows, 8 tiles).

        `span`: the first word of each row that counts, and how many; all by default.
        """
        n_rows, row_words = words.shape
        first, n_words = span or (0, row_words)
        launch = plan_sums(n_rows, n_words, tiles, self.device.multiprocessors)
        kernel = self._load("sum_codes", tiles)
        kernel.max_dynamic_shared_size_bytes = launch.shared
        sizes = map(np.int64, (n_rows, row_words, first, n_words))
        kernel(
            launch.grid,
            launch.block,
            (words, digits, out, *sizes, np.int32(launch.stages_a_run), np.uint32(table)),
            shared_mem=launch.shared,
        )

    def turned(self, words: cupy.ndarray) -> cupy.ndarray:
        """Words of sites of each person, their number a multiple of a step."""
        n_sites, row_words = words.shape
        out = cupy.empty((16 * row_words, site_words(n_sites)), np.uint32)
        self.turn(words, out)
        return out

    def turn(self, words: cupy.ndarray, out: cupy.ndarray) -> None:
        """Write words of people of each site, (n_sites, row_words), as `turned` gives them."""
        (n_sites, row_words), n_words = words.shape, out.shape[1]
        grid = divide_up(row_words, TURNED_COLUMNS), divide_up(n_words, TURNED_WORDS)
        self._load("transpose_codes", 1)(
            grid,
            (TURNED_COLUMNS, TURNED_WORDS),
            (words, out, np.int64(n_sites), np.int64(row_words), np.int64(n_words)),
        )

    def _load(self, function: str, tiles: int) -> cupy.RawKernel:
        return load_function(CODE_SUMS, function, (("TILES", tiles),), self.device.capability)
