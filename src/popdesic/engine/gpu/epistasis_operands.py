"""Planes of a scan on a CUDA device, and the operands that its kernels multiply."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from ...io.errors import UserError
from ..base import ScanData
from .compile import load_function
from .devices import Device
from .epistasis_bound import is_k2
from .epistasis_known import information_of_sites
from .epistasis_planes import ScanPlanes
from .epistasis_plans import (
    COMPACT_WIDTH,
    MAX_STORED,
    Batch,
    joins,
    joint_depths,
    operand_bytes,
    padded_sites,
    scan_defines,
    segments_of,
)
from .layout import COMPACT_ROWS, STAGE_BITS, STEP_BITS, TRANSPOSED_WORDS, divide_up

#: The file of the kernels that make operands, and score what scans let through.
KERNEL = "epistasis/compact_score"


@dataclass
class Operands:
    """Packed planes of a batch on the device."""

    batch: Batch
    packed: cupy.ndarray
    stages: cupy.ndarray
    segments: cupy.ndarray
    xy: cupy.ndarray | np.uint64


class DeviceScan:
    """What one scan holds on the current device.

    Attributes
    ----------
    planes : ScanPlanes
    sizes_there : int32 device array, (n_sites, 2, states)
        Samples of each site, class and stored state.
    margins : uint32 device array, (padded sites, states)
        The same, controls << 16 | cases.
    wide : int
        1: the counts of both classes do not share a word.
    joint : int
        First sites of one operand.
    depths : int64 array, (operands, segments)
        Samples of each segment of an operand; of triples.
    """

    depths: np.ndarray

    def __init__(self, data: ScanData, device: Device) -> None:
        self.data, self.device = data, device
        self.states = data.classes[0].words.shape[1]
        self.n_classes = tuple(one.n_samples for one in data.classes)
        self.k2, self.wide, self.joint = is_k2(data), 0, 1
        self.interaction = data.lr_bits is not None
        self.offsets = self.interaction and self.states == 2
        self.padded = padded_sites(data.n_sites, self.states)
        self.row_words = self.padded * self.states // 32
        # small arrays first: copies to the device are queued
        self.total, self.part = cupy.asarray(data.total), cupy.asarray(data.part)
        self.allowed = None if data.allowed is None else cupy.asarray(data.allowed)
        self.sizes_there = cupy.zeros((data.n_sites, 2, self.states), np.int32)
        self.margins = cupy.zeros((self.padded, self.states), np.uint32)
        self.planes, self.packed = ScanPlanes(data.classes), cupy.empty(0, np.uint8)
        self.missing: tuple[int, int] | None = None
        #: Of what the filter by interaction looks up (`epistasis_known`).
        self.known_address = 0
        if self.offsets:
            self.known = cupy.zeros(self.padded, np.float32)
            self.known_address = self.known.data.ptr

    def load(self, file: str, name: str, **defines) -> cupy.RawKernel:
        """A kernel, compiled for this scan."""
        of_all = scan_defines(
            k2=self.k2,
            wide=self.wide,
            states=self.states,
            joint=defines.get("JOINT", 1),
            interaction=self.interaction,
        )
        merged = tuple(sorted({**of_all, **defines}.items()))
        return load_function(file, name, merged, self.device.capability)

    def receive(self, sites: range, arrival: cupy.cuda.Event) -> None:
        """Wait (on the stream) for the planes of some sites, and count their states."""
        cupy.cuda.get_current_stream().wait_event(arrival)
        self.missing = None  # that of the sites so far
        count = self.load(KERNEL, "count_states")
        for c, words in enumerate(self.planes.words):
            count(
                (divide_up(max(1, len(sites)) * self.states * 32, 256),),
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
            self.known[sites.start : sites.stop] = information_of_sites(
                self.sizes_there[sites.start : sites.stop],
                self.n_classes,
                self.total,
                self.data.lr_bits,
            )
        sizes = self.sizes_there[sites.start : sites.stop].astype(np.uint32)
        self.margins[sites.start : sites.stop] = (sizes[:, 0] << 16) | sizes[:, 1]
        if (
            max(self.n_classes) > MAX_STORED
            and len(sites)
            and (most := int(sizes.max())) > MAX_STORED
        ):
            raise UserError(
                f"a stored genotype of a scanned site is carried by {most} samples of one "
                f"phenotype class, and a GPU scan counts {MAX_STORED}; set device to cpu."
            )

    def measure_depths(self) -> float:
        """Samples of each state of each site, and the mean depth of an x in steps."""
        self.sizes = sizes = self.sizes_there.get().astype(np.int64)
        # a cell holds at most the samples with its first site in that state
        others = np.array(self.n_classes) - sizes.sum(axis=2)
        self.wide |= int(others.max(initial=0) > MAX_STORED)
        # an x's segments: states in the order of the depth, controls and cases of each
        order_of_states = [0, 1] if self.states == 2 else [2, 0, 1]
        self.depths = sizes[:, :, order_of_states].transpose(0, 2, 1)
        self.depths = self.depths.reshape(self.data.n_sites, -1)
        return self.depths.sum(axis=1).mean() / STEP_BITS if self.data.n_sites else 0.0

    def join_neighbours(self, steps: float) -> None:
        """Let each x share its operand with the site after it, if that pays and its sums fit."""
        n = self.data.n_sites - 1
        if n < 1:
            return
        both = cupy.empty((n, 2, 2, 2), np.int32)
        for c, words in enumerate(self.planes.words):
            self.load(KERNEL, "count_neighbours")(
                (divide_up(n * 4 * 32, 256),),
                (256,),
                (words, both, np.int32(n), self.planes.n_words[c], np.int32(c)),
            )
        depths = joint_depths(self.sizes, both.get())
        saved = 2 * steps - depths.sum(axis=1).mean() / STEP_BITS
        if joins(depths, saved, self.states):
            self.joint, self.depths = 2, depths

    def _empty_operands(self, batch: Batch) -> Operands:
        stage = operand_bytes(self.padded - batch.first_site, self.states)
        size = max(16, int(batch.stages[-1]) * stage)
        if self.packed.size < size:
            self.packed = None  # freed before the larger one is allocated
            self.packed = cupy.empty(size, np.uint8)
        packed = self.packed[:size]
        stages, segments = cupy.asarray(batch.stages), cupy.asarray(batch.segments)
        return Operands(batch, packed, stages, segments, np.uint64(0))

    def operands_of_all(self, first_site: int) -> Operands:
        """Operands of all samples, still to be packed."""
        return self._empty_operands(Batch.of(np.array([self.n_classes]), first_site))

    def pack(self, operands: Operands, sites: range) -> None:
        """Pack the planes of some sites, whole blocks of rows, into operands of all samples."""
        self.load(KERNEL, "pack_rows")(
            (8 * self.device.multiprocessors,),
            (256,),
            (
                *self.planes.words,
                *self.planes.n_words,
                operands.segments,
                operands.packed,
                np.int32(self.data.n_sites),
                np.int32(operands.batch.first_site),
                np.int32(self.padded),
                np.int32(sites.start),
                np.int32(sites.stop),
                np.int32(operands.batch.stages[-1]),
            ),
        )

    def compact(self, samples, first: int, batch: Batch) -> Operands:
        """Operands of the x from `first` on, and the pair counts of these with every site."""
        n, total = len(batch), int(batch.stages[-1])
        operands = self._empty_operands(batch)
        operands.xy = cupy.zeros((n * self.joint, self.padded, self.states**2), np.uint32)
        if not total:
            return operands
        visits = cupy.asarray(batch.visits())
        carriers = cupy.empty(total * STAGE_BITS, np.int32)
        self.load(KERNEL, "list_carriers", JOINT=self.joint)(
            (n, segments_of(self.states, self.joint)),
            (256,),
            (
                *self.planes.words,
                *self.planes.n_words,
                np.int32(first),
                operands.stages,
                operands.segments,
                carriers,
            ),
        )
        row_blocks = (self.padded - batch.first_site) * self.states // COMPACT_ROWS
        width = min(row_blocks, COMPACT_WIDTH)
        self.load(KERNEL, "compact_rows", JOINT=self.joint)(
            (2 * width, total, divide_up(row_blocks, width)),
            (256,),
            (
                *samples,
                carriers,
                visits,
                operands.stages,
                operands.segments,
                operands.packed,
                operands.xy,
                np.int32(self.row_words),
                np.int32(batch.first_site),
                np.int32(self.padded),
            ),
        )
        return operands

    def transposed(self) -> list[cupy.ndarray]:
        """Sample-major planes of both classes."""
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
