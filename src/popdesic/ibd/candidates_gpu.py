"""Candidates of identity by descent on a GPU (kernels/ibd/; `ibd.candidates` has the definition).

Blocks of samples are packed on the device, window by window, and every two blocks are compared in
one launch. Only the runs that are found come back.
"""

from __future__ import annotations

from typing import NamedTuple

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import divide_up
from ..engine.terms import Planes
from .candidates import Candidates, Probes, require_room, search_blocks
from .candidates_plan import (
    IBD_SIDE,
    PACK_THREADS,
    PART_SITES,
    RUNS,
    UPLOAD_BYTES,
    Shape,
    block_side,
    probe_table,
)

#: Runs of two blocks that there is room for at first.
LEAST_ROOM = 1 << 22


class Packed(NamedTuple):
    """Packed windows of a block: uint64 (n_windows, parts, pitch, 4), zeros in the padding."""

    words: cupy.ndarray
    n_samples: int


class Search:
    """A search on one device: tables, kernels, and room for runs.

    Parameters
    ----------
    most : int
        More runs than this are a `UserError`.
    """

    def __init__(self, probes: Probes, tolerance: int, most: int, device: Device) -> None:
        self.probes, self.most = probes, most
        self.shape = Shape.of(probes.bits)
        loaded = [
            load_function(RUNS, name, self.shape.defines, device.capability)
            for name in ("pack_windows", "find_runs")
        ]
        self.pack_kernel, self.kernel = loaded
        self.kernel.max_dynamic_shared_size_bytes = self.shape.shared_bytes
        self.sites = cupy.asarray(probes.first), cupy.asarray(probes.sites)
        bounds = np.ascontiguousarray(np.stack([probes.begin, probes.end], axis=1), np.int32)
        self.tables = (
            cupy.asarray(probe_table(probes)),
            np.int32(len(probes.probe)),
            *(cupy.asarray(table) for table in (probes.left, probes.right, bounds)),
            *map(np.int32, (probes.depth, tolerance)),
            np.int64(probes.min_length),
        )
        self.room = cupy.empty((min(LEAST_ROOM, most), 4), np.int32)
        self.count = cupy.zeros(1, np.uint64)

    def packed(self, planes: Planes, samples: slice, _place: int) -> Packed:
        """Windows of some samples."""
        first, last = samples.start, samples.stop
        n_windows, parts = len(self.probes.number), self.shape.parts
        pitch = divide_up(last - first, IBD_SIDE) * IBD_SIDE
        out = cupy.zeros((n_windows, parts, pitch, PART_SITES // 32), np.uint64)
        step = max(1, UPLOAD_BYTES // (planes.words[:1].nbytes or 1))
        for start in range(first, last, step):
            words = planes.words[start : min(start + step, last)]
            if not isinstance(words, cupy.ndarray):
                words = cupy.asarray(np.ascontiguousarray(words))
            words = cupy.ascontiguousarray(words)
            n_people, n_planes, row_words = words.shape
            self.pack_kernel(
                (divide_up(n_people * n_windows * parts, PACK_THREADS),),
                (PACK_THREADS,),
                (
                    words,
                    np.int32(n_planes),
                    np.int64(row_words),
                    np.int64(n_people),
                    *self.sites,
                    np.int32(n_windows),
                    out,
                    np.int64(pitch),
                    np.int64(start - first),
                ),
            )
        return Packed(out, last - first)

    def runs(self, a: Packed, b: Packed, offset: int) -> list[np.ndarray]:
        """Runs of two blocks, in any order; pairs with i < j + offset count."""
        grid = tuple(divide_up(n, IBD_SIDE) for n in (b.n_samples, a.n_samples))
        while True:
            self.count.fill(0)
            self.kernel(
                grid,
                (self.shape.threads,),
                (
                    a.words,
                    b.words,
                    *map(np.int64, (a.words.shape[2], b.words.shape[2])),
                    *map(np.int32, (a.n_samples, b.n_samples)),
                    np.int64(offset),
                    *self.tables,
                    self.room,
                    self.count,
                    np.uint64(len(self.room)),
                ),
                shared_mem=self.shape.shared_bytes,
            )
            n_found = int(self.count[0])
            if n_found <= len(self.room):
                return [self.room[:n_found].get()]
            require_room(n_found, self.most, self.probes, a.n_samples * b.n_samples)
            self.room = cupy.empty((n_found, 4), np.int32)


def candidates(
    a: Planes,
    b: Planes | None,
    probes: Probes,
    tolerance: int,
    most: int,
    device: Device,
    free_bytes: int,
) -> Candidates:
    """`find_candidates` by these probes."""
    search = Search(probes, tolerance, most, device)
    largest = max(a.n_samples, 0 if b is None else b.n_samples)
    side = block_side(len(probes.number), search.shape.parts, largest, free_bytes)
    return search_blocks(a, b, probes, side, most, search.packed, search.runs)
