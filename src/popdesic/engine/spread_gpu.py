"""All-pairs shortest paths of a matrix that is spread over several GPUs of a machine.

The steps are those of `geodesic.closure.close_paths`, in the same panels: an entry is lowered by
the same sums in the same order, so that all number types, floats too, have the bytes of one device.

One process drives all devices. For each panel its owner closes the diagonal block and sends it.
Each device multiplies it with those columns of the panel that it knows (`SpreadPlan.known`) and
takes the others' columns from their memory, by copies over NVLink or PCIe. NCCL would need the
parts packed and multiprocessors of its own; copies need neither. Then each device updates its tiles
of the upper triangle with the whole panel.

Look-ahead: each device updates the tiles in rows and columns of the next panel first. That panel
is closed and exchanged in a stream of higher priority while all other tiles are still updated. So
neither the small kernels of a diagonal block nor copies keep the devices waiting.

Order of the streams (`lead` and `bulk` of a device). Panel k is written in `lead` after the `bulk`
of panel k - 2 on all devices: nobody reads its buffers any more, and its tiles are up to date but
for panel k - 1, which `lead` adds. The `bulk` of panel k follows its `lead`, and leaves out the
tiles of panel k + 1, with which `lead` begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import cupy
import numpy as np

from . import minplus_gpu
from .compile_gpu import current_device
from .minplus import PANEL, Bounds, infinity
from .minplus_plan import BOUND_RUN, BOUND_TILE, shape_of
from .spread_plan import SpreadPlan

#: Priority of the stream of the next panel; that of others is 0.
URGENT = -1
#: `cudaMemcpyDefault`: the driver finds on which device either side lies.
ANY_MEMORY = 4


class _Part:
    """What one device stores: its rows, buffers of panels, and its streams."""

    def __init__(self, plan: SpreadPlan, number: int, index: int, dtype: np.dtype) -> None:
        self.plan, self.number, self.index = plan, number, index
        start, stop = plan.offsets[number : number + 2]
        self.own = slice(start, stop)
        with cupy.cuda.Device(index):
            self.device = current_device()
            self.lead = cupy.cuda.Stream(non_blocking=True, priority=URGENT)
            self.bulk = cupy.cuda.Stream(non_blocking=True)
        block = shape_of(dtype, self.device.shared_bytes).block
        self.block = block
        with self.on(self.bulk):
            self.stored = cupy.empty((stop - start, plan.n), dtype)
            self.before = cupy.empty((plan.panel, plan.n), dtype)
            self.panels = [cupy.empty((plan.panel, plan.n), dtype) for _ in range(2)]
            self.blocks = [cupy.empty((plan.panel, plan.panel), dtype) for _ in range(2)]
            self.tiles = cupy.asarray(plan.tiles(number, block))
            self.next_tiles = [cupy.asarray(t) for t in plan.tiles_of_panels(number, block)]
        #: Of a closure that skips work: of its tiles, and of the last panel (see `Bounds`).
        self.ceiling: cupy.ndarray | None = None
        self.floors: tuple[cupy.ndarray, cupy.ndarray] | None = None
        self.used: list[Bounds] = []

    @contextmanager
    def on(self, stream: cupy.cuda.Stream) -> Iterator[None]:
        """Work for a stream of the device."""
        with cupy.cuda.Device(self.index), stream:
            yield

    def panel(self, number: int) -> cupy.ndarray:
        """The closed panel, (its rows, n)."""
        return self.panels[number % 2][: len(self.plan.rows(number))]

    def block_of(self, number: int) -> cupy.ndarray:
        """Room for the diagonal block of a panel, contiguous."""
        size = len(self.plan.rows(number))
        return self.blocks[number % 2].reshape(-1)[: size * size].reshape(size, size)

    def update(self, number: int, tiles: cupy.ndarray, hole: tuple[range, range]) -> None:
        """Allow a panel as intermediate nodes in some tiles."""
        panel, bounds = self.panel(number), None
        if self.floors is not None:  # counts of skipped work do not mix those of two streams
            bounds = Bounds(*self.floors, self.ceiling)
            self.used.append(bounds)
        multiply = minplus_gpu.multiply_listed
        multiply(self.stored, panel[:, self.own], panel, tiles, hole, bounds, self.device)


class Spread:
    """A symmetric matrix of weights, as `MinPlus` has them, on several devices.

    Parameters
    ----------
    w : array, (n, n)
        In host memory; zero diagonal.
    devices : list of int
        Numbers of CUDA devices, of one model. The same number twice is two parts on one device.
    """

    def __init__(self, w: np.ndarray, devices: list[int]) -> None:
        self.plan = plan = SpreadPlan.of(len(w), len(devices))
        self.dtype, self.largest = w.dtype, infinity(w.dtype)
        devices = devices[: plan.devices]
        _connect(devices)
        self.parts = [_Part(plan, number, index, w.dtype) for number, index in enumerate(devices)]
        for part in self.parts:
            with part.on(part.bulk):
                order = cupy.asarray(plan.order)
                for panel in self._panels_of(part):
                    part.stored[plan.stored(panel)] = self._rows(w, panel)[:, order]
        self._settle()

    def _panels_of(self, part: _Part) -> list[int]:
        return [k for k in range(self.plan.panels) if self.plan.owner(k) == part.number]

    def _rows(self, w: np.ndarray, panel: int) -> cupy.ndarray:
        """Rows of a panel on the current device, padded with samples without edges."""
        rows = self.plan.rows(panel)
        held = cupy.full((len(rows), self.plan.n), self.largest, w.dtype)
        given = w[rows.start : rows.stop]
        held[: len(given), : len(w)] = cupy.asarray(given)
        held.reshape(-1)[rows.start :: self.plan.n + 1][: len(rows)] = 0
        return held

    def fetch(self, w: np.ndarray) -> None:
        """Copy the matrix back to host memory, (n, n)."""
        inverse = np.argsort(self.plan.order)[: len(w)]
        for part in self.parts:
            with part.on(part.bulk):
                columns = cupy.asarray(inverse)
                for panel in self._panels_of(part):
                    rows = self.plan.rows(panel)
                    target = w[rows.start : rows.stop]
                    stored = part.stored[self.plan.stored(panel)][: len(target)]
                    target[...] = stored[:, columns].get()

    def close(
        self, close_block: Callable[[cupy.ndarray], object], prune: bool = True
    ) -> tuple[int, int]:
        """All-pairs shortest paths, in place.

        Parameters
        ----------
        close_block : function
            Closes a small symmetric matrix on the current device, in its current stream.
        prune : bool
            Whether to skip work that changes nothing, as `close_paths` does.

        Returns
        -------
        possible, skipped : int
            Operations of the products of panels, and how many were left out.
        """
        plan, possible = self.plan, 0
        if plan.panels == 1:
            with self.parts[0].on(self.parts[0].bulk):
                close_block(self.parts[0].stored)
            return 0, 0
        for part in self.parts:
            part.ceiling, part.floors, part.used = None, None, []
        unchanged = [False] * plan.panels
        if prune and plan.n > 2 * PANEL:
            unchanged = self._bound()
        done: list[list[cupy.cuda.Event]] = []
        for k in range(plan.panels):
            if k == 0:
                self._lead(k, close_block, unchanged[k], [])
            done.append([self._update(part, k) for part in self.parts])
            if k + 1 < plan.panels:
                earlier = done[k - 1] if k else []
                self._lead(k + 1, close_block, unchanged[k + 1], earlier)
            possible += plan.n**2 * len(plan.rows(k)) // 2
        self._wait_for_all([part.bulk for part in self.parts], done[-1])
        self._mirror()
        self._settle()
        return possible, sum(self._skipped(part) for part in self.parts)

    def _bound(self) -> list[bool]:
        """Ceilings of the parts' tiles; of each panel, whether none of its weights can decrease.

        See `geodesic.closure._Pruning`.
        """
        plan, least = self.plan, []
        for part in self.parts:
            with part.on(part.bulk):
                part.ceiling = self._extremes(part, part.stored, BOUND_TILE, largest=True)
                diagonal = part.stored.reshape(-1)[part.own.start :: plan.n + 1]
                diagonal = diagonal[: len(part.stored)]
                diagonal[:] = self.largest
                smallest = self._extremes(part, part.stored, BOUND_TILE, largest=False)
                diagonal[:] = 0
                least.append(smallest.min(axis=1).get())
        unchanged = [False] * plan.panels
        for part in self.parts:
            with part.on(part.bulk):
                mine = cupy.asarray(least[part.number])
                fixed = mine[:, None] + cupy.asarray(np.concatenate(least)) >= part.ceiling
                part.ceiling[fixed] = 0
                rows = fixed.all(axis=1).get()
            for panel in self._panels_of(part):
                stored = plan.stored(panel)
                unchanged[panel] = bool(
                    rows[stored.start // BOUND_TILE : stored.stop // BOUND_TILE].all()
                )
        self._settle()
        return unchanged

    @staticmethod
    def _skipped(part: _Part) -> int:
        with part.on(part.bulk):
            return sum(int(one.skipped) for one in part.used)

    def _extremes(self, part: _Part, x: cupy.ndarray, height: int, largest: bool) -> cupy.ndarray:
        return minplus_gpu.tile_extremes(x, height, largest, part.device)

    def _update(self, part: _Part, panel: int) -> cupy.cuda.Event:
        """Allow a panel in all tiles but those of the next one."""
        with part.on(part.bulk):
            part.bulk.wait_event(part.lead.record())
            part.update(panel, part.tiles, self.plan.hole(part.number, panel + 1, part.block))
            return part.bulk.record()

    def _lead(
        self,
        panel: int,
        close_block: Callable[[cupy.ndarray], object],
        unchanged: bool,
        earlier: list[cupy.cuda.Event],
    ) -> None:
        """Close a panel on all devices, once the updates before the last are done (`earlier`)."""
        self._wait_for_all([part.lead for part in self.parts], earlier)
        owner = self.parts[self.plan.owner(panel)]
        for part in self.parts:
            with part.on(part.lead):
                if panel:
                    part.update(panel - 1, part.next_tiles[panel], (range(0), range(0)))
        block = owner.stored[self.plan.stored(panel), self.plan.columns(panel)]
        with owner.on(owner.lead):
            minplus_gpu.mirror(block, owner.device)
            if not unchanged:
                close_block(block)
            owner.block_of(panel)[...] = block
            closed = owner.lead.record()
        ready = []
        for part in self.parts:
            with part.on(part.lead):
                if part is not owner and not unchanged:
                    part.lead.wait_event(closed)
                    _copy(owner.block_of(panel), part.block_of(panel), part.lead)
                self._compute_known(part, panel, unchanged)
                ready.append(part.lead.record())
        for part in self.parts:
            with part.on(part.lead):
                for other, event in zip(self.parts, ready, strict=True):
                    if other is not part:
                        part.lead.wait_event(event)
                        self.take(part, other, panel)
                if part.ceiling is not None:
                    floor = self._extremes(part, part.panel(panel), BOUND_RUN, largest=False)
                    tiles = slice(part.own.start // BOUND_TILE, part.own.stop // BOUND_TILE)
                    own = cupy.ascontiguousarray(floor[:, tiles])
                    part.floors = own, floor

    def _compute_known(self, part: _Part, panel: int, unchanged: bool) -> None:
        """The columns of a closed panel that a device knows, into its panel and its rows."""
        plan, closed = self.plan, part.panel(panel)
        before = part.before[: len(closed)]
        columns, own = plan.columns(panel), plan.before(part.number, panel)
        is_owner = part.number == plan.owner(panel)
        above = part.stored[: own.stop - own.start, columns]
        rows = part.stored[plan.stored(panel)]
        for known in plan.known(part.number, panel):
            if is_owner:
                before[:, known] = rows[:, known]
            if known.start == own.start:
                minplus_gpu.transpose(above, before[:, own], part.device)
            closed[:, known] = before[:, known]
            if not unchanged:
                minplus_gpu.multiply(
                    closed[:, known],
                    part.block_of(panel).T,
                    before[:, known],
                    symmetric=False,
                    bounds=None,
                    device=part.device,
                    free_bytes=0,
                )
        if not unchanged:
            minplus_gpu.transpose(closed[:, own], above, part.device)
            for other in range(plan.devices) if is_owner else ():
                since = plan.since(other, panel + 1)
                rows[:, since] = closed[:, since]
        if is_owner and part.ceiling is not None:
            # Zeros on the diagonal would lower the floors; these edges never shorten a path.
            diagonal = closed.reshape(-1)[columns.start :: plan.n + 1]
            diagonal[: len(closed)] = self.largest

    def take(self, part: _Part, other: _Part, panel: int) -> None:
        """The columns of a closed panel that another part knows, in the stream of panels."""
        for columns in self.plan.known(other.number, panel):
            source, target = other.panel(panel), part.panel(panel)
            _copy(source[:, columns], target[:, columns], part.lead)

    def _mirror(self) -> None:
        """Copy the upper triangle onto the lower: each device takes its columns from the others."""
        plan = self.plan
        for panel in range(plan.panels):
            owner, columns = self.parts[plan.owner(panel)], plan.columns(panel)
            rows = owner.stored[plan.stored(panel)]
            with owner.on(owner.bulk):
                minplus_gpu.mirror(rows[:, columns], owner.device)
            for part in self.parts:
                since = plan.since(part.number, panel + 1)
                below = part.stored[since.start - part.own.start :, columns]
                if not len(below):
                    continue
                with part.on(part.bulk):
                    source = rows[:, since]
                    if part is not owner:
                        source = part.before[: len(rows), since]
                        _copy(rows[:, since], source, part.bulk)
                    minplus_gpu.transpose(source, below, part.device)

    def _settle(self) -> None:
        """Wait for all devices."""
        for part in self.parts:
            for stream in (part.bulk, part.lead):
                stream.synchronize()

    @staticmethod
    def _wait_for_all(streams: list[cupy.cuda.Stream], events: list[cupy.cuda.Event]) -> None:
        for stream in streams:
            for event in events:
                stream.wait_event(event)


def _copy(source: cupy.ndarray, target: cupy.ndarray, stream: cupy.cuda.Stream) -> None:
    """Copy rows that lie side by side, from any device to the current one."""
    rows, columns = source.shape
    cupy.cuda.runtime.memcpy2DAsync(
        target.data.ptr,
        target.strides[0],
        source.data.ptr,
        source.strides[0],
        columns * source.itemsize,
        rows,
        ANY_MEMORY,
        stream.ptr,
    )


def _connect(devices: list[int]) -> None:
    """Let each device read the others' memory, if the machine can; else copies are staged."""
    runtime = cupy.cuda.runtime
    for one in set(devices):
        for other in set(devices) - {one}:
            if runtime.deviceCanAccessPeer(one, other):
                with cupy.cuda.Device(one):
                    try:
                        runtime.deviceEnablePeerAccess(other)
                    except runtime.CUDARuntimeError as reason:
                        if "AlreadyEnabled" not in str(reason):
                            raise
