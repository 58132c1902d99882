"""Products of standardised genotypes on a GPU: sums of integers on tensor cores.

The packed genotypes stay on the device where they fit, twice if there is room; otherwise blocks of
sites are read and sent while the blocks before them are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cupy
import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks
from .code_sums_gpu import CodeSums, DeviceBlock
from .columns import Columns
from .columns_cpu import CpuColumns
from .columns_gpu import GpuColumns
from .devices import Device
from .genotype_passes_gpu import Passes
from .genotype_plan import (
    GENOTYPES,
    HETEROZYGOTES,
    HOMOZYGOTES,
    MISSING,
    MOST_COLUMNS,
    TILE_COLUMNS,
    Room,
)
from .genotype_products import (
    BLOCK_SITES,
    Calls,
    Flips,
    GenotypeProducts,
    SampleSums,
    misses,
    site_blocks,
)
from .layout import divide_up
from .sample_sums import DIGITS, digits_of, squares_of_codes, unscaled, whole_of
from .stream_plan import COPY_THREADS

#: Bytes that are sent at a time where all genotypes stay on the device.
SENT_BYTES = 32 << 20
#: Blocks of sites whose tables of squares are made and sent at once.
TABLE_BLOCKS = 64
#: Device memory that one block of sites may need besides its codes, in blocks of sites.
SPARE_BLOCKS = 16
#: Device memory that stays free beside columns, for passes and other jobs.
KEPT_FREE = 1 << 30


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
        self.sums = CodeSums(device)
        self._missing: dict[tuple[int, int], bool] = {}
        self.mean, self.inverse = cupy.asarray(self.mean), cupy.asarray(self.inverse)
        room = free_bytes - SPARE_BLOCKS * BLOCK_SITES * self.row_bytes
        code_bytes = calls.n_sites * self.row_bytes
        on_device = isinstance(calls.parts[0], cupy.ndarray)
        holds = on_device or code_bytes <= room
        if holds:
            room -= 0 if on_device else code_bytes
        #: Device memory for passes.
        self.room = Room.of(room, code_bytes)
        self.held = calls.parts[0] if on_device else self._hold() if holds else None
        self.passes = Passes(self)

    @property
    def columns(self) -> GpuColumns:
        return GpuColumns(self.device)

    def columns_for(self, n_bytes: int) -> Columns:
        free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
        kept = 2 * self.room.group_bytes + KEPT_FREE
        return self.columns if n_bytes + kept <= free else CpuColumns(self.threads)

    def _put(self, array: np.ndarray) -> cupy.ndarray:
        return cupy.asarray(array)

    def _get(self, array: cupy.ndarray) -> np.ndarray:
        return cupy.asnumpy(array)

    def _hold(self) -> cupy.ndarray:
        """All rows on the device."""
        held = cupy.empty((self.calls.n_sites, self.row_bytes), np.uint8)
        step = int(np.clip(SENT_BYTES // max(self.row_bytes, 1), 1, BLOCK_SITES))
        bounds = list(chunks(self.calls.n_sites, step))
        for (first, last), rows in zip(bounds, self.sent(bounds), strict=True):
            held[first:last] = rows
        return held

    def sent(self, blocks: list[tuple[int, int]]) -> Iterator[cupy.ndarray]:
        """Rows of each block, sent by a thread while the caller works on the block before it."""
        index, stream = cupy.cuda.runtime.getDevice(), cupy.cuda.Stream(non_blocking=True)
        largest = max((last - first for first, last in blocks), default=0) * self.row_bytes
        pinned = [cupy.cuda.alloc_pinned_memory(largest or 1) for _ in range(2)]

        def send(bounds: tuple[int, int], buffer: Any, done: cupy.cuda.Event) -> cupy.ndarray:
            cupy.cuda.Device(index).use()
            first, shape = bounds[0], (bounds[1] - bounds[0], self.row_bytes)
            staged = np.frombuffer(buffer, np.uint8, shape[0] * shape[1]).reshape(shape)

            def fill(start: int, end: int) -> None:
                self.calls.block(first + start, first + end, staged[start:end])

            threads = min(self.threads, COPY_THREADS)
            run_tasks(fill, chunks(len(staged), divide_up(len(staged), threads)), threads)
            with stream:
                found = cupy.empty(shape, np.uint8)
                stream.wait_event(done)  # the memory may be that of a block still in use
                found.set(staged)
            stream.synchronize()
            return found

        with ThreadPoolExecutor(1) as sender:
            waiting = None
            for number, bounds in enumerate(blocks):
                done = cupy.cuda.get_current_stream().record()
                coming = sender.submit(send, bounds, pinned[number % 2], done)
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
            parts = self.sent(blocks)
        else:
            parts = (self.held[first:last] for first, last in blocks)
        for bounds, rows in zip(blocks, parts, strict=True):
            if bounds not in self._missing:
                self._missing[bounds] = bool(misses(rows))
            words = rows.view(np.uint32)
            yield work(DeviceBlock(words, self.sums.turned(words), self._missing[bounds]), *bounds)

    def normal(self, vectors: Any, factors: np.ndarray | None = None) -> Any:
        if not vectors.shape[1] or not self.calls.n_sites:
            return super().normal(vectors, factors)
        starts = range(0, vectors.shape[1], MOST_COLUMNS)
        parts = [vectors[:, start : start + MOST_COLUMNS] for start in starts]
        totals = [self.passes.normal(part, factors)[self._where] for part in parts]
        total = totals[0] if len(totals) == 1 else cupy.concatenate(totals, axis=1)
        return total if isinstance(vectors, cupy.ndarray) else self._get(total)

    def flipped(self, vectors: Any, flips: Flips) -> Any:
        if not self._passes_once(vectors.shape[1]):
            return super().flipped(vectors, flips)
        total = self.passes.flipped(vectors, flips)[self._where]
        return total if isinstance(vectors, cupy.ndarray) else self._get(total)

    def spread_by_person(self, flips: Flips) -> np.ndarray:
        if not self._passes_once(flips.signs.shape[2]):
            return super().spread_by_person(flips)
        return self._get(self.passes.spread_by_person(flips)[self._where])

    def _passes_once(self, n_columns: int) -> bool:
        """Whether one pass takes so many columns with signs of their own."""
        return 0 < n_columns <= MOST_COLUMNS and self.calls.n_sites > 0

    def turn(self, words: cupy.ndarray, out: cupy.ndarray) -> None:
        """Write words of people, (n_sites, row_words), as words of sites of each person."""
        self.sums.turn(words, out)

    def sample_sums(self) -> SampleSums:
        """As on the host: integers, sums of DIGITS digits each of the squares of all blocks."""
        sizes, tables = np.array([who.sum() for who in self.calls.keep]), _CodeTables(self.calls)
        kept = self._scattered(np.ones((len(self.places), 1)))
        ones, twos, absent = (cupy.zeros((self.n_places, TILE_COLUMNS), np.int64) for _ in range(3))
        joint = np.zeros((len(sizes),) * 2, np.int64)

        def add(words: cupy.ndarray, numbers: cupy.ndarray, out: cupy.ndarray, table: int) -> None:
            self.sums.add(words, self.sums.split(numbers, 16 * words.shape[1], 1), out, 1, table)

        def work(block: DeviceBlock, first: int, last: int) -> np.ndarray:
            one, two, none = tables.of(first, last)
            add(block.sites, one, ones, HETEROZYGOTES)
            add(block.sites, two, twos, HOMOZYGOTES)
            called = np.tile(sizes, (last - first, 1))
            if block.missing:
                add(block.sites, none, absent, MISSING)
                for part, (start, end) in enumerate(self.calls.spans):
                    span = start // 4, (end - start) // 4
                    few = self.sums(block.people, kept, MISSING, *span)
                    called[:, part] -= cupy.asnumpy(few)[:, 0].astype(np.int64)
            called *= tables.use[first:last, None]
            return called.T @ called

        for pairs in self._each(work, site_blocks(self.calls.n_sites)):
            joint += pairs
        squares = whole_of(ones) + whole_of(twos) - whole_of(absent)
        found = [cupy.asnumpy(one)[self.places] for one in (squares, absent[:, DIGITS])]
        called = int(tables.use.sum()) - found[1]
        return SampleSums(unscaled(found[0] + tables.squares_of_none), called, joint)

    def _by_site(
        self, block: DeviceBlock, numbers: cupy.ndarray, span: tuple[int, int]
    ) -> tuple[cupy.ndarray, cupy.ndarray | None]:
        first, n_words = span[0] // 4, (span[1] - span[0]) // 4
        sums = self.sums(block.people, numbers, GENOTYPES, first, n_words)
        if not block.missing:
            return sums, None
        return sums, self.sums(block.people, numbers, MISSING, first, n_words)

    def _by_person(
        self, block: DeviceBlock, times: cupy.ndarray, less: cupy.ndarray, span: tuple[int, int]
    ) -> cupy.ndarray:
        words = block.sites[4 * span[0] : 4 * span[1]]
        sums = self.sums(words, times, GENOTYPES, 0, words.shape[1]) - less.sum(axis=0)
        if block.missing:
            sums += self.sums(words, less, MISSING, 0, words.shape[1])
        return sums


class _CodeTables:
    """What sites add to the sums of samples for each code, on the device, of many blocks at once.

    Attributes
    ----------
    use : bool array, (n_sites,)
        Which sites count.
    squares_of_none : int64
        Sum over all sites of the squares of genotype 0, which wraps like all of these sums.
    """

    def __init__(self, calls: Calls) -> None:
        self.mean, self.inverse = calls.standard
        self.use = self.inverse > 0
        self.squares_of_none, self.bounds = np.int64(0), (0, 0)

    def of(self, first: int, last: int) -> tuple[cupy.ndarray, ...]:
        """Of one ALT allele and two, more than of none, and of none, with `use`: digits."""
        if last > self.bounds[1]:
            self.bounds = first, first + BLOCK_SITES * TABLE_BLOCKS
            own = slice(*self.bounds)
            squares, use = squares_of_codes(self.mean[own], self.inverse[own])
            self.squares = squares[0]
            none = np.concatenate([digits_of(squares[0]), use[:, None]], axis=1)
            more = [digits_of(squares[genotype] - squares[0]) for genotype in (1, 2)]
            self.tables = [cupy.asarray(one) for one in (*more, none)]
        start = self.bounds[0]
        with np.errstate(over="ignore"):
            self.squares_of_none += self.squares[first - start : last - start].sum()
        return tuple(one[first - start : last - start] for one in self.tables)
