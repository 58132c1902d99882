"""Launches of the scan kernels on a CUDA device, and the records that they write."""

from __future__ import annotations

import math

import cupy
import numpy as np

from ..engine.layout import SCAN
from ..engine.pinned_gpu import read_by_kernel
from .operands_gpu import DeviceScan, Operands
from .scan_plan import (
    LONGEST_RUN,
    RECORD_WORDS,
    Core,
    Pace,
    ScanShape,
    crowded_items,
    cut_runs,
    order_items,
    scan_shape,
)

#: Combinations that one launch may let through.
CAPACITY = 1 << 23


def _nothing() -> None:
    pass


class LaunchedScan(DeviceScan):
    """A scan that launches kernels.

    Attributes
    ----------
    order : int
        Sites of a combination.
    core : Core
    lockstep : int
        Stages after which thread blocks wait for each other; 0: never.
    bare : bool
        Whether records hold sites alone (`epistasis_plans.is_bare`).
    best : epistasis_best.Best
    crowded : bool array, or None
        Blocks of y and z that are counted apart, if some are (`epistasis_plans.crowded_items`).
    """

    order: int
    core: Core
    lockstep: int
    bare = False
    crowded: np.ndarray | None = None
    #: Packed planes of the first sites, where they have other states than the second ones.
    columns: Operands | None = None

    def prepare_launches(self) -> None:
        """Allocate counters."""
        self.records = cupy.empty((0, 0), np.uint32)
        self.number, self.progress = cupy.zeros(1, np.uint64), cupy.zeros(1, np.uint32)

    def prepare_records(self, pace: Pace) -> None:
        """Allocate records; after `wide` is known."""
        self.records = cupy.empty((CAPACITY, RECORD_WORDS[self.wide]), np.uint32)
        self.pace = pace

    def parts(self, order: int) -> int:
        """Parts of the depth of an operand of pairs or triples."""
        raise NotImplementedError

    def fields(self) -> dict[str, float]:
        """Fields of `Scan` (scan.cuh) that hold the bound of this scan."""
        raise NotImplementedError

    def z_sites(self, order: int) -> int:
        """Sites of z of one item."""
        columns = self.x_states if self.mixed else self.states
        return self.core.z_sites(order, self.states, self.apart, columns)

    @property
    def mixed(self) -> bool:
        """Whether it scans pairs of which the first site alone has missing genotypes."""
        return self.order == 2 and self.states != self.x_states

    def shape_of(self, order: int, table: int) -> ScanShape:
        """How the kernel for pairs or triples is compiled."""
        return scan_shape(
            self.core,
            order=order,
            states=self.states,
            table=table,
            wide=self.wide,
            joint=self.joint,
            parts=self.parts(order),
            bare=self.bare,
            lockstep=self.lockstep,
            device=self.device,
            apart=self.apart,
            x_states=self.x_states,
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

    def _items(self, order: int, y: range, z: range, operands: int = 1) -> np.ndarray:
        """Items of some sites y, z, int32 (n, 4): row, column, run of the batch's operands.

        Of triples, those that are counted as `apart` says.
        """
        blocks = self.device.multiprocessors // self.core.cluster
        tile = self.core.tile_sites
        width = self.z_sites(order)
        items = (
            order_items(z, y, tile, width, whole=True)
            if self.mixed
            else order_items(y, z, tile, width)
        )
        if order == 3 and self.crowded is not None:
            chosen = crowded_items(items, self.crowded, tile, width) == bool(self.apart)
            items = items[chosen]
        return cut_runs(items, operands, blocks, LONGEST_RUN if self.core.halves else math.inf)

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
                description if core.relay else read_by_kernel(description.view(np.uint8)),
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
        a_item = self.core.tile_sites * self.z_sites(self.order)
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
            self.merge(kept)
        if found <= CAPACITY:
            return found
        self.best.hits = before  # the tighter cutoff stays; the hits will be found again
        return -1

    def merge(self, n: int) -> None:
        """Take over the first n records."""
        self.best.merge(self.records[:n])
