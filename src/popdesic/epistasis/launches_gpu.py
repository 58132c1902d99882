"""Launches of the scan kernels on a CUDA device, and the records that they write."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import KernelSource, divide_up
from ..engine.pinned_gpu import read_by_kernel
from .layout import COMPACT_ROWS, COMPACT_SCORE, LIMIT, RECORD_SITES, SCAN, TRANSPOSED_WORDS
from .parts_plan import ScanPart
from .planes_gpu import ScanPlanes
from .scan_data import OneHot, ResidualData, ScanData
from .scan_plan import (
    COMPACT_WIDTH,
    FEWER_QUADS,
    LONGEST_RUN,
    MAX_GRID,
    PACKED_SHARE,
    QUAD_WORDS,
    RECORD_WORDS,
    Batch,
    Core,
    Pace,
    ScanShape,
    cut_runs,
    operand_bytes,
    overflowing_items,
    padded_sites,
    scan_defines,
    scan_shape,
    schedule_tiles,
)

#: Combinations that one launch may let through.
CAPACITY = 1 << 23


def _nothing() -> None:
    pass


@dataclass
class Operands:
    """Packed planes of a batch on the device, of the sites from its first one to `end`."""

    batch: Batch
    packed: cupy.ndarray
    stages: cupy.ndarray
    segments: cupy.ndarray
    xy: cupy.ndarray | np.uint64
    end: int
    states: int

    def holds(self, first_site: int, end: int, states: int) -> bool:
        """Whether these are the operands of some sites."""
        mine = self.batch.first_site, self.end, self.states
        return mine == (first_site, end, states)


class DeviceScan:
    """What one scan holds on the current device.

    Attributes
    ----------
    planes : ScanPlanes
    margins : uint32 device array, (padded sites, ...)
        Samples of each site in each stored state, as `margin_of` of scan.cuh reads them.
    defines : dict
        What all kernels of the scan are compiled with, besides the number of first sites.
    places : int32 device array, (n_sites, 2), or None
        Chromosome and position of each site, where partners have a least distance.
    states, x_states : int
        Stored states of y and z, and of x, that are counted.
    stored : int
        States of a site that the planes hold.
    operand_sites : int
        First sites of one operand.
    known_address : int
        Of what the filter by interaction looks up (`Scan` of scan.cuh).
    quads : int
        1: triples are scanned for each genotype of one more site, `w`.
    """

    #: 1: the cells of both classes do not share a word; nor do the products.
    split_cells = split_accumulators = 0
    operand_sites = 1
    known_address = 0
    quads, w = 0, -1
    interaction = residuals = logs = False
    margins: cupy.ndarray

    def __init__(
        self,
        data: ScanData | ResidualData,
        classes: tuple[OneHot, ...],
        device: Device,
        part: ScanPart | None = None,
        planes: ScanPlanes | None = None,
    ) -> None:
        self.data, self.device = data, device
        self.stored = self.states = self.x_states = classes[0].words.shape[1]
        if part is not None:
            self.states, self.x_states = part.states, part.x_states
        self.n_classes = tuple(one.n_samples for one in classes)
        self.padded = padded_sites(data.n_sites, self.states)
        self.row_words = self.padded * self.states // 32
        self.places = self.middle = None
        rule = data.partners
        if rule is not None and rule.min_distance_bp > 0:
            places = np.stack([rule.chrom, rule.pos], axis=1)
            self.places = read_by_kernel(places.astype(np.int32))
        if rule is not None and rule.max_r2 < 1:
            self.middle = read_by_kernel(rule.middle.astype(np.int8))
        self.planes = ScanPlanes(classes) if planes is None else planes
        self.packed = cupy.empty(0, np.uint8)

    def load(self, source: KernelSource, name: str, **defines) -> cupy.RawKernel:
        """A kernel, compiled for this scan."""
        of_all = scan_defines(
            split_cells=self.split_cells,
            split_accumulators=self.split_accumulators,
            states=self.states,
            operand_sites=defines.get("OPERAND_SITES", 1),
            interaction=self.interaction,
            residuals=self.residuals,
            logs=self.logs,
            x_states=self.x_states,
            planes=self.stored,
            quads=self.quads,
        )
        merged = tuple(sorted({**of_all, **defines}.items()))
        return load_function(source, name, merged, self.device.capability)

    def limit(self) -> np.ndarray:
        """`Correlation` of compact_score.cu."""
        one = np.zeros(1, LIMIT)
        one["w"] = self.w
        if self.middle is not None:
            one["middle"], one["max_r2"] = self.middle.data.ptr, self.data.partners.max_r2
        return one

    def _empty_operands(self, batch: Batch, end: int | None = None) -> Operands:
        end = self.padded if end is None else end
        stage = operand_bytes(end - batch.first_site, self.states)
        size = max(16, int(batch.stages[-1]) * stage)
        if self.packed.size < size:
            self.packed = None  # freed before the larger one is allocated
            self.packed = cupy.empty(size, np.uint8)
        packed = self.packed[:size]
        stages, segments = read_by_kernel(batch.stages), read_by_kernel(batch.segments)
        return Operands(batch, packed, stages, segments, np.uint64(0), end, self.states)

    def gather(self, samples, carriers: cupy.ndarray, operands: Operands) -> None:
        """Pack the planes of carriers: int32 (stages of all operands, samples), -1: none.

        `samples`: sample-major planes of both classes (of one, twice). Also adds up `operands.xy`.
        """
        batch, total = operands.batch, int(operands.batch.stages[-1])
        row_blocks = (self.padded - batch.first_site) * self.states // COMPACT_ROWS
        width = min(row_blocks, COMPACT_WIDTH)
        self.load(COMPACT_SCORE, "compact_rows", OPERAND_SITES=self.operand_sites)(
            (2 * width, total, divide_up(row_blocks, width)),
            (256,),
            (
                *samples,
                carriers,
                read_by_kernel(batch.visits()),
                operands.stages,
                operands.segments,
                operands.packed,
                operands.xy,
                np.int32(self.row_words),
                np.int32(batch.first_site),
                np.int32(self.padded),
            ),
        )

    def transposed(self) -> list[cupy.ndarray]:
        """Sample-major planes of each class."""
        kernel, out = self.load(COMPACT_SCORE, "transpose_planes"), []
        planes = self.planes
        for words, n_words, n in zip(planes.words, planes.n_words, self.n_classes, strict=True):
            samples = cupy.zeros((max(1, n), self.row_words), np.uint32)
            if n:
                kernel(
                    (self.row_words // TRANSPOSED_WORDS, divide_up(int(n_words), 32)),
                    (32 * TRANSPOSED_WORDS,),
                    (
                        words,
                        samples,
                        np.int32(self.data.n_sites),
                        n_words,
                        np.int32(n),
                        np.int32(self.row_words),
                    ),
                )
            out.append(samples)
        return out


class LaunchedScan(DeviceScan):
    """A scan that launches kernels.

    Attributes
    ----------
    order : int
        Sites of a combination.
    core : Core
    lockstep : int
        Stages after which thread blocks wait for each other; 0: never.
    sites_only : bool
        Whether records hold sites alone (`epistasis_plans.keeps_sites_only`).
    best : epistasis_best.Best
    overflowing : bool array, or None
        Blocks of y and z that are counted apart, if some are (`epistasis_plans.overflowing_items`).
    """

    order: int
    core: Core
    lockstep: int
    sites_only = False
    overflowing: np.ndarray | None = None
    #: Packed planes of the first sites, where they have other states than the second ones.
    columns: Operands | None = None

    def prepare_launches(self) -> None:
        """Allocate counters."""
        self.records = cupy.empty((0, 0), np.uint32)
        self.number, self.progress = cupy.zeros(1, np.uint64), cupy.zeros(1, np.uint32)

    def prepare_records(self, pace: Pace) -> None:
        """Allocate records; after `split_cells` is known."""
        words = (QUAD_WORDS if self.quads else RECORD_WORDS)[self.split_cells]
        self.records = cupy.empty((self.capacity, words), np.uint32)
        self.pace = pace

    @property
    def capacity(self) -> int:
        """Combinations that one launch may let through."""
        return CAPACITY // (FEWER_QUADS if self.quads else 1)

    @property
    def launch_order(self) -> int:
        """Sites of a combination as the kernels see it."""
        return min(self.order, RECORD_SITES)

    def parts(self, order: int) -> int:
        """Parts of the depth of an operand of pairs or triples."""
        raise NotImplementedError

    def fields(self) -> dict[str, float]:
        """Fields of `Scan` (scan.cuh) that hold the bound of this scan."""
        raise NotImplementedError

    def z_sites(self, order: int) -> int:
        """Sites of z of one item."""
        columns = self.x_states if self.mixed else self.states
        return self.core.z_sites(order, self.states, self.split_accumulators, columns)

    @property
    def mixed(self) -> bool:
        """Whether it scans pairs of which the first site alone has missing genotypes."""
        return self.order == 2 and self.states != self.x_states

    def shape_of(self, order: int, table: int) -> ScanShape:
        """How the kernel for pairs or triples is compiled."""
        return scan_shape(
            self.core,
            order=order + self.quads if order == 3 else order,
            states=self.states,
            table=table,
            split_cells=self.split_cells,
            operand_sites=self.operand_sites,
            parts=self.parts(order),
            sites_only=self.sites_only,
            lockstep=self.lockstep,
            device=self.device,
            split_accumulators=self.split_accumulators,
            x_states=self.x_states,
        )

    def _scan_kernel(self, order: int, table: int) -> tuple[cupy.RawKernel, int]:
        """The kernel for pairs or triples, and the shared memory that it needs."""
        shape = self.shape_of(order, table)
        function = self.load(self.core.source, "epistasis_scan", **shape.defines)
        function.max_dynamic_shared_size_bytes = shape.shared_bytes
        return function, shape.shared_bytes

    def _describe(self, first: range) -> np.ndarray:
        """`Scan` of kernels/epistasis/scan.cuh."""
        one = np.zeros(1, SCAN)
        one["records"], one["number"] = self.records.data.ptr, self.number.data.ptr
        one["capacity"], one["n_sites"] = self.capacity, self.data.n_sites
        if self.places is not None:
            one["places"] = self.places.data.ptr
            one["min_distance"] = self.data.partners.min_distance_bp
        one["first"], one["stop"] = first.start, first.stop
        one["margins"] = self.margins.data.ptr
        one["known"], one["known_pitch"] = self.known_address, self.padded
        if self.columns is not None:
            one["columns"] = self.columns.packed.data.ptr
            one["first_column"] = self.columns.batch.first_site
            one["end_of_columns"] = self.columns.end
        for name, value in self.fields().items():
            one[name] = value
        return one

    def batch_of(self, sizes: np.ndarray, first_site: int, together: int = 1) -> Batch:
        """As many of some operands as have room, `together` of them at least and at a time.

        `sizes`: as of `Batch.of`.
        """
        batch = Batch.of(sizes, first_site)
        packed_bytes = int(PACKED_SHARE * cupy.cuda.runtime.memGetInfo()[1])
        stage_bytes = operand_bytes(self.padded - first_site, self.states)
        room = min(packed_bytes // stage_bytes, MAX_GRID)
        room = int(np.searchsorted(batch.stages[1:], room, "right"))
        return batch.head(together * max(1, room // together))

    def _items(self, order: int, y: range, z: range, operands: int = 1) -> np.ndarray:
        """Items of some sites y, z, int32 (n, 4): row, column, run of the batch's operands.

        Of triples, those that are counted as `split_accumulators` says.
        """
        blocks = self.device.multiprocessors // self.core.cluster
        tile = self.core.tile_sites
        width = self.z_sites(order)
        items = (
            schedule_tiles(z, y, tile, width, whole=True)
            if self.mixed
            else schedule_tiles(y, z, tile, width)
        )
        if order == 3 and self.overflowing is not None:
            chosen = overflowing_items(items, self.overflowing, tile, width) == bool(
                self.split_accumulators
            )
            items = items[chosen]
        return cut_runs(
            items, operands, blocks, LONGEST_RUN if self.core.epilogue_subtiles else math.inf
        )

    def _launch(self, order, table, operands: Operands, items, first: int, yz, description) -> None:
        function, shared = self._scan_kernel(order, table)
        core, cluster = self.core, self.core.cluster
        blocks = min(len(items), self.device.multiprocessors // cluster) * cluster
        self.progress.fill(0)
        shape = self.shape_of(order, table).defines
        scratch = cupy.empty(max(1, shape["LAUNCH_SCRATCH"] * blocks), np.uint32)
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
                np.int32(operands.end),
                operands.xy,
                yz,
                scratch,
                self.progress,
                description
                if core.epilogue_workspace
                else read_by_kernel(description.view(np.uint8)),
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
        a_item = self.core.tile_sites * self.z_sites(self.launch_order)
        a_item *= self.operand_sites * int((items[:, 3] - items[:, 2]).max(initial=1))
        done = 0
        while done < len(items):
            budget = self.pace.budget(self.capacity)
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
        given = operands, items, first.start, yz, self._describe(first)
        self._launch(self.launch_order, 0, *given)

    def _take_over(self) -> int:
        """Merge the records of a launch; returns their number, or -1 if they exceeded the room."""
        found = int(self.number.get()[0])
        kept = min(found, self.capacity)
        before = self.best.hits
        if kept:
            self.merge(kept)
        if found <= self.capacity:
            return found
        self.best.hits = before  # the tighter cutoff stays; the hits will be found again
        return -1

    def merge(self, n: int) -> None:
        """Take over the first n records."""
        self.best.merge(self.records[:n])
