"""Planes of cases and controls on a CUDA device: their sizes, margins and operands."""

from __future__ import annotations

import cupy
import numpy as np

from ..core.errors import UserError
from ..engine.devices import Device
from ..engine.layout import STAGE_BITS, divide_up
from ..engine.pinned_gpu import read_by_kernel
from .launches_gpu import LaunchedScan, Operands
from .layout import COMPACT_SCORE, OF_W, STEP_BITS, TILE_SITES
from .parts_plan import ScanPart
from .planes_gpu import ScanPlanes
from .scan_data import ScanData
from .scan_plan import (
    MAX_CLASS,
    MAX_GRID,
    MAX_SHARED,
    ROUNDING,
    Batch,
    depths_of,
    operand_bytes,
    operand_segments,
    shared_depths,
    shares_operand,
)


class ClassScan(LaunchedScan):
    """A scan of cases and controls.

    Attributes
    ----------
    sizes_there : int32 device array, (n_sites, 2, stored)
        Samples of each site, class and stored state; perhaps counted by the scan of another part.
    margins : uint32 device array, (padded sites, stored), with `split_cells` (.., stored, 2)
        The same: (controls << 16) + cases, or both.
    depths : int64 array, (operands, segments)
        Samples of each segment of an operand; of triples.
    missing : tuple of int, or None
        See `epistasis_plans.missing_samples`; None until it is needed.
    """

    depths: np.ndarray

    def __init__(
        self,
        data: ScanData,
        device: Device,
        part: ScanPart | None = None,
        planes: ScanPlanes | None = None,
        tables: tuple[cupy.ndarray, cupy.ndarray] | None = None,
        sizes: cupy.ndarray | None = None,
    ) -> None:
        for one in data.classes:
            if one.n_samples > MAX_CLASS:
                raise UserError(
                    f"column phenotype of the sample sheet has {one.n_samples} samples of one "
                    f"class, and an epistasis scan on a GPU counts at most {MAX_CLASS}; set device "
                    "to cpu."
                )
        super().__init__(data, data.classes, device, part, planes)
        self.interaction = data.lr_bits is not None
        #: Whether the filter looks up what parts of a combination say about the class.
        self.offsets = self.interaction and self.x_states == 2
        self.total, self.part = tables or (read_by_kernel(data.total), read_by_kernel(data.part))
        if sizes is None:
            sizes = cupy.zeros((data.n_sites, 2, self.stored), np.int32)
        self.sizes_there = sizes
        self.missing: tuple[int, int] | None = None
        if self.offsets:
            self.known = cupy.zeros(self.padded, np.float32)
            self.known_address = self.known.data.ptr

    def receive(self, sites: range, arrival: cupy.cuda.Event) -> None:
        """Wait (on the stream) for the planes of some sites, and count their states."""
        cupy.cuda.get_current_stream().wait_event(arrival)
        self.missing = None  # that of the sites so far
        count = self.load(COMPACT_SCORE, "count_states")
        for c, words in enumerate(self.planes.words):
            count(
                (divide_up(max(1, len(sites)) * self.stored * 32, 256),),
                (256,),
                (
                    words,
                    self.sizes_there,
                    np.int32(sites.start),
                    np.int32(sites.stop),
                    self.planes.n_words[c],
                    np.int32(c),
                ),
            )
        if self.offsets:
            self._know_sites(sites)
        self._fill_margins(sites)

    def make_margins(self, sites: range) -> None:
        """Margins as `split_cells` says; of `sites`, whose states are counted, and 0."""
        words = (2,) if self.split_cells else ()
        self.margins = cupy.zeros((self.padded, self.stored, *words), np.uint32)
        self._fill_margins(sites)

    def _fill_margins(self, sites: range) -> None:
        sizes = self.sizes_there[sites.start : sites.stop].astype(np.uint32)
        self.margins[sites.start : sites.stop] = (
            cupy.moveaxis(sizes, 1, 2) if self.split_cells else (sizes[:, 0] << 16) + sizes[:, 1]
        )

    def _know_sites(self, sites: range) -> None:
        """What some sites say about the class: N times the mutual information, rounded down.

        In nats. The offsets of the filter by interaction, for scans without missing genotypes.
        """
        total, sizes = self.total, self.sizes_there[sites.start : sites.stop, :, :2]
        third = read_by_kernel(np.array(self.n_classes, np.int32)) - sizes.sum(axis=2)
        cells = cupy.concatenate([sizes, third[:, :, None]], axis=2)
        cost = (total[cells.sum(axis=1)] - total[cells].sum(axis=1)).sum(axis=1)
        n0, n1 = self.n_classes
        whole = total[n0 + n1] - total[n0] - total[n1]
        self.known[sites.start : sites.stop] = (whole - cost) * self._rounded_down()

    def _rounded_down(self) -> float:
        """Nats in a unit of `total`, less a little."""
        return 2.0**-self.data.lr_bits * (1 - ROUNDING)

    def know_pairs(self, tables: np.uint64, first_site: int) -> None:
        """The same of all pairs y < z of sites from `first_site` on.

        `tables`: the address of site 0 in their pair tables.
        """
        first_row, n = first_site // TILE_SITES * TILE_SITES, self.data.n_sites
        self.known = cupy.empty((self.padded - first_row, self.padded), np.float32)
        self.known_address = self.known.data.ptr - first_row * self.padded * 4
        function = self.load(self.core.source, "pair_information", **self.shape_of(2, 1).defines)
        function(
            (divide_up(self.padded, 256), min(MAX_GRID, max(1, n - first_site))),
            (256,),
            (
                *(tables, np.int32(first_site), np.int32(n), np.int32(self.padded)),
                *(self.total, self.part, np.float64(self._rounded_down())),
                *(self.margins, *map(np.uint32, self.n_classes), np.uint64(self.known_address)),
            ),
        )

    def measure_depths(self) -> float:
        """Samples of each state of each site, and the mean depth of an x in steps."""
        self.sizes = sizes = self.sizes_there.get().astype(np.int64)
        # a cell holds at most the samples with its first site in that state; stored states that do
        # not fit: epistasis_crowds
        others = np.array(self.n_classes) - sizes.sum(axis=2)
        self.split_cells |= int(others.max(initial=0) > MAX_SHARED)
        self.depths = depths_of(sizes, self.x_states)
        return self.depths.sum(axis=1).mean() / STEP_BITS if self.data.n_sites else 0.0

    def join_neighbours(self, steps: float) -> None:
        """Let each x share its operand with the site after it, if that pays."""
        n = self.data.n_sites - 1
        if n < 1:
            return
        both = cupy.empty((n, 2, 2, 2), np.int32)
        for c, words in enumerate(self.planes.words):
            self.load(COMPACT_SCORE, "count_neighbours")(
                (divide_up(n * 4 * 32, 256),),
                (256,),
                (words, both, np.int32(n), self.planes.n_words[c], np.int32(c)),
            )
        depths = shared_depths(self.sizes[:, :, : self.x_states], both.get())
        saved = 2 * steps - depths.sum(axis=1).mean() / STEP_BITS
        if shares_operand(saved, self.states):
            self.operand_sites, self.depths = 2, depths

    def operands_of_all(self, first_site: int, end: int | None = None) -> Operands:
        """Operands of all samples at the sites up to `end`, or all, still to be packed."""
        return self._empty_operands(Batch.of(np.array([self.n_classes]), first_site), end)

    def make_columns(self, sites: range) -> None:
        """Pack the planes of some sites, in whole tiles, with all states: z of mixed pairs."""
        start, stop = sites.start // TILE_SITES, divide_up(sites.stop, TILE_SITES)
        sites = range(start * TILE_SITES, stop * TILE_SITES)
        self.receive(sites, self.planes.send(sites))
        batch = Batch.of(np.array([self.n_classes]), sites.start)
        stage = operand_bytes(len(sites), self.x_states)
        packed = cupy.empty(max(16, int(batch.stages[-1]) * stage), np.uint8)
        stages, segments = read_by_kernel(batch.stages), read_by_kernel(batch.segments)
        rest = np.uint64(0), sites.stop, self.x_states
        self.columns = Operands(batch, packed, stages, segments, *rest)
        self.pack(self.columns, sites)

    def pack(self, operands: Operands, sites: range) -> None:
        """Pack the planes of some sites, whole groups of 8, into operands of all samples."""
        self.load(COMPACT_SCORE, "pack_rows")(
            (8 * self.device.multiprocessors,),
            (256,),
            (
                *self.planes.words,
                *self.planes.n_words,
                operands.segments,
                operands.packed,
                np.int32(self.data.n_sites),
                np.int32(operands.batch.first_site),
                np.int32(operands.end),
                np.int32(sites.start),
                np.int32(sites.stop),
                np.int32(operands.batch.stages[-1]),
                np.int32(operands.states),
            ),
        )

    def compact(self, samples, first: int, batch: Batch, every: int = -1) -> Operands:
        """Operands of the x from `first` on, and the pair counts of these with every site.

        Of quads, three of each x (parts.cuh); or, from `every` = 0 on, one of all samples with `w`
        in that genotype, counted as if they were those of the first segments.
        """
        n, total = len(batch), int(batch.stages[-1])
        operands = self._empty_operands(batch)
        shape = (
            n * self.operand_sites,
            self.padded,
            self.x_states * self.states,
            1 + self.split_cells,
        )
        operands.xy = cupy.zeros(shape, np.uint32)
        if not total:
            return operands
        carriers = cupy.empty(total * STAGE_BITS, np.int32)
        of_w = np.array([(self.w, every, self.n_classes)], OF_W)
        self.load(COMPACT_SCORE, "list_carriers", OPERAND_SITES=self.operand_sites)(
            (n, operand_segments(self.x_states, self.operand_sites)),
            (256,),
            (
                *self.planes.words,
                *self.planes.n_words,
                np.int32(first),
                operands.stages,
                operands.segments,
                carriers,
                of_w,
            ),
        )
        self.gather(samples, carriers, operands)
        return operands
