"""Products of standardised genotypes on a GPU: sums of integers on tensor cores.

The packed genotypes stay on the device where they fit; otherwise blocks of sites are read and sent
while the block before them is multiplied. Where they fit twice, a pass takes few launches
(`whole_passes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ..genotype_products import BLOCK_SITES, Calls, Flips, GenotypeProducts, misses
from .compile import load_function
from .devices import Device
from .genotype_plans import (
    GENOTYPES,
    GROUP_BYTES,
    LEAST_GROUP_BYTES,
    MISSING,
    MOST_COLUMNS,
    MOST_ITEMS,
    TILE_COLUMNS,
    plan_sums,
    site_words,
    tiles_of,
)
from .layout import SUM_DIGITS, TURNED_COLUMNS, TURNED_WORDS, divide_up
from .whole_passes import Passes

#: The file of these kernels.
KERNEL = "pca/sum_codes"
#: Threads of one block of `split_digits`.
THREADS = 256
#: Device memory that one block of sites may need besides its codes, in blocks of sites.
SPARE_BLOCKS = 16


@dataclass
class Block:
    """Codes of some sites on the device, and if any genotype is missing.

    `people`: words of people of each site, uint32 (n_sites, row_words); `sites`: words of sites of
    each person, (16 row_words, site_words).
    """

    people: cupy.ndarray
    sites: cupy.ndarray
    missing: bool


class GpuProducts(GenotypeProducts):
    """`GenotypeProducts` on one device.

    Parameters
    ----------
    free_bytes : int
        Device memory that may be taken.
    """

    xp = cupy

    def __init__(self, calls: Calls, device: Device, free_bytes: int, threads: int = 1) -> None:
        super().__init__(calls, threads)
        self.device, self.row_bytes = device, calls.spans[-1][1]
        self._missing: dict[tuple[int, int], bool] = {}
        self.mean, self.inverse = cupy.asarray(self.mean), cupy.asarray(self.inverse)
        room = free_bytes - SPARE_BLOCKS * BLOCK_SITES * self.row_bytes
        size = calls.n_sites * self.row_bytes
        self.held = self._hold() if size <= room else None
        #: Passes in few launches, and device memory of theirs besides the codes.
        self.group_bytes = min(GROUP_BYTES, (room - 2 * size) // 2)
        fits = self.group_bytes >= LEAST_GROUP_BYTES and self.n_places <= MOST_ITEMS
        self.passes = Passes(self) if fits and calls.n_sites else None

    def normal(self, vectors: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
        if self.passes is None or not vectors.shape[1]:
            return super().normal(vectors, factors)
        starts = range(0, vectors.shape[1], MOST_COLUMNS)
        parts = [vectors[:, start : start + MOST_COLUMNS] for start in starts]
        return np.concatenate([self.passes.normal(part, factors) for part in parts], axis=1)

    def flipped(self, vectors: np.ndarray, flips: Flips) -> np.ndarray:
        if self.passes is None or not 0 < vectors.shape[1] <= MOST_COLUMNS:
            return super().flipped(vectors, flips)
        return self.passes.flipped(vectors, flips)

    def spread_by_person(self, flips: Flips) -> np.ndarray:
        if self.passes is None or flips.signs.shape[2] > MOST_COLUMNS:
            return super().spread_by_person(flips)
        return self.passes.spread_by_person(flips)

    def any_missing(self) -> bool:
        """Whether any genotype is missing, of those on the device."""
        starts = range(0, len(self.held), BLOCK_SITES)
        return any(bool(misses(self.held[first : first + BLOCK_SITES])) for first in starts)

    def _put(self, array: np.ndarray) -> cupy.ndarray:
        return cupy.asarray(array)

    def _get(self, array: cupy.ndarray) -> np.ndarray:
        return cupy.asnumpy(array)

    def _hold(self) -> cupy.ndarray:
        """All rows on the device."""
        held = cupy.empty((self.calls.n_sites, self.row_bytes), np.uint8)
        starts = range(0, self.calls.n_sites, BLOCK_SITES)
        bounds = [(first, min(first + BLOCK_SITES, self.calls.n_sites)) for first in starts]
        for (first, last), rows in zip(bounds, self._sent(bounds), strict=True):
            held[first:last] = rows
        return held

    def _sent(self, blocks: Iterable[tuple[int, int]]) -> Iterator[cupy.ndarray]:
        """Rows of each block, sent by a thread while the caller works on the block before it."""
        index, stream = cupy.cuda.runtime.getDevice(), cupy.cuda.Stream(non_blocking=True)
        pinned = [
            cupy.cuda.alloc_pinned_memory(BLOCK_SITES * self.row_bytes or 1) for _ in range(2)
        ]

        def send(bounds: tuple[int, int], buffer: Any) -> cupy.ndarray:
            cupy.cuda.Device(index).use()
            rows = self.calls.block(*bounds)
            staged = np.frombuffer(buffer, np.uint8, rows.size).reshape(rows.shape)
            np.copyto(staged, rows)
            with stream:
                found = cupy.empty(rows.shape, np.uint8)
                found.set(staged)
            stream.synchronize()
            return found

        with ThreadPoolExecutor(1) as sender:
            waiting = None
            for number, bounds in enumerate(blocks):
                coming = sender.submit(send, bounds, pinned[number % 2])
                if waiting is not None:
                    yield waiting.result()
                waiting = coming
            if waiting is not None:
                yield waiting.result()

    def _each(
        self, work: Callable[[Any, int, int], Any], blocks: Iterable[tuple[int, int]]
    ) -> Iterator[Any]:
        blocks = list(blocks)
        if self.held is None:
            parts = self._sent(blocks)
        else:
            parts = (self.held[first:last] for first, last in blocks)
        for bounds, rows in zip(blocks, parts, strict=True):
            if bounds not in self._missing:
                self._missing[bounds] = bool(misses(rows))
            words = rows.view(np.uint32)
            yield work(Block(words, self._turned(words), self._missing[bounds]), *bounds)

    def _turned(self, words: cupy.ndarray) -> cupy.ndarray:
        """Words of sites of each person, their number a multiple of a step."""
        n_sites, row_words = words.shape
        out = cupy.empty((16 * row_words, site_words(n_sites)), np.uint32)
        self.turn(words, out)
        return out

    def turn(self, words: cupy.ndarray, out: cupy.ndarray) -> None:
        """Write words of people, (n_sites, row_words), as words of sites of each person."""
        n_sites, row_words = words.shape
        n_words = out.shape[1]
        grid = divide_up(row_words, TURNED_COLUMNS), divide_up(n_words, TURNED_WORDS)
        self._load("transpose_codes", 1)(
            grid,
            (TURNED_COLUMNS, TURNED_WORDS),
            (words, out, np.int64(n_sites), np.int64(row_words), np.int64(n_words)),
        )

    def _load(self, function: str, tiles: int) -> cupy.RawKernel:
        return load_function(KERNEL, function, (("TILES", tiles),), self.device.capability)

    def _sums(
        self, words: cupy.ndarray, numbers: cupy.ndarray, table: int, first: int, n_words: int
    ) -> cupy.ndarray:
        """Sums of `numbers` (n_items, k) over the codes of some words of each row: (n_rows, k)."""
        n_rows, row_words = words.shape
        k = numbers.shape[1]
        sums = cupy.empty((n_rows, k), np.float64)
        for start in range(0, k, MOST_COLUMNS):
            part = cupy.ascontiguousarray(numbers[:, start : start + MOST_COLUMNS])
            columns = part.shape[1]
            tiles = tiles_of(columns)
            padded = 16 * row_words
            digits = cupy.empty((SUM_DIGITS, TILE_COLUMNS * tiles, padded), np.int8)
            self._load("split_digits", tiles)(
                (divide_up(padded, THREADS),),
                (THREADS,),
                (part, digits, np.int64(len(part)), np.int32(columns), np.int64(padded)),
            )
            launch = plan_sums(n_rows, n_words, tiles, self.device.multiprocessors)
            out = cupy.zeros((n_rows, TILE_COLUMNS * tiles), np.int64)
            kernel = self._load("sum_codes", tiles)
            kernel.max_dynamic_shared_size_bytes = launch.shared
            sizes = map(np.int64, (n_rows, row_words, first, n_words))
            kernel(
                launch.grid,
                launch.block,
                (words, digits, out, *sizes, np.int32(launch.stages_a_run), np.uint32(table)),
                shared_mem=launch.shared,
            )
            sums[:, start : start + columns] = out[:, :columns]
        return sums

    def _by_site(
        self, block: Block, numbers: cupy.ndarray, span: tuple[int, int]
    ) -> tuple[cupy.ndarray, cupy.ndarray | None]:
        first, n_words = span[0] // 4, (span[1] - span[0]) // 4
        sums = self._sums(block.people, numbers, GENOTYPES, first, n_words)
        if not block.missing:
            return sums, None
        return sums, self._sums(block.people, numbers, MISSING, first, n_words)

    def _by_person(
        self, block: Block, times: cupy.ndarray, less: cupy.ndarray, span: tuple[int, int]
    ) -> cupy.ndarray:
        words = block.sites[4 * span[0] : 4 * span[1]]
        sums = self._sums(words, times, GENOTYPES, 0, words.shape[1]) - less.sum(axis=0)
        if block.missing:
            sums += self._sums(words, less, MISSING, 0, words.shape[1])
        return sums
