"""Scans of all pairs and triples on a CUDA device (kernels/epistasis/).

The device computes tables and a lower bound of each combination's cost, and writes records of
those whose bound is not above the K-th best cost so far; their exact integer costs decide. Work is
cut into batches of x (triples) and launches of items (tiles of y and z); after each launch the K-th
best is updated. The result does not depend on how the work is cut.

Scans by interaction write records where the mutual information exceeds that of fewer sites by
enough; a second bound of these is computed from their cells, and the best of them by it are fitted
on the host until the bound of the next one is not enough (docs/interactions.md).
"""

from __future__ import annotations

import functools
import math

import cupy
import numpy as np

from ..base import Hits, ScanData
from ..host.interaction import UNIT
from .devices import Device, supported_kernels
from .epistasis_best import INT64_MAX, Best
from .epistasis_bound import Bound, need_of, score_scale, share_of_cases
from .epistasis_known import information_of_pairs
from .epistasis_operands import KERNEL, DeviceScan, Operands
from .epistasis_planes import read_by_kernel
from .epistasis_plans import (
    FIRST_BARE,
    FIRST_LAUNCH,
    LOCKSTEP,
    LOCKSTEP_STEPS,
    MAX_GRID,
    MAX_STORED,
    RECORD_WORDS,
    Batch,
    Pace,
    ScanShape,
    align,
    choose_core,
    cut_runs,
    is_bare,
    missing_samples,
    operand_bytes,
    order_items,
    scan_shape,
    upload_blocks,
)
from .layout import SCAN, TILE_SITES

#: Combinations that one launch may let through.
CAPACITY = 1 << 23
#: Share of the device's memory for the packed planes of one batch, and most x of one.
PACKED_SHARE, BATCH = 1 / 8, 256


def _nothing() -> None:
    pass


