"""Scans of pairs and triples of data larger than the device, block of sites by block of sites.

Planes stay in host memory: pinned, or in ordinary memory or a mapped file, from where they pass
through two pinned buffers. The device holds those of a few blocks, and those of the next one are on
their way while the combinations of these are scanned (`epistasis_block_plans.block_steps`). The
hits are those of a scan of all sites at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import cupy
import cupyx
import numpy as np

from ..core.threads import run_tasks
from ..engine.devices import Device
from ..engine.layout import divide_up
from ..engine.pinned_gpu import is_pinned
from ..engine.stream_plan import COPY_THREADS
from . import launches_gpu
from .blocks_plan import BLOCK_STEP, ScanSize, block_loads, block_ranges, block_sites, block_steps
from .parts_plan import both, incomplete_sites
from .scan_data import Hits, OneHot, ScanData, merge_hits
from .scan_plan import RECORD_WORDS

#: Bytes of one pinned buffer.
STAGING_BYTES = 64 << 20
#: Share of the device's memory up to which nobody asks how much of it is free.
SURELY_FREE = 1 / 4


class BlockPlanes:
    """Planes of some blocks of sites on the device, in places, and of one on its way.

    Parameters
    ----------
    data : ScanData
        All sites, in host memory.
    block : int
        Most sites of a block.
    n_blocks : int
        Places of blocks.
    device : Device
    threads : int
        CPU threads that copy into pinned memory.
    """

    def __init__(self, data: ScanData, block: int, n_blocks: int, device: Device, threads: int):
        self.given = [one.words for one in data.classes]
        self.n_samples = [one.n_samples for one in data.classes]
        self.device, self.threads = device, min(threads, COPY_THREADS)
        shapes = [words.shape[1:] for words in self.given]
        self.kept = [cupy.empty((n_blocks * block, *shape), np.uint64) for shape in shapes]
        self.next = [cupy.empty((block, *shape), np.uint64) for shape in shapes]
        self.stream = cupy.cuda.Stream(non_blocking=True)
        # the pool may return memory that queued kernels still use
        self.stream.wait_event(cupy.cuda.get_current_stream().record())
        self.pinned: list[np.ndarray] = []
        self.read = [cupy.cuda.Event(), cupy.cuda.Event()]
        self.worker = ThreadPoolExecutor(1)
        self.coming: Future | None = None

    def send(self, sites: range) -> None:
        """Start to copy a block to the device, in another thread."""
        self.coming = self.worker.submit(self._send, sites)

    def take(self, place: int) -> None:
        """Put the block that was sent into a place."""
        here, block = cupy.cuda.get_current_stream(), len(self.next[0])
        here.wait_event(self.coming.result())
        for kept, arrived in zip(self.kept, self.next, strict=True):
            kept[place * block : (place + 1) * block] = arrived
        self.stream.wait_event(here.record())  # before the next block arrives

    def move(self, source: int, place: int) -> None:
        """Copy the block in one place to another one."""
        block = len(self.next[0])
        for kept in self.kept:
            here = kept[source * block : (source + 1) * block]
            kept[place * block : (place + 1) * block] = here

    def classes(self, n_sites: int) -> tuple[OneHot, OneHot]:
        """The first sites that are kept."""
        controls, cases = (
            OneHot(kept[:n_sites], n) for kept, n in zip(self.kept, self.n_samples, strict=True)
        )
        return controls, cases

    def close(self) -> None:
        """End the thread."""
        self.worker.shutdown()

    def _send(self, sites: range) -> cupy.cuda.Event:
        cupy.cuda.Device(self.device.index).use()
        for given, there in zip(self.given, self.next, strict=True):
            source = given[sites.start : sites.stop]
            if not source.size:  # nobody is in this class
                continue
            if source.flags.c_contiguous and is_pinned(source):
                there[: len(sites)].set(source, stream=self.stream)
            else:
                self._send_in_pieces(source, there)
        return self.stream.record()

    def _send_in_pieces(self, source: np.ndarray, there: cupy.ndarray) -> None:
        row = source.shape[1] * source.shape[2]
        rows = max(1, STAGING_BYTES // (8 * row))
        if not self.pinned or self.pinned[0].size < rows * row:
            self.stream.synchronize()
            self.pinned = [cupyx.empty_pinned(rows * row, np.uint64) for _ in range(2)]
        for turn, start in enumerate(range(0, len(source), rows)):
            part = source[start : start + rows]
            pinned = self.pinned[turn % 2][: len(part) * row].reshape(part.shape)
            self.read[turn % 2].synchronize()
            few = max(1, divide_up(len(part), self.threads))
            pieces = [(pinned[k : k + few], part[k : k + few]) for k in range(0, len(part), few)]
            run_tasks(np.copyto, pieces, self.threads)
            there[start : start + len(part)].set(pinned, stream=self.stream)
            self.read[turn % 2].record(self.stream)


def choose_block(
    data: ScanData, order: int, first: range, room: Callable[[], int], limited: bool
) -> int | None:
    """Sites of a block, or None: all sites fit the device's memory at once.

    Parameters
    ----------
    data, order, first
        As in `scan_blocks`.
    room : callable
        How many bytes of the device's memory the scan may take.
    limited : bool
        Whether that may be less than what is free.
    """
    if isinstance(data.classes[0].words, cupy.ndarray):
        return None
    size = size_of(data, order, cupy.cuda.runtime.memGetInfo()[1])
    needed = size.bytes(data.n_sites)
    if not limited and needed <= SURELY_FREE * size.device_bytes:
        return None
    free = room()
    if needed <= free:
        return None
    return block_sites(size, data.n_sites - first_block(first), free)


def size_of(data: ScanData, order: int, device_bytes: int) -> ScanSize:
    """What decides the memory of this scan, on a device with so much memory."""
    words = [one.words for one in data.classes]
    return ScanSize(
        order=order,
        states=words[0].shape[1],
        row_bytes=sum(8 * one.shape[1] * one.shape[2] for one in words),
        largest_class=max(one.n_samples for one in data.classes),
        interaction=data.lr_bits is not None,
        records=4 * launches_gpu.CAPACITY * RECORD_WORDS[1],
        device_bytes=device_bytes,
    )


def first_block(first: range) -> int:
    """The site with which the first block begins: no site before it is part of a combination."""
    return first.start // BLOCK_STEP * BLOCK_STEP


def scan_blocks(
    scan: Callable[..., tuple[Hits, object]],
    data: ScanData,
    order: int,
    firsts: list[range],
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None,
    threads: int,
    block: int,
) -> Hits:
    """The best combinations, with a few blocks of sites on the device at a time.

    Parameters
    ----------
    scan : callable
        `epistasis.scan_step`; parameters up to `threads` are also its.
    block : int
        Sites of a block, a multiple of BLOCK_STEP.
    """
    if data.complete_from is None:
        rows = np.flatnonzero(incomplete_sites(data, threads))
        data = replace(data, complete_from=int(rows[-1]) + 1 if len(rows) else 0)
    n, prior = data.n_sites, None
    hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))
    start = min(first_block(first) for first in firsts)
    blocks = [range(a, min(a + block, n)) for a in range(start, n, block)]
    chosen = [i for i, sites in enumerate(blocks) if any(both(sites, one) for one in firsts)]
    steps = list(block_steps(len(blocks), order, chosen))
    loads = list(block_loads(steps, order))
    coming = iter(
        [step[new] for step, (_, new) in zip(steps, loads, strict=True) if new is not None]
    )
    planes = BlockPlanes(data, block, min(order, len(blocks)), device, threads)
    try:
        for one in itertools.islice(coming, 1):
            planes.send(blocks[one])
        for step, (moves, new) in zip(steps, loads, strict=True):
            for move in moves:
                planes.move(*move)
            if new is not None:
                planes.take(new)
                for one in itertools.islice(coming, 1):
                    planes.send(blocks[one])
            rows = np.concatenate([np.arange(blocks[i].start, blocks[i].stop) for i in step])
            of_first, *within = block_ranges(len(step), block, len(rows))
            shift = blocks[step[0]].start
            own = [both(range(one.start - shift, one.stop - shift), of_first) for one in firsts]
            some = data.of_sites(rows, planes.classes(len(rows)))
            given = (top, cutoff, device, kernel, threads, tuple(within))
            found, prior = scan(some, order, own, *given, prior)
            found = Hits(found.cost, rows[found.sites].astype(np.int32))
            hits = merge_hits([hits, found], data.rank, top)
            if len(hits.cost) >= top:
                cutoff = int(hits.cost[-1])
    finally:
        planes.close()
    return hits
