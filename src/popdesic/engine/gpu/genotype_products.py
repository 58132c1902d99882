"""Products of standardised genotypes on a GPU: sums of integers on tensor cores.

The packed genotypes stay on the device where they fit; otherwise blocks of sites are read and sent
while the block before them is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ..genotype_products import BLOCK_SITES, Calls, GenotypeProducts, misses, site_blocks
from ..host.sample_sums import DIGITS, SampleSums, digits_of, squares_of_codes, unscaled, whole_of
from .columns import GpuColumns
from .compile import load_function
from .devices import Device
from .genotype_plans import (
    GENOTYPES,
    HETEROZYGOTES,
    HOMOZYGOTES,
    MISSING,
    MOST_TILES,
    TILE_COLUMNS,
    plan_sums,
    tiles_of,
)
from .layout import SUM_DIGITS, TURNED_COLUMNS, TURNED_WORDS, divide_up

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
    calls : Calls
        A single part may lie on the device: all its rows count, each a multiple of ALIGNED bytes.
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
        if isinstance(calls.parts[0], cupy.ndarray):
            self.held = calls.parts[0]
        else:
            self.held = self._hold() if calls.n_sites * self.row_bytes <= room else None

    @property
    def columns(self) -> GpuColumns:
        return GpuColumns(self.device)

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
        site_words = divide_up(n_sites, 256) * 16
        out = cupy.empty((16 * row_words, site_words), np.uint32)
        grid = divide_up(row_words, TURNED_COLUMNS), divide_up(site_words, TURNED_WORDS)
        self._load("transpose_codes", 1)(
            grid,
            (TURNED_COLUMNS, TURNED_WORDS),
            (words, out, np.int64(n_sites), np.int64(row_words), np.int64(site_words)),
        )
        return out

    def _load(self, function: str, tiles: int) -> cupy.RawKernel:
        return load_function(KERNEL, function, (("TILES", tiles),), self.device.capability)

    def sample_sums(self) -> SampleSums:
        """As on the host: integers, sums of three digits each of the squares of a block."""
        places, sizes = self.places, np.array([who.sum() for who in self.calls.keep])
        kept = self._scattered(np.ones((len(places), 1)))
        mean, inverse = self.calls.standard
        total = cupy.zeros((self.n_places, 2), np.int64)
        joint = np.zeros((len(sizes),) * 2, np.int64)

        def work(block: Block, first: int, last: int) -> np.ndarray:
            words, own = block.sites, slice(first, last)
            squares, use = squares_of_codes(mean[own], inverse[own])
            total[:, 0] += int(squares[0].sum())
            total[:, 1] += int(use.sum())
            for table, genotype in ((HETEROZYGOTES, 1), (HOMOZYGOTES, 2)):
                more = cupy.asarray(digits_of(squares[genotype] - squares[0]))
                total[:, 0] += whole_of(self._sums(words, more, table, 0, words.shape[1]))
            called = np.tile(sizes, (last - first, 1))
            if block.missing:
                less = np.concatenate([digits_of(squares[0]), use[:, None]], axis=1)
                sums = self._sums(words, cupy.asarray(less * 1.0), MISSING, 0, words.shape[1])
                total[:, 0] -= whole_of(sums)
                total[:, 1] -= sums[:, DIGITS].astype(np.int64)
                for part, (start, end) in enumerate(self.calls.spans):
                    span = start // 4, (end - start) // 4
                    absent = self._sums(block.people, kept, MISSING, *span)
                    called[:, part] -= cupy.asnumpy(absent)[:, 0].astype(np.int64)
            called *= use[:, None]
            return called.T @ called

        for pairs in self._each(work, site_blocks(self.calls.n_sites)):
            joint += pairs
        found = cupy.asnumpy(total)[places]
        return SampleSums(unscaled(found[:, 0]), found[:, 1], joint)

    def _sums(
        self, words: cupy.ndarray, numbers: cupy.ndarray, table: int, first: int, n_words: int
    ) -> cupy.ndarray:
        """Sums of `numbers` (n_items, k) over the codes of some words of each row: (n_rows, k)."""
        n_rows, row_words = words.shape
        k = numbers.shape[1]
        sums = cupy.empty((n_rows, k), np.float64)
        for start in range(0, k, TILE_COLUMNS * MOST_TILES):
            part = cupy.ascontiguousarray(numbers[:, start : start + TILE_COLUMNS * MOST_TILES])
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
