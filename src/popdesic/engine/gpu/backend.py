"""The GPU backend: bit-plane products on tensor cores, streamed through the device.

Samples by sites of any size go through in ranges of sites. Each range is copied from the
caller's planes (a memory-mapped file will do) into one of two pinned buffers, sent on a copy
stream while the range before it is multiplied, packed on the device into the tiles that the
kernels read, and multiplied into int32 accumulators, which are folded into int64 totals before
they can overflow. Host memory is bounded by `host_bytes`, device memory by what is free.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import cupy
import cupyx
import numpy as np

from ...io.errors import UserError
from ..base import PANEL, Bounds, Hits, Planes, ScanData, Terms, closure_panel, infinity
from . import minplus as minplus_gpu
from . import tune
from .kernels import (
    BLOCK_ROWS,
    STAGE_BITS,
    STAGE_WORDS,
    TILE_ROWS,
    Device,
    Launch,
    Plan,
    Variant,
    block_order,
    divide_up,
    finish_rows,
    launch,
    pack_planes,
    packed_bytes,
    supported_kernels,
)
from .lease import lease_device
from .sparse import SiteCosts, SparsePath, site_costs

#: Pinned host memory of one stream of planes, unless the caller says otherwise.
HOST_BYTES = 1 << 30
#: Share of the free device memory that a product may take.
DEVICE_SHARE = 0.9
#: Device memory for the rows of a result on their way to the host.
RESULT_BYTES = 256 << 20
#: Most device memory for the packed planes of one range: enough for full speed.
PACKED_BYTES = 16 << 30
#: Panel of a closure whose matrix stays in host memory.
HOST_PANEL = 16384
#: Threads that copy planes into pinned memory (one cannot keep up with the bus).
COPY_THREADS = 8


@contextlib.contextmanager
def _device_errors(task: str) -> Iterator[None]:
    """Turns whatever the driver says into one sentence."""
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


def _is_pinned(array: np.ndarray) -> bool:
    """Whether planes lie in pinned memory, each plane of each sample in one piece."""
    if array.strides[2] != 8 or array.strides[0] != array.shape[1] * array.strides[1]:
        return False
    host = 1  # cudaMemoryTypeHost: pinned; ordinary memory is not registered at all
    try:
        return cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == host
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


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
        backend: GpuBackend,
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
        shape = tune.ShapeClass.of(m, m if n is None else n, n_sites, self.symmetric, complete)
        self.variant: Variant = backend.choose(terms, shape)
        self.plan: Plan = tune.plan_for(self.variant, terms, complete)
        self._a = _Side(m, planes_a)
        self._b = self._a if n is None else _Side(n, planes_b)
        self._sides = [self._a] if n is None else [self._a, self._b]
        self._acc = cupy.zeros((self.plan.n_slots, self._a.padded, self._b.padded), np.int32)
        self._blocks = cupy.asarray(
            block_order(self._a.padded // BLOCK_ROWS, self._b.padded // BLOCK_ROWS, self.symmetric)
        )
        self._total: cupy.ndarray | None = None
        self.sparse = backend.sparse_path(self, shape)
        self._site_limit = self.sparse.site_limit if self.sparse else self.plan.site_limit
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
            memory map too; pinned memory is sent without a detour) or on the device. Host arrays
            may be written again when `add` returns. Planes beyond those that the stream was made
            for (the mask of a block that counts as complete) are not read.

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
        with _device_errors(self._task()):
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
            not there and not _is_pinned(array)
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
                if _is_pinned(part):
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
        if self.sparse and self.sparse.worth(sources, n_words):
            turned = self.sparse.turn(sources, n_sites)
            self._packed[turn].record(self._compute)
            self.sparse.add(turned)
            return
        n_stages = 0
        for side, (array, first) in zip(self._sides, sources, strict=True):
            n_stages = pack_planes(
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
        if self.sparse:
            self.sparse.settle()
        if self._total is None:
            self._total = cupy.zeros(self._acc.shape, np.int64)
        self._total += self._acc
        self._acc.fill(0)
        self._sites_in_acc = 0

    def _fill(self, pinned: np.ndarray, source: np.ndarray) -> None:
        rows = divide_up(len(pinned), COPY_THREADS)
        parts = range(0, len(pinned), rows)
        list(
            self.backend.copiers.map(
                lambda row: np.copyto(pinned[row : row + rows], source[row : row + rows]), parts
            )
        )

    def _make_buffers(self, total_words: int, staged: bool, pinned: bool) -> None:
        """Buffers for ranges as long as memory allows, at most `total_words`.

        `staged`: some planes come from the host; `pinned`: some of them are not in pinned memory.
        Pinned memory is slow to get, and asking for free memory waits for the device: both are
        left alone where the buffers at hand will do.
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
        budget -= self.sparse.reserved if self.sparse else 0
        # by site, and brought together again: as much as they take as they are stored, twice
        per_word = packed + (2 * stored if staged else 0) + (2 * stored if self.sparse else 0)
        longest = min(budget // per_word, PACKED_BYTES // packed, self._site_limit // 64)
        if staged:
            longest = min(longest, self.backend.host_bytes // (2 * stored))
        longest = min(needed, max(STAGE_WORDS, longest // STAGE_WORDS * STAGE_WORDS))
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

    def result_rows(self, rows_at_a_time: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """The sums so far, some rows at a time.

        Yields
        ------
        int, int64 array (n_outputs, n_rows, n)
            The first row, and the rows. The array is reused for the next rows.
        """
        n_outputs, m, n = len(self.terms.outputs), self._a.n_samples, self._b.n_samples
        rows = rows_at_a_time or RESULT_BYTES // (8 * n * n_outputs)
        rows = max(TILE_ROWS, rows // TILE_ROWS * TILE_ROWS)
        with _device_errors(self._task()):
            host = cupyx.empty_pinned((n_outputs, min(rows, m), n), np.int64)
            with self._compute:
                if self.sparse:
                    self.sparse.settle()
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
        if self.sparse:
            for o, (row_term, column_term) in enumerate(terms):
                more_rows, more_columns = self.sparse.margins(o)
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


class GpuBackend:
    """One CUDA device (see `backend.base.Backend` for the contracts).

    Parameters
    ----------
    kernel : str, optional
        ``wgmma``, ``mma`` or ``popc``: only this micro-kernel. By default the fastest one that
        the device has, found by measurement (`tune.choose`). All give the same integers.
    host_bytes : int
        Most pinned host memory for planes on their way to the device.
    device_bytes : int, optional
        Most device memory to use, instead of what is free.
    sparse : bool or SiteCosts, optional
        Whether rare sites may leave the dense products (sparse_gpu.py): by default where that is
        faster by costs measured on the device; with costs given, always. The integers are the same.

    Raises
    ------
    UserError
        No GPU is usable, or it lacks the micro-kernel asked for.
    """

    name = "gpu"

    def __init__(
        self,
        kernel: str | None = None,
        host_bytes: int = HOST_BYTES,
        device_bytes: int | None = None,
        sparse: bool | SiteCosts = True,
    ) -> None:
        try:
            usable = cupy.cuda.is_available() and cupy.cuda.runtime.getDeviceCount() > 0
        except (cupy.cuda.runtime.CUDARuntimeError, ImportError) as reason:
            raise UserError(f"no GPU can be used: {reason}") from None
        if not usable:
            raise UserError("no GPU or no driver for it was found")
        with _device_errors("its first use"):
            self.device = Device.current()
        if kernel is not None and kernel not in supported_kernels(self.device):
            raise UserError(
                f"{self.device.name} does not run the micro-kernel {kernel!r}; it runs "
                f"{', '.join(supported_kernels(self.device))}"
            )
        self.kernel, self.host_bytes, self.device_bytes = kernel, host_bytes, device_bytes
        self.sparse = sparse
        self.host_panel = HOST_PANEL
        self._chosen: dict[tuple[Terms, tune.ShapeClass], Variant] = {}

    @classmethod
    def leased(cls, host_bytes: int | None = None) -> GpuBackend:
        """A backend on a device that no other job of this machine uses.

        `host_bytes` as in the constructor.

        Raises
        ------
        UserError
            No GPU is usable.
        """
        cls()  # says in one sentence what is missing
        cupy.cuda.Device(lease_device(cupy.cuda.runtime.getDeviceCount())).use()
        return cls(host_bytes=host_bytes or HOST_BYTES)

    @functools.cached_property
    def copiers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(COPY_THREADS)

    def describe(self) -> str:
        """One line for the log: device and micro-kernels."""
        kernels = self.kernel or ", ".join(supported_kernels(self.device))
        return (
            f"GPU {self.device.index}: {self.device.name} "
            f"({self.device.multiprocessors} multiprocessors, "
            f"compute capability {self.device.capability / 10:.1f}), bit-plane kernels: {kernels}"
        )

    def free_bytes(self) -> int:
        """Device memory that planes and results may still take."""
        pool = cupy.get_default_memory_pool()
        if self.device_bytes is not None:
            return max(0, self.device_bytes - pool.used_bytes())
        pool.free_all_blocks()
        free, _ = cupy.cuda.runtime.memGetInfo()
        return max(0, int(DEVICE_SHARE * free) - RESULT_BYTES)

    def choose(self, terms: Terms, shape: tune.ShapeClass) -> Variant:
        """The micro-kernel and tiles for a shape class (measured once, see tune.py)."""
        key = terms, shape
        if key not in self._chosen:
            self._chosen[key] = tune.choose(self.device, terms, shape, self.kernel)
        return self._chosen[key]

    def sparse_path(self, stream: BitgemmStream, shape: tune.ShapeClass) -> SparsePath | None:
        """What adds rare sites to a stream; None where the dense products take all of them."""
        if not self.sparse or not stream.plan.passes:
            return None
        if isinstance(self.sparse, SiteCosts):
            return SparsePath(stream, self.sparse, forced=True)
        if not SparsePath.pays(shape):
            return None
        costs = site_costs(self.device, stream.variant, stream.terms, shape)
        return SparsePath(stream, costs)

    def stream(
        self, m: int, n: int | None, planes_a: int, planes_b: int, terms: Terms, n_sites: int
    ) -> BitgemmStream:
        """Products of m and n samples whose sites come in parts.

        Parameters
        ----------
        m, n : int
            Samples of the two blocks; ``n=None``: the first against itself.
        planes_a, planes_b : int
            2 where a block is complete, 3 where it has a mask of called genotypes.
        terms : Terms
        n_sites : int
            Roughly how many sites will come: decides the choice of kernel, not the result.
        """
        with _device_errors(f"the products of {m} and {m if n is None else n} samples"):
            return BitgemmStream(self, m, n, planes_a, planes_b, terms, n_sites)

    def largest_block(self, terms: Terms, planes: int) -> int:
        """Most samples of a square tile whose accumulators fit the device beside its planes."""
        per_pair = 4 * len(terms.outputs) + 8 * len(terms.outputs)
        per_sample = 2 * STAGE_WORDS * 8 * (2 * planes + 6)
        free = self.free_bytes()
        side = BLOCK_ROWS
        while (side + BLOCK_ROWS) ** 2 * per_pair + (side + BLOCK_ROWS) * per_sample <= free:
            side += BLOCK_ROWS
        return side

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        """Weighted AND+popcount products between all samples of `a` and of `b`.

        Parameters
        ----------
        a, b : Planes
            Blocks of m and n samples over the same sites, of any size; `words` on the host or
            on the device. ``b=None``: `a` against itself, one triangle computed and mirrored.
        terms : Terms
            Letters are evaluated over called genotypes; a complete block's c is all ones.

        Returns
        -------
        int64 array, (n_outputs, m, n)
            Exact. Missing genotypes add nothing.

        Raises
        ------
        UserError
            The device is lost or has too little memory.
        ValueError
            The blocks have different numbers of sites.
        """
        if b is not None and a.n_sites != b.n_sites:
            raise ValueError(f"the blocks have {a.n_sites} and {b.n_sites} sites")
        if b is None and not terms.symmetric:
            b = a
        m, n = a.n_samples, a.n_samples if b is None else b.n_samples
        out = np.zeros((len(terms.outputs), m, n), np.int64)
        if not m or not n or not a.n_sites:
            return out
        side = self.largest_block(terms, 3)
        if max(m, n) <= side:
            return self._one_tile(a, b, terms)
        other = a if b is None else b
        for i in range(0, m, side):
            block_a = Planes(a.words[i : i + side], a.n_sites)
            for j in range(i if b is None else 0, n, side):
                block_b = Planes(other.words[j : j + side], other.n_sites)
                tile = self._one_tile(block_a, None if b is None and i == j else block_b, terms)
                out[:, i : i + side, j : j + side] = tile
                if b is None and i != j:
                    out[:, j : j + side, i : i + side] = tile.transpose(0, 2, 1)
        return out

    def top_matches(self, queries: Planes, database: Planes, k: int, min_called: int):
        """The best matches of `compare.identity.search`, chosen on the device (compare_gpu.py)."""
        from .compare import top_matches

        with _device_errors(f"the search of {queries.n_samples} profiles"):
            return top_matches(queries, database, self.device, k, min_called)

    def r2_pairs(self, planes: Planes, ends: np.ndarray, least: float):
        """Pairs of sites that may reach an r2, chosen on the device (compare_gpu.py), or None."""
        from .compare import r2_pairs

        with _device_errors(f"the correlations of {planes.n_samples} sites"):
            return r2_pairs(planes, ends, least, self.device)

    def scan_pairs(self, data: ScanData, first: range, top: int, cutoff: int | None = None) -> Hits:
        """The best pairs (epistasis_gpu.py)."""
        from .epistasis import scan_pairs

        with _device_errors(f"the scan of {data.n_sites} sites"):
            return scan_pairs(data, first, top, cutoff, self.device, self.kernel)

    def scan_triples(
        self, data: ScanData, first: range, top: int, cutoff: int | None = None
    ) -> Hits:
        """The best triples (epistasis_gpu.py)."""
        from .epistasis import scan_triples

        with _device_errors(f"the scan of {data.n_sites} sites"):
            return scan_triples(data, first, top, cutoff, self.device, self.kernel)

    def _one_tile(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        stream = self.stream(
            a.n_samples,
            None if b is None else b.n_samples,
            a.words.shape[1],
            a.words.shape[1] if b is None else b.words.shape[1],
            terms,
            a.n_sites,
        )
        stream.add(a, b)
        return stream.result()

    def minplus(self, c, a, b, *, symmetric: bool = False, bounds: Bounds | None = None) -> None:
        with _device_errors("a min-plus product"):
            on_device = isinstance(c, cupy.ndarray)
            minplus_gpu.multiply(
                c,
                a,
                b,
                symmetric=symmetric,
                bounds=bounds,
                device=self.device,
                free_bytes=0 if on_device else self.free_bytes(),
            )

    def fits(self, n: int, dtype: np.dtype) -> bool:
        """Whether the closure of n individuals runs wholly on the device."""
        side = divide_up(n, minplus_gpu.TILE) * minplus_gpu.TILE
        panels = 3 * PANEL * side
        return (side * side + panels) * np.dtype(dtype).itemsize <= self.free_bytes()

    def panel(self, w) -> int:
        """Individuals that become intermediate nodes together.

        A matrix in host memory passes through the device once a panel: long ones pay.
        """
        return closure_panel(len(w)) if isinstance(w, cupy.ndarray) else self.host_panel

    def close_block(self, w) -> None:
        minplus_gpu.close_block(w, self.device)

    def mirror(self, w) -> None:
        minplus_gpu.mirror(w, self.device)

    def transpose(self, source, target) -> None:
        minplus_gpu.transpose(source, target, self.device)

    def bound_tiles(self, dtype: np.dtype) -> tuple[int, int, int]:
        return minplus_gpu.TILE, minplus_gpu.TILE, minplus_gpu.RUN

    def tile_minima(self, x, height: int, width: int) -> cupy.ndarray:
        return minplus_gpu.tile_extremes(x, height, False, self.device)

    def tile_maxima(self, x, height: int, width: int) -> cupy.ndarray:
        return minplus_gpu.tile_extremes(x, height, True, self.device)

    def hold(self, w: np.ndarray) -> np.ndarray | cupy.ndarray:
        if not self.fits(len(w), w.dtype):
            return w
        with _device_errors(f"the distances of {len(w)} samples"):
            side = divide_up(len(w), minplus_gpu.TILE) * minplus_gpu.TILE
            held = cupy.full((side, side), infinity(w.dtype), w.dtype)
            held[: len(w), : len(w)] = cupy.asarray(w)
            cupy.fill_diagonal(held, 0)
            return held

    def fetch(self, held: np.ndarray | cupy.ndarray, w: np.ndarray) -> None:
        if not isinstance(held, cupy.ndarray):
            if held is not w:
                np.copyto(w, held)
            return
        with _device_errors(f"the distances of {len(w)} samples"):
            np.copyto(w, held[: len(w), : len(w)].get())


# One stage of one tile is what every size here is rounded up to.
assert STAGE_BITS == 64 * STAGE_WORDS
