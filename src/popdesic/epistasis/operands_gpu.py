"""Planes of a scan on a CUDA device, and the operands that its kernels multiply."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import COMPACT_ROWS, LIMIT, TRANSPOSED_WORDS, divide_up
from ..engine.pinned_gpu import read_by_kernel
from .parts_plan import ScanPart
from .planes_gpu import ScanPlanes
from .scan_data import OneHot, ResidualData, ScanData
from .scan_plan import COMPACT_WIDTH, Batch, operand_bytes, padded_sites, scan_defines

#: The file of the kernels that make operands, and score what scans let through.
KERNEL = "epistasis/compact_score"


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
    joint : int
        First sites of one operand.
    known_address : int
        Of what the filter by interaction looks up (`Scan` of scan.cuh).
    """

    #: 1: the cells of both classes do not share a word; nor do the products.
    wide = apart = 0
    joint = 1
    known_address = 0
    interaction = residuals = False
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

    def load(self, file: str, name: str, **defines) -> cupy.RawKernel:
        """A kernel, compiled for this scan."""
        of_all = scan_defines(
            wide=self.wide,
            apart=self.apart,
            states=self.states,
            joint=defines.get("JOINT", 1),
            interaction=self.interaction,
            residuals=self.residuals,
            x_states=self.x_states,
            planes=self.stored,
        )
        merged = tuple(sorted({**of_all, **defines}.items()))
        return load_function(file, name, merged, self.device.capability)

    def limit(self) -> np.ndarray:
        """`Correlation` of compact_score.cu."""
        one = np.zeros(1, LIMIT)
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
        self.load(KERNEL, "compact_rows", JOINT=self.joint)(
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
        kernel, out = self.load(KERNEL, "transpose_planes"), []
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
