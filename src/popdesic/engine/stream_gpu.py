"""Bit-plane products of any size, streamed through the device range of sites by range of sites.

Each range is copied from the caller's planes (a memory-mapped file will do) into one of two pinned
buffers, sent on a copy stream while the range before it is multiplied, packed on the device into
the tiles that the kernels read, and multiplied into int32 accumulators, which are folded into
int64 totals before they can overflow. Host memory is bounded by `host_bytes`, device memory by what
is free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import cupy
import cupyx
import numpy as np

from ..core.errors import UserError
from .bitgemm_gpu import Launch, finish_rows, launch, pack_range
from .bitgemm_plan import Plan
from .devices import Device
from .layout import BLOCK_ROWS, STAGE_WORDS, divide_up, packed_bytes
from .pinned_gpu import is_pinned
from .stream_plan import COPY_THREADS, range_words, result_rows
from .terms import Planes, Terms
from .tune_plan import plan_for
from .variants import ShapeClass, Variant, block_order


@contextlib.contextmanager
def device_errors(task: str) -> Iterator[None]:
    """Turn errors of the driver into a `UserError` with one sentence."""
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as reason:
        raise UserError(
            f"the GPU has too little free memory for {task} ({reason}); use a GPU with more "
            "memory, or split the cohort into smaller ones."
        ) from None
    except (
        cupy.cuda.runtime.CUDARuntimeError,
        cupy.cuda.driver.CUDADriverError,
    ) as reason:
        raise UserError(
            f"the GPU failed during {task} ({reason}); nothing was written, run the job again, "
            f"on another GPU if it fails again."
        ) from None


def _send_rows(target: cupy.ndarray, source: np.ndarray, stream: cupy.cuda.Stream) -> None:
    """Copy pinned planes (n_samples, n_planes, n_words) to the device, row by row."""
    n_samples, n_planes, n_words = source.shape
    to_device = 1  # cudaMemcpyHostToDevice
    cupy.cuda.runtime.memcpy2DAsync(
        target.data.ptr,
        n_words * 8,
        source.ctypes.data,
        source.strides[1],
        n_words * 8,
        n_samples * n_planes,
        to_device,
        stream.ptr,
    )


class StreamHost(Protocol):
    """What a stream needs of the backend that it works for."""

    device: Device
    host_bytes: int
    threads: int
    copiers: ThreadPoolExecutor

    def choose(self, terms: Terms, shape: ShapeClass) -> Variant: ...

    def free_bytes(self) -> int: ...

    def rare_sites_path(self, stream: BitgemmStream, shape: ShapeClass) -> Any:
        """`rare_sites.RareSites` where rare sites take it, else None."""


@dataclass
class _Side:
    """One block of samples inside a stream: its buffers on the host and on the device."""

    n_samples: int
    n_planes: int
    counts: cupy.ndarray = field(init=False)
    packed: cupy.ndarray | None = None
    pinned: list[np.ndarray] = field(default_factory=list)
    raw: list[cupy.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = cupy.zeros((self.n_samples, 3), np.uint64)

    @property
    def padded(self) -> int:
        return divide_up(self.n_samples, BLOCK_ROWS) * BLOCK_ROWS

    @property
    def word_bytes(self) -> int:
        """Bytes of one word (64 sites) of all samples and planes as they are stored."""
        return self.n_samples * self.n_planes * 8


class BitgemmStream:
    """Products of two blocks of samples, summed over any number of site ranges.

    Made by `GpuBackend.stream`. Call `add` for each part of the sites, then `result`, or
    `result_rows` where the whole result should not lie in host memory.
    """

    def __init__(
        self,
        backend: StreamHost,
        m: int,
        n: int | None,
        planes_a: int,
        planes_b: int,
        terms: Terms,
        n_sites: int,
    ) -> None:
        self.backend, self.terms = backend, terms
        self.symmetric = n is None
        complete = planes_a == planes_b == 2
        shape = ShapeClass.of(m, m if n is None else n, n_sites, self.symmetric, complete)
        self.variant: Variant = backend.choose(terms, shape)
        self.plan: Plan = plan_for(self.variant, terms, complete)
        self._a = _Side(m, planes_a)
        self._b = self._a if n is None else _Side(n, planes_b)
        self._sides = [self._a] if n is None else [self._a, self._b]
        self._acc = cupy.zeros((self.plan.n_slots, self._a.padded, self._b.padded), np.int32)
        self._blocks = cupy.asarray(
            block_order(self._a.padded // BLOCK_ROWS, self._b.padded // BLOCK_ROWS, self.symmetric)
        )
        self._total: cupy.ndarray | None = None
        self.rare_sites = backend.rare_sites_path(self, shape)
        self._site_limit = self.rare_sites.site_limit if self.rare_sites else self.plan.site_limit
        self._sites_in_acc = 0
        self._range_words = 0
        self._compute, self._copy = cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
        self._compute.wait_event(cupy.cuda.get_current_stream().record())
        self._sent = [cupy.cuda.Event(), cupy.cuda.Event()]
        self._packed = [cupy.cuda.Event(), cupy.cuda.Event()]
        self._turn = 0

    def add(self, a: Planes, b: Planes | None = None) -> None:
        """Add the products over the sites of `a` and `b` (None: `a` against itself).

        Parameters
        ----------
        a, b : Planes
            The samples of the stream over some more sites, `words` on the host (any strides, a
            memory map too; pinned memory is sent without staging) or on the device. Host arrays
            may be overwritten when `add` returns. Further planes than the stream was made for
            (the mask of a block that counts as complete) are not read.

        Raises
        ------
        UserError
            The device ran out of memory or failed.
        ValueError
            Shapes differ from what the stream was made for.
        """
        given = [a] if self.symmetric else [a, b]
        for side, planes in zip(self._sides, given, strict=True):
            if planes is None or planes.n_samples != side.n_samples:
                raise ValueError("the samples are not those that the stream was made for")
            if planes.words.shape[1] < side.n_planes or planes.n_sites != a.n_sites:
                raise ValueError("the planes or sites are not those that the stream was made for")
        if not self.plan.passes and not any(map(any, (*self.plan.rows, *self.plan.columns))):
            return
        with device_errors(self._task()):
            words = []
            for side, planes in zip(self._sides, given, strict=True):
                array = planes.words[:, : side.n_planes]
                on_device = isinstance(array, cupy.ndarray)
                words.append(cupy.ascontiguousarray(array) if on_device else array)
            self._add(words, a.n_sites)

    def _task(self) -> str:
        what = f"the products of {self._a.n_samples} and {self._b.n_samples} samples"
        return what + (" with missing genotypes" if not self.plan.complete else "")

    def _add(self, words: list, n_sites: int) -> None:
        total_words = divide_up(n_sites, 64)
        on_device = [isinstance(array, cupy.ndarray) for array in words]
        to_pin = [
            not there and not is_pinned(array)
            for array, there in zip(words, on_device, strict=True)
        ]
        self._make_buffers(total_words, not all(on_device), any(to_pin))
        if any(on_device):
            self._compute.wait_event(cupy.cuda.get_current_stream().record())
        for first in range(0, total_words, self._range_words):
            n_words = min(self._range_words, total_words - first)
            sites = min(n_sites - first * 64, n_words * 64)
            turn, self._turn = self._turn, 1 - self._turn
            sources = []
            self._sent[turn].synchronize()
            for side, array, there in zip(self._sides, words, on_device, strict=True):
                if there:
                    sources.append((array, first))
                    continue
                shape = (side.n_samples, side.n_planes, n_words)
                size = side.n_samples * side.n_planes * n_words
                raw = side.raw[turn][:size].reshape(shape)
                part = array[:, :, first : first + n_words]
                self._copy.wait_event(self._packed[turn])
                if is_pinned(part):
                    _send_rows(raw, part, self._copy)
                else:
                    pinned = side.pinned[turn][:size].reshape(shape)
                    self._fill(pinned, part)
                    raw.set(pinned, stream=self._copy)
                sources.append((raw, 0))
            self._sent[turn].record(self._copy)
            with self._compute:
                self._compute.wait_event(self._sent[turn])
                self._multiply(sources, n_words, sites, turn)
        if not all(on_device):
            self._copy.synchronize()

    def _multiply(self, sources: list, n_words: int, n_sites: int, turn: int) -> None:
        device = self.backend.device
        if self._sites_in_acc + n_sites > self._site_limit:
            self._fold()
        self._sites_in_acc += n_sites
        if self.rare_sites and self.rare_sites.worth(sources, n_words):
            turned = self.rare_sites.turn(sources, n_sites)
            self._packed[turn].record(self._compute)
            self.rare_sites.add(turned)
            return
        n_stages = 0
        for side, (array, first) in zip(self._sides, sources, strict=True):
            n_stages = pack_range(
                array,
                first,
                n_words,
                n_sites,
                self.plan.letters,
                side.packed,
                side.counts,
                device.capability,
            )
        self._packed[turn].record(self._compute)
        launch(
            self.variant,
            device,
            self.plan,
            Launch(
                self._a.packed, self._b.packed, self._acc, self._blocks, n_stages, self.symmetric
            ),
        )

    def _fold(self) -> None:
        """Accumulators to int64 totals; this is where int32 widens."""
        if self.rare_sites:
            self.rare_sites.settle()
        if self._total is None:
            self._total = cupy.zeros(self._acc.shape, np.int64)
        self._total += self._acc
        self._acc.fill(0)
        self._sites_in_acc = 0

    def _fill(self, pinned: np.ndarray, source: np.ndarray) -> None:
        rows = divide_up(len(pinned), min(self.backend.threads, COPY_THREADS))
        parts = range(0, len(pinned), rows)
        list(
            self.backend.copiers.map(
                lambda row: np.copyto(pinned[row : row + rows], source[row : row + rows]), parts
            )
        )

    def _make_buffers(self, total_words: int, staged: bool, pinned: bool) -> None:
        """Allocate buffers for ranges as long as memory allows, at most `total_words`.

        `staged`: some planes come from the host; `pinned`: some of them are not in pinned memory.
        Allocating pinned memory is slow and querying free memory synchronises with the device, so
        existing buffers are reused where they suffice.
        """
        letters = max(1, len(self.plan.letters))
        packed = divide_up(
            sum(packed_bytes(side.n_samples, letters, 1) for side in self._sides), STAGE_WORDS
        )
        stored = sum(side.word_bytes for side in self._sides)
        ready = (bool(self._a.raw) or not staged) and (bool(self._a.pinned) or not pinned)
        needed = divide_up(total_words, STAGE_WORDS) * STAGE_WORDS
        if ready and self._range_words >= needed:
            return
        budget = self.backend.free_bytes() + packed * self._range_words
        budget += 2 * stored * self._range_words if self._a.raw else 0
        budget -= self.rare_sites.reserved if self.rare_sites else 0
        # rare sites: planes by site, and the gathered planes, each as large as the stored ones
        per_word = packed + (2 * stored if staged else 0) + (2 * stored if self.rare_sites else 0)
        longest = range_words(
            needed,
            budget=budget // per_word,
            packed=packed,
            site_limit=self._site_limit,
            host=self.backend.host_bytes // (2 * stored) if pinned else None,
        )
        if ready and longest <= self._range_words:
            return
        self._compute.synchronize()
        self._copy.synchronize()
        self._range_words = longest
        for side in self._sides:
            side.packed, side.raw, side.pinned = None, [], []
        for side in self._sides:
            n_bytes = packed_bytes(side.n_samples, letters, longest // STAGE_WORDS)
            side.packed = cupy.empty(n_bytes, np.uint8)
            words = side.word_bytes // 8 * longest
            if staged:
                side.raw = [cupy.empty(words, np.uint64) for _ in range(2)]
            if pinned:
                side.pinned = [cupyx.empty_pinned(words, np.uint64) for _ in range(2)]
        # buffers came from the current stream's pool; both streams may use them from here on
        cupy.cuda.get_current_stream().synchronize()

    def clear(self) -> None:
        """Forget all sums, for other samples, as many; buffers stay."""
        self._compute.wait_event(cupy.cuda.get_current_stream().record())
        with self._compute:
            self._acc.fill(0)
            for side in self._sides:
                side.counts.fill(0)
            if self.rare_sites:
                self.rare_sites.clear()
        self._total, self._sites_in_acc = None, 0

    def result_rows(self, rows_at_a_time: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """The sums so far, some rows at a time.

        Yields
        ------
        int, int64 array (n_outputs, n_rows, n)
            The first row, and the rows. The array is reused for the next rows.
        """
        n_outputs, m, n = len(self.terms.outputs), self._a.n_samples, self._b.n_samples
        rows = result_rows(n, n_outputs, rows_at_a_time)
        with device_errors(self._task()):
            host = cupyx.empty_pinned((n_outputs, min(rows, m), n), np.int64)
            with self._compute:
                if self.rare_sites:
                    self.rare_sites.settle()
                terms = self._count_terms()
                block = cupy.empty((min(rows, m), n), np.int64)
            for first in range(0, m, rows):
                n_rows = min(rows, m - first)
                for o, slot in enumerate(self.plan.slots):
                    with self._compute:
                        finish_rows(
                            self._acc[slot] if slot >= 0 else None,
                            self._total[slot] if slot >= 0 and self._total is not None else None,
                            *terms[o],
                            block[:n_rows],
                            self.plan.scale[o],
                            first,
                            self._b.padded,
                            self.symmetric,
                            self.backend.device.capability,
                        )
                        block[:n_rows].get(stream=self._compute, out=host[o, :n_rows])
                self._compute.synchronize()
                yield first, host[:, :n_rows]

    def _count_terms(self) -> list[tuple[cupy.ndarray, cupy.ndarray]]:
        def weigh(counts: cupy.ndarray, weights: tuple[int, int, int]) -> cupy.ndarray:
            signed = counts.astype(np.int64)
            return sum(w * signed[:, i] for i, w in enumerate(weights)) + cupy.zeros(
                len(signed), np.int64
            )

        terms = [
            (weigh(self._a.counts, rows), weigh(self._b.counts, columns))
            for rows, columns in zip(self.plan.rows, self.plan.columns, strict=True)
        ]
        if self.rare_sites:
            for o, (row_term, column_term) in enumerate(terms):
                more_rows, more_columns = self.rare_sites.margins(o)
                row_term += more_rows
                column_term += more_columns
        return terms

    def result(self) -> np.ndarray:
        """The sums so far, int64 (n_outputs, m, n)."""
        out = np.empty((len(self.terms.outputs), self._a.n_samples, self._b.n_samples), np.int64)
        for first, rows in self.result_rows():
            target = out[:, first : first + rows.shape[1]]
            self._fill(target.transpose(1, 0, 2), rows.transpose(1, 0, 2))
        return out
