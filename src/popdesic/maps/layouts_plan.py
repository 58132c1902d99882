"""Launches of UMAP's epochs (`kernels/maps/epoch.cu`); no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.devices import Device
from ..engine.layout import INT32_MAX, KernelSource, divide_up
from ..engine.needs import DENSITY_BYTES, EDGE_BYTES, POINT_BYTES
from .layouts import (
    BOUND,
    FARTHEST,
    FORCE_BITS,
    INTERVAL_BITS,
    LEAST_RADIUS,
    PLACE_BITS,
    POINT_BITS,
    RADIUS_BITS,
    SHARE_BITS,
    SPREAD_BITS,
    STEP_BITS,
    TOP_BIT,
    Layout,
)

#: Threads of a thread block: two or three of them and their tables of forces fit any card.
UMAP_THREADS = 512
_UNITS = {
    "UMAP_THREADS": UMAP_THREADS,
    "POINT_BITS": POINT_BITS,
    "FORCE_BITS": FORCE_BITS,
    "SHARE_BITS": SHARE_BITS,
    "STEP_BITS": STEP_BITS,
    "SPREAD_BITS": SPREAD_BITS,
    "RADIUS_BITS": RADIUS_BITS,
    "INTERVAL_BITS": INTERVAL_BITS,
    "PLACE_BITS": PLACE_BITS,
    "TOP_BIT": TOP_BIT,
    "FARTHEST": FARTHEST,
    "BOUND": BOUND,
    "LEAST_RADIUS": LEAST_RADIUS,
}
EPOCH, DENSITY = KernelSource.of("maps/epoch", **_UNITS), KernelSource.of("maps/density", **_UNITS)
#: Most thread blocks of a multiprocessor that are launched, all of them resident on A100 to B200;
#: each reads the tables once.
BLOCKS_A_MULTIPROCESSOR = 3
#: Edges that a warp reads one after the other, at least (one load of each lane) and at most.
LEAST_RUN, MOST_RUN = 32, 1024
#: Most points drawn per edge: sums of a warp are int32.
MOST_DRAWS = INT32_MAX // (32 * FARTHEST) - 2
#: Epochs times a share of an edge are 32 bits.
MOST_EPOCHS = (1 << (32 - SHARE_BITS)) - 1


@dataclass(frozen=True)
class EpochLaunch:
    """One launch of `add_forces`: its thread blocks, and the edges of a run of one warp."""

    grid: tuple[int]
    run: int


def plan_epoch(n_edges: int, multiprocessors: int) -> EpochLaunch:
    """How edges are shared among warps: evenly, in runs of whole loads of a warp.

    Parameters
    ----------
    n_edges : int
        At least 1.
    """
    warps_a_block = UMAP_THREADS // 32
    warps = BLOCKS_A_MULTIPROCESSOR * multiprocessors * warps_a_block
    run = divide_up(divide_up(n_edges, warps), LEAST_RUN) * LEAST_RUN
    run = min(run, MOST_RUN)
    blocks = divide_up(divide_up(n_edges, run), warps_a_block)
    return EpochLaunch((min(blocks, BLOCKS_A_MULTIPROCESSOR * multiprocessors),), run)


def fits_layout(layout: Layout, device: Device, free_bytes: int) -> bool:
    """Whether a device can lay out a map: warps of 32 threads, memory, limits of the numbers."""
    n, n_edges = len(layout.points), len(layout.ends)
    needed = (POINT_BYTES + (DENSITY_BYTES if layout.density else 0)) * n + EDGE_BYTES * n_edges
    small = max(n, n_edges) <= INT32_MAX - MOST_RUN
    few = layout.draws <= MOST_DRAWS and len(layout.steps) <= MOST_EPOCHS
    return device.vendor == "nvidia" and small and few and needed <= free_bytes


def blocks_of(n: int) -> tuple[int]:
    """Thread blocks of one thread an item."""
    return (divide_up(n, UMAP_THREADS),)
