"""Sizes and tables of the search for identity by descent on a GPU (kernels/ibd/)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.devices import Device
from ..engine.layout import KernelSource, divide_up
from .candidates import Probes

#: Samples a side of a thread block's and of a warp's pairs; entries of a warp's queue; sites of a
#: part of a window; threads of a thread block of `pack_windows`.
IBD_SIDE, IBD_WARP_SIDE, IBD_QUEUE = 256, 64, 64
PART_SITES, PACK_THREADS = 128, 256
RUNS = KernelSource.of(
    "ibd/candidates",
    IBD_SIDE=IBD_SIDE,
    IBD_WARP_SIDE=IBD_WARP_SIDE,
    IBD_QUEUE=IBD_QUEUE,
    PART_SITES=PART_SITES,
    PACK_THREADS=PACK_THREADS,
)
#: Probes in a row that must be good: pairs that pass a single one would fill the queues.
DEPTH = 2
#: Compute capability of `mma.sync` b1 AND + POPC; other devices leave the search to the CPU.
LEAST_CAPABILITY = 80
#: Shared memory of the slots, at most; the fewest and most of them.
SLOTS_BYTES, LEAST_STAGES, MOST_STAGES = 72 << 10, 2, 3
#: Most probes: their numbers have 16 bits in the queues.
MOST_PROBES = 1 << 16
#: Share of the free device memory for the packed windows of two blocks of samples.
PACKED_SHARE = 0.75
#: Bytes of planes that go to the device at a time.
UPLOAD_BYTES = 256 << 20


@dataclass(frozen=True)
class Shape:
    """How `find_runs` is compiled and launched for windows of some length.

    Attributes
    ----------
    parts : int
        Of `PART_SITES` sites, of a window.
    stages : int
        Probes whose windows are in shared memory together.
    """

    parts: int
    stages: int

    @classmethod
    def of(cls, bits: int) -> Shape:
        """`bits`: room for the sites of any window (`Probes.bits`)."""
        parts = divide_up(bits, PART_SITES)
        slot = 2 * parts * IBD_SIDE * PART_SITES // 4
        return cls(parts, min(MOST_STAGES, max(LEAST_STAGES, SLOTS_BYTES // slot)))

    @property
    def threads(self) -> int:
        return (IBD_SIDE // IBD_WARP_SIDE) ** 2 * 32

    @property
    def shared_bytes(self) -> int:
        slot = 2 * self.parts * IBD_SIDE * PART_SITES // 4
        return self.stages * slot + self.threads // 32 * IBD_QUEUE * 4

    @property
    def defines(self) -> tuple[tuple[str, int], ...]:
        values = {"PARTS": self.parts, "IBD_STAGES": self.stages, "IBD_SHARED": self.shared_bytes}
        return tuple(sorted(values.items()))


def can_find_runs(device: Device, probes: Probes) -> bool:
    """Whether a device has the instructions and the shared memory for a search."""
    fits = device.shared_bytes >= Shape.of(probes.bits).shared_bytes
    return device.has(LEAST_CAPABILITY) and fits and len(probes.probe) < MOST_PROBES


def block_side(n_windows: int, parts: int, largest: int, free_bytes: int) -> int:
    """Samples of a block, whole thread blocks: two of them, packed, fit the device."""
    bytes_a_sample = n_windows * parts * PART_SITES // 4
    fits = int(PACKED_SHARE * free_bytes) // (2 * max(1, bytes_a_sample)) // IBD_SIDE * IBD_SIDE
    return max(IBD_SIDE, min(fits, divide_up(largest, IBD_SIDE) * IBD_SIDE))


def probe_table(probes: Probes) -> np.ndarray:
    """Window, reach, stop and fresh of every probe, as the kernel reads them: int32 (n, 4).

    A run counts at a probe if it goes back to the window `reach`, but not to `stop`.
    """
    reach = np.roll(probes.probe, probes.depth - 1)
    return np.ascontiguousarray(
        np.stack([probes.probe, reach, probes.stop, probes.fresh], axis=1), np.int32
    )