class Scanner(DeviceScan):
    """One scan on the current device.

    Parameters
    ----------
    data : ScanData
    order, top, cutoff
        As in `Backend.scan_triples`.
    device : Device
    kernel : str, optional
        wgmma, mma or popc; the fastest that the device and the data allow.
    threads : int
        CPU threads that fit interactions.
    """

    def __init__(
        self,
        data: ScanData,
        order: int,
        top: int,
        cutoff: int | None,
        device: Device,
        kernel: str | None = None,
        threads: int = 1,
    ):
        super().__init__(data, device)
        self.order, self.n_cells = order, 3**order
        self.best = Best(self, order, top, cutoff, threads)
        self.scale = score_scale(data)
        # The counts of both classes share a word where every cell fits 16 bits and a ratio of small
        # weights is close to the share of cases.
        weighted, steps = Bound.weighted(self.n_classes), 0.0
        self.wide = int(weighted is None or (order == 2 and max(self.n_classes) > MAX_STORED))
        if order == 3:
            self.receive(range(data.n_sites), self.planes.send(range(data.n_sites)))
            steps = self.measure_depths()
        self.bound = Bound.of(share_of_cases(self.n_classes)) if self.wide else weighted
        kernel = kernel or supported_kernels(device)[0]
        self.core = choose_core(kernel, order, self.states, steps)
        if order == 3 and self.core.relay:
            self.join_neighbours(steps)
        self.lockstep = LOCKSTEP if order == 2 or steps >= LOCKSTEP_STEPS else 0
        self.bare = is_bare(self.core, order, self.states)
        self.records = cupy.empty((CAPACITY, RECORD_WORDS[self.wide]), np.uint32)
        self.number, self.progress = cupy.zeros(1, np.uint64), cupy.zeros(1, np.uint32)
        self.pace = Pace(order, top, FIRST_BARE if self.bare else FIRST_LAUNCH)

    # ------------------------------------------------------------------ launches

    def _parts(self, order: int) -> int:
        """Parts of the depth of an operand."""
        return self.depths.shape[1] // 2 if order == 3 else 1

    def shape_of(self, order: int, table: int) -> ScanShape:
        """How the kernel for pairs or triples is compiled."""
        return scan_shape(
            self.core,
            order=order,
            states=self.states,
            table=table,
            wide=self.wide,
            joint=self.joint,
            parts=self._parts(order),
            bare=self.bare,
            lockstep=self.lockstep,
            device=self.device,
        )

    def _scan_kernel(self, order: int, table: int) -> tuple[cupy.RawKernel, int]:
        """The kernel for pairs or triples, and the shared memory that it needs."""
        shape = self.shape_of(order, table)
        function = self.load(self.core.file, "epistasis_scan", **shape.defines)
        function.max_dynamic_shared_size_bytes = shape.shared_bytes
        return function, shape.shared_bytes

    def _describe(self, first: range) -> np.ndarray:
        """`Scan` of kernels/epistasis/scan.cuh."""
        one = np.zeros(1, SCAN)
        one["records"], one["number"] = self.records.data.ptr, self.number.data.ptr
        one["capacity"], one["n_sites"] = CAPACITY, self.data.n_sites
        if self.allowed is not None:
            one["allowed"] = self.allowed.data.ptr
            one["allowed_words"] = self.allowed.shape[1] * 2
        one["first"], one["stop"] = first.start, first.stop
        for name, value in self.bound.fields().items():
            one[name] = value
        cutoff = self.best.cutoff
        cutoff = math.inf if cutoff == INT64_MAX else cutoff / self.scale
        one["need"] = need_of(
            cutoff, self.k2, self.n_classes, self.bound.r, self.n_cells, self._missing()
        )
        if self.interaction:
            one["need"] = max(-3e38, float(one["need"][0]) - 2 * UNIT)
        one["controls"], one["cases"] = self.n_classes
        one["margins"] = self.margins.data.ptr
        one["known"], one["known_pitch"] = self.known_address, self.padded
        return one

    def _missing(self) -> tuple[int, int]:
        """At most so many samples of each class lack a genotype at the sites of a combination."""
        if self.states == 2:
            return 0, 0
        if self.missing is None:
            self.missing = missing_samples(self.order, self.sizes_there.get())
        return self.missing

    def _items(self, order: int, y: range, z: range, operands: int = 1) -> np.ndarray:
        """Items of some sites y, z, int32 (n, 4): row, column, run of the batch's operands."""
        blocks = self.device.multiprocessors // self.core.cluster
        tile, width = TILE_SITES * self.core.cluster, self.core.z_sites(order, self.states)
        items = order_items(y, z, tile, width)
        return cut_runs(items, operands, blocks)

    def _launch(self, order, table, operands: Operands, items, first: int, yz, description) -> None:
        function, shared = self._scan_kernel(order, table)
        core, cluster = self.core, self.core.cluster
        blocks = min(len(items), self.device.multiprocessors // cluster) * cluster
        self.progress.fill(0)
        words = blocks * core.scratch_words(order, self.states, self._parts(order))
        scratch = cupy.empty(max(1, words), np.uint32)
        function(
            (blocks,),
            (self.core.threads,),
            (
                operands.packed,
                operands.stages,
                operands.segments,
                items,
                np.int32(len(items)),
                np.int32(first),
                np.int32(operands.batch.first_site),
                np.int32(self.padded),
                operands.xy,
                yz,
                scratch,
                self.progress,
                description if core.relay else cupy.asarray(description.view(np.uint8)),
            ),
            shared_mem=shared,
        )

    # ------------------------------------------------------------------ the best so far

    def _run(
        self, operands: Operands, items, on_device, first: range, yz, meanwhile=_nothing
    ) -> None:
        """Scan runs of items, as many at a time as `Pace` says.

        `on_device`: a copy of the items on the device; `meanwhile`: what the host does while the
        last of them are scanned.
        """
        if not len(items):
            meanwhile()
        width = self.core.z_sites(self.order, self.states)
        a_item = TILE_SITES * self.core.cluster * width
        a_item *= self.joint * int((items[:, 3] - items[:, 2]).max(initial=1))
        done = 0
        while done < len(items):
            budget = self.pace.budget(CAPACITY)
            size = max(1, min(len(items) - done, budget // a_item))
            # a launch that lets too many through is repeated with fewer items; one always fits
            while True:
                self._start(operands, on_device[done : done + size], first, yz)
                if done + size == len(items):
                    meanwhile()
                    meanwhile = _nothing
                if (found := self._take_over()) >= 0:
                    break
                size = max(1, size // 4)
            self.pace.note(size * a_item, found)
            done += size

    def _start(self, operands: Operands, items, first: range, yz) -> None:
        self.number.fill(0)
        self._launch(self.order, 0, operands, items, first.start, yz, self._describe(first))

    def _take_over(self) -> int:
        """Merge the records of a launch; returns their number, or -1 if they exceeded the room."""
        found = int(self.number.get()[0])
        kept = min(found, CAPACITY)
        before = self.best.hits
        if kept:
            self._merge(kept)
        if found <= CAPACITY:
            return found
        self.best.hits = before  # the tighter cutoff stays; the hits will be found again
        return -1

    def _merge(self, n: int) -> None:
        if self.bare:
            planes = self.planes
            self.load(KERNEL, "count_records")(
                (n,),
                (256,),
                (self.records, *planes.words, *planes.n_words, *map(np.int32, self.n_classes)),
            )
        self.best.merge(self.records[:n])

    # ------------------------------------------------------------------ scans

    def pairs(self, first: range) -> Hits:
        """The best pairs (y, z), y in `first`."""
        first = range(first.start, min(first.stop, self.data.n_sites))
        if not len(first) or self.data.n_sites < 2:
            return self.best.hits
        operands = self.operands_of_all(align(first.start, self.states))
        start, n = operands.batch.first_site, self.data.n_sites
        blocks = upload_blocks(start, n, self.states)
        sent = [self.planes.send(block) for block in blocks]
        runs = [self._items(2, range(first.start, min(first.stop, b.stop)), b) for b in blocks]
        there = read_by_kernel(np.concatenate(runs))
        there = cupy.split(there, np.cumsum([len(run) for run in runs[:-1]]))

        def prepare(block: range, arrival: cupy.cuda.Event) -> None:
            self.receive(block, arrival)
            self.pack(operands, range(block.start, self.padded if block.stop == n else block.stop))

        steps = [functools.partial(prepare, *one) for one in zip(blocks, sent, strict=True)]
        steps[0]()
        for run, on_device, following in zip(runs, there, [*steps[1:], _nothing], strict=True):
            self._run(operands, run, on_device, first, np.uint64(0), following)
        return self.best.hits

    def _pair_tables(self, first_site: int) -> tuple[cupy.ndarray, np.uint64]:
        """Tables of all pairs of sites from `first_site` on, and the address of site 0's."""
        tile_words = self.padded * TILE_SITES * self.states**2
        first_tile = first_site // TILE_SITES
        tables = cupy.empty((self.padded // TILE_SITES - first_tile, tile_words), np.uint32)
        base = np.uint64(tables.data.ptr - first_tile * tile_words * 4)
        sites = range(first_site, self.data.n_sites)
        items = self._items(2, sites, sites)
        operands = self.operands_of_all(first_site)
        self.pack(operands, range(first_site, self.padded))
        self._launch(2, 1, operands, cupy.asarray(items), 0, base, self._describe(range(0)))
        return tables, base

    def triples(self, first: range) -> Hits:
        """The best triples (x, y, z), x in `first`."""
        stop = min(first.stop, self.data.n_sites - 2)
        if first.start >= stop:
            return self.best.hits
        samples = self.transposed()
        start = align(first.start, self.states)
        tables, yz = self._pair_tables(start)
        if self.offsets:
            self.known, self.known_address = information_of_pairs(self, yz, start)
        packed_bytes = int(PACKED_SHARE * cupy.cuda.runtime.memGetInfo()[1])
        x = first.start
        while x < stop:
            first_site = align(x + 1, self.states)
            batch = Batch.of(self.depths[x : min(stop, x + BATCH) : self.joint], first_site)
            stage_bytes = operand_bytes(self.padded - first_site, self.states)
            room = min(packed_bytes // stage_bytes, MAX_GRID)
            room = int(np.searchsorted(batch.stages[1:], room, "right"))
            batch = batch.head(max(1, room))
            operands = self.compact(samples, x, batch)
            n = self.data.n_sites
            items = self._items(3, range(x + 1, n), range(first_site, n), len(batch))
            end = min(stop, x + self.joint * len(batch))
            self._run(operands, items, cupy.asarray(items), range(x, end), yz)
            x = end
        del tables
        return self.best.hits


def scan_pairs(
    data: ScanData,
    first: range,
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None = None,
    threads: int = 1,
) -> Hits:
    """See `engine.base.Backend.scan_pairs`."""
    return Scanner(data, 2, top, cutoff, device, kernel, threads).pairs(first)


def scan_triples(
    data: ScanData,
    first: range,
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None = None,
    threads: int = 1,
) -> Hits:
    """See `engine.base.Backend.scan_triples`."""
    return Scanner(data, 3, top, cutoff, device, kernel, threads).triples(first)
