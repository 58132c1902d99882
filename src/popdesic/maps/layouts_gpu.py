"""Layouts of maps on a GPU: the integers of `maps.umap_epoch_cpu`, hence its bytes."""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import KernelSource
from .layouts import Density, Layout
from .layouts_plan import DENSITY, EPOCH, UMAP_THREADS, blocks_of, plan_epoch


class _Map:
    """Points and graph of a map on the device."""

    def __init__(self, layout: Layout, device: Device) -> None:
        self.layout, self.capability = layout, device.capability
        self.n, self.n_edges = len(layout.points), len(layout.ends)
        self.points = cupy.asarray(layout.points.astype(np.int32))
        heads = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(layout.starts))
        self.heads, self.ends = cupy.asarray(heads), cupy.asarray(layout.ends.astype(np.int32))
        self.shares = cupy.asarray(layout.shares.astype(np.uint32))
        self.tables = [cupy.asarray(table) for table in (layout.attraction, layout.repulsion)]
        self.sums = cupy.zeros((self.n, 2), np.int64)
        self.launch = plan_epoch(self.n_edges, device.multiprocessors)

    def run(self, function: str, size: int, arguments: tuple) -> None:
        """Launch one thread an item."""
        source = EPOCH if function == "move_points" else DENSITY
        kernel = load_function(source, function, self._defines(source), self.capability)
        kernel(blocks_of(size), (UMAP_THREADS,), arguments)

    def _defines(self, source: KernelSource) -> tuple[tuple[str, int], ...]:
        return (("DRAWS", self.layout.draws),) if source is EPOCH else ()

    def add_forces(self, epoch: int) -> None:
        kernel = load_function(EPOCH, "add_forces", self._defines(EPOCH), self.capability)
        numbers = np.int64(self.n_edges), np.int32(self.n), np.int32(self.launch.run)
        seed = np.uint64(self.layout.seed % (1 << 64))
        edges = self.heads, self.ends, self.shares
        arguments = (self.points, *edges, *self.tables, self.sums, *numbers)
        kernel(self.launch.grid, (UMAP_THREADS,), (*arguments, np.uint32(epoch), seed))

    def move(self, sums: cupy.ndarray, step: int) -> None:
        self.run(
            "move_points", 2 * self.n, (self.points, sums, np.int64(2 * self.n), np.int64(step))
        )


class _DensityTerm:
    """The density term of a densMAP on the device."""

    def __init__(self, of: _Map, density: Density) -> None:
        self.map, self.density = of, density
        names = ("radii", "nearness", "spread", "logarithms", "by_radius", "by_nearness")
        self.tables = {name: cupy.asarray(getattr(density, name)) for name in names}
        self.sums = cupy.zeros((of.n, 2), np.int64)
        self.measured = [cupy.empty(of.n, np.int64) for _ in range(3)]
        self.totals = cupy.zeros(3, np.int64)
        self.pulls = cupy.empty((of.n, 2), np.float64)

    def add_forces(self) -> None:
        """To `sums`, from where the points are."""
        of, tables = self.map, self.tables
        edges, n = (of.points, of.heads, of.ends), np.int32(of.n)
        n_edges = np.int64(of.n_edges)
        spreads = tables["nearness"], tables["spread"], self.sums
        of.run("sum_spreads", of.n_edges, (*edges, *spreads, n_edges))
        self.totals.fill(0)
        of.run(
            "measure_radii",
            of.n,
            (self.sums, tables["logarithms"], tables["radii"], *self.measured, self.totals, n),
        )
        mean, slope, factor = self.density.weights(tuple(self.totals.get().tolist()))
        numbers = np.float64(mean), np.float64(slope), n
        of.run("weigh_radii", of.n, (tables["radii"], *self.measured, self.pulls, *numbers))
        changes = tables["by_radius"], tables["by_nearness"], self.pulls, self.sums
        of.run(
            "add_density",
            of.n_edges,
            (*edges, of.shares, *changes, np.float64(factor), n_edges),
        )


def lay_out(layout: Layout, device: Device) -> np.ndarray:
    """`lay_out`."""
    if not len(layout.ends):
        return layout.points.copy()
    drawn = _Map(layout, device)
    term = _DensityTerm(drawn, layout.density) if layout.density else None
    for epoch, step in enumerate(layout.steps.tolist()):
        dense = term is not None and epoch >= layout.density.first
        if dense:
            term.add_forces()
        drawn.add_forces(epoch)
        drawn.move(drawn.sums, step)
        if dense:
            drawn.move(term.sums, step)
    return cupy.asnumpy(drawn.points).astype(np.int64)
