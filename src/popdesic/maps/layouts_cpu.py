"""All epochs of a map on the CPU: threads take ranges of points, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, BrokenBarrierError

import numpy as np

from ..core.threads import run_tasks
from . import umap_epoch_cpu
from .layouts import Layout

#: Fewest edges for which a further thread is used in one map.
EDGES_OF_THREAD = 20_000


def run_epochs(layout: Layout, threads: int = 1) -> np.ndarray:
    """Where the epochs of a layout take its points, int64 (n, 2); the same on any threads."""
    n, n_edges = len(layout.points), len(layout.ends)
    threads = max(1, min(threads, n_edges // EDGES_OF_THREAD))
    bounds = np.searchsorted(layout.starts, np.linspace(0, n_edges, threads + 1))
    bounds[0], bounds[-1] = 0, n
    ranges = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    kernel, barrier = umap_epoch_cpu.epoch_kernel(), Barrier(threads)
    graph = layout.starts, layout.ends, layout.shares
    about = graph, (layout.attraction, layout.repulsion)
    now, other = layout.points.copy(), np.empty_like(layout.points)
    add_density = _density_of(layout, ranges, barrier)

    def work(first: int, last: int) -> None:
        source, target = now, other
        try:
            for epoch, step in enumerate(layout.steps.tolist()):
                numbers = epoch, step, layout.draws, layout.seed, first, last
                kernel(source, target, *about, *numbers)
                if layout.density and epoch >= layout.density.first:
                    add_density(source, target, step, first, last)
                barrier.wait()
                source, target = target, source
        except BrokenBarrierError:
            return  # another thread says why
        except BaseException:
            barrier.abort()
            raise

    run_tasks(work, ranges, threads)
    return now if len(layout.steps) % 2 == 0 else other


def _density_of(
    layout: Layout, ranges: list[tuple[int, int]], barrier: Barrier
) -> Callable[[np.ndarray, np.ndarray, int, int, int], None] | None:
    """What adds the density term to the moves of one range of points; all threads call it."""
    density, n = layout.density, len(layout.points)
    if density is None:
        return None
    measure, weigh, spread = umap_epoch_cpu.density_kernels()
    edges = layout.starts, layout.ends
    tables = density.nearness, density.spread, density.logarithms
    measured = [np.empty(n, np.int64) for _ in range(3)]
    pulls, sums = np.empty((n, 2)), dict.fromkeys(ranges, (0, 0, 0))

    def add(source: np.ndarray, target: np.ndarray, step: int, first: int, last: int) -> None:
        where = first, last
        sums[where] = measure(source, *edges, *tables, density.radii, *measured, *where)
        barrier.wait()
        total = tuple(map(sum, zip(*sums.values(), strict=True)))
        mean, slope, factor = density.weights(total)
        weigh(density.radii, *measured, mean, slope, pulls, *where)
        barrier.wait()
        forces = layout.shares, density.by_radius, density.by_nearness, pulls, factor
        spread(source, target, *edges, *forces, step, *where)

    return add
