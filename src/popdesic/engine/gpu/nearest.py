"""Nearest samples, nearest points and close pairs on a GPU: selected on the device, tile by tile.

A tile's sums are read once, where the products left them (kernels/neighbors/); what leaves the
device is the result.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..comparisons import count_pairs
from ..nearest import NOBODY, Measure, Nearest, Scaled, checked_points
from ..relatives import CANDIDATE_SHARE, Closeness, ClosePairs
from ..terms import KINSHIP, SQUARED_ALONE
from . import neighbor_plans
from .compile import load_function
from .devices import Device
from .layout import FILTER_ROWS, FILTER_THREADS, LIST_ROOM, POINT_SIDE, POINT_TILE, divide_up
from .neighbor_plans import BANDS, WHOLE, Bounds, Form, Tiles, ordered_tiles, tile_side

#: The files of these kernels.
NEAREST, POINTS, CLOSE = "neighbors/nearest", "neighbors/points", "neighbors/close_pairs"
#: Pairs of a tile that there is room for at first.
LEAST_PAIRS = 1 << 16
_NULL = np.uint64(0)


class Lists:
    """The lists of n samples on the device, and candidates of both sides of a tile."""

    def __init__(self, n: int, k: int, side: int, form: Form, device: Device) -> None:
        self.n, self.k, self.side, self.form = n, k, side, form
        self.distance = cupy.full((n, k), np.inf)
        self.index = cupy.full((n, k), NOBODY, np.int32)
        self.called = cupy.zeros((n, k), np.int32)
        self.limits = cupy.full(n, 3e38, np.float32)
        room = (2 * side, LIST_ROOM)
        self.new = [cupy.empty(room, dtype) for dtype in (np.float64, np.int32, np.int32)]
        self.count = cupy.zeros(2 * side, np.uint32)
        self.overflow = cupy.zeros(1, np.int32)
        defines = form.defines(2)
        self.kernel = load_function(NEAREST, "keep_nearest", defines, device.capability)

    def arguments(self) -> tuple:
        """Of a kernel that offers candidates: `Lists` of lists.cuh."""
        lists = self.distance, self.index, self.called, self.limits
        return (*lists, *self.new, self.count, np.int32(self.k))

    def places(self, own: bool) -> np.int32:
        """Where the candidates of a tile's columns begin: those of its rows where it is `own`."""
        return np.int32(0 if own else self.side)

    def keep(self, rows: Bounds, columns: Bounds) -> bool:
        """Sort the candidates into the lists; whether all of them had room."""
        self.overflow.fill(0)
        sides = [(rows, 0)] if rows == columns else [(rows, 0), (columns, self.side)]
        for (first, last), place in sides:
            numbers = map(np.float64, (self.form.times, self.form.share, self.form.slack))
            self.kernel(
                (last - first,),
                (32,),
                (
                    *self.arguments(),
                    np.int32(first),
                    np.int32(place),
                    *numbers,
                    self.overflow,
                ),
            )
        return not int(self.overflow[0])

    def result(self, k: int) -> Nearest:
        """The lists in host memory, k entries each."""
        lists = (array[:, :k].get() for array in (self.index, self.distance, self.called))
        found = Nearest(*map(np.ascontiguousarray, lists))
        assert not (found.index == NOBODY).any(), "a list that is not full"
        return found


def _grid(n_rows: int, n_columns: int) -> tuple[int, int]:
    """Thread blocks that look through a tile of counts."""
    return divide_up(n_columns, 4 * FILTER_THREADS), divide_up(n_rows, FILTER_ROWS)


def nearest_samples(tiles: Tiles, measure: Measure, k: int, device: Device) -> Nearest:
    """`Backend.nearest_samples`."""
    n = tiles.planes.n_samples
    found = Nearest.empty(n, k)
    if n < 2:
        return found
    k, form = found.index.shape[1], Form.of_measure(measure)
    side = tiles.side(measure.terms)
    lists = Lists(n, max(1, k), side, form, device)
    few = cupy.zeros(1, np.uint64)
    defines = form.defines(len(measure.terms.outputs))
    kernel = load_function(NEAREST, "filter_counts", defines, device.capability)
    numbers = map(np.float64, (measure.times, measure.share))
    numbers = (*numbers, np.int32(measure.least_called))
    for rows, columns in ordered_tiles(n, side):
        own = rows == columns
        sums = tiles.multiply(rows, columns, measure.terms)
        place = np.int32(rows[0]), np.int32(columns[0]), np.int32(own)
        for band in BANDS if own else WHOLE:
            full, counted = False, few
            while not full:
                kernel(
                    _grid(rows[1] - rows[0], columns[1] - columns[0]),
                    (FILTER_THREADS,),
                    (
                        *sums.arguments(),
                        *place,
                        *map(np.int32, band),
                        *numbers,
                        *lists.arguments(),
                        lists.places(own),
                        counted,
                    ),
                )
                full, counted = lists.keep(rows, columns), _NULL
    found = lists.result(k)
    found.few = int(few[0])
    return found


def nearest_points(points: np.ndarray, k: int, device: Device) -> Nearest:
    """`Backend.nearest_points`."""
    points = checked_points(points)
    n, m = points.shape
    found = Nearest.empty(n, k)
    k = found.index.shape[1]
    if not k:
        return found
    there = cupy.asarray(points)
    scaled = Scaled.of(there, cupy)
    side = tile_side(n, neighbor_plans.TILE_POINTS)
    lists = Lists(n, k, side, Form.of_points(scaled.scale, scaled.rounding), device)
    kernel = load_function(POINTS, "filter_points", (), device.capability)
    for rows, columns in ordered_tiles(n, side):
        own = rows == columns
        grid = tuple(divide_up(last - first, POINT_TILE) for first, last in (columns, rows))
        for band in BANDS if own else WHOLE:
            full = False
            while not full:
                kernel(
                    grid,
                    (POINT_SIDE * POINT_SIDE,),
                    (
                        there,
                        scaled.points,
                        np.int32(m),
                        np.int64(n),
                        *map(np.int32, (*rows, *columns, own)),
                        *map(np.int32, band),
                        *lists.arguments(),
                        lists.places(own),
                    ),
                )
                full = lists.keep(rows, columns)
    found = lists.result(k)
    found.distance = np.sqrt(found.distance)
    return found


class _CloseTiles:
    """Close pairs of one tile after the other: selected, then counted one by one."""

    def __init__(self, tiles: Tiles, closeness: Closeness, device: Device, threads: int) -> None:
        self.tiles, self.closeness, self.device = tiles, closeness, device
        self.planes, self.threads = tiles.planes, threads
        self.limits = cupy.zeros(self.planes.n_samples, np.int32)
        self.count = cupy.zeros(1, np.uint64)
        self.buffer = cupy.empty((LEAST_PAIRS, 2), np.int32)

    def _load(self, function: str, n_outputs: int = 1) -> cupy.RawKernel:
        defines = (("N_OUTPUTS", n_outputs),)
        return load_function(CLOSE, function, defines, self.device.capability)

    def set_limits(self, rows: Bounds) -> None:
        """Limits of the samples of a block, from their own counts."""
        block = self.tiles.block(rows).words
        out = cupy.zeros((2, len(block)), np.int64)
        self._load("count_own")(
            (divide_up(32 * len(block), FILTER_THREADS),),
            (FILTER_THREADS,),
            (
                block,
                np.int32(block.shape[1]),
                np.int64(block.shape[2]),
                np.int64(self.planes.n_sites),
                np.int64(len(block)),
                out,
            ),
        )
        limits = np.clip(self.closeness.limits(*out.get()), -1, 2**31 - 1)
        self.limits[slice(*rows)] = cupy.asarray(limits.astype(np.int32))

    def select(self, sums: Any, rows: Bounds, columns: Bounds, most: int) -> cupy.ndarray | int:
        """Pairs (row, column) within a tile, int32 (n_pairs, 2); of more than `most` the number."""
        n_outputs, own = sums.plan.shape[1], rows == columns
        share = self.closeness.widened_share
        while True:
            self.count.fill(0)
            self._load("select_close", n_outputs)(
                _grid(rows[1] - rows[0], columns[1] - columns[0]),
                (FILTER_THREADS,),
                (
                    *sums.arguments(),
                    *map(np.int32, (rows[0], columns[0], own)),
                    self.limits,
                    np.float64(self.closeness.slope),
                    np.float64(-1 if share is None else share),
                    np.int32(self.closeness.min_called),
                    self.buffer,
                    self.count,
                    np.uint64(len(self.buffer)),
                ),
            )
            n_found = int(self.count[0])
            if n_found <= len(self.buffer):
                return self.buffer[:n_found]
            if n_found > most:
                return n_found
            self.buffer = cupy.empty((n_found, 2), np.int32)

    def counted(self, pairs: cupy.ndarray, rows: Bounds, columns: Bounds) -> ClosePairs:
        """Those of some pairs of a tile that are wanted, with their counts."""
        if self.tiles.held is None:
            i, j = pairs.get().astype(np.int64).T
            a, b = (self.planes.block(*bounds) for bounds in (rows, columns))
            found = ClosePairs(i + rows[0], j + columns[0], count_pairs(a, b, i, j, self.threads))
            return found.only(self.closeness.wanted(found.counts))
        a, b = (self.tiles.block(bounds).words for bounds in (rows, columns))
        counts = cupy.empty((len(KINSHIP.outputs), len(pairs)), np.int64)
        if len(pairs):
            self._load("count_pairs")(
                (divide_up(32 * len(pairs), FILTER_THREADS),),
                (FILTER_THREADS,),
                (
                    a,
                    b,
                    np.int32(a.shape[1]),
                    np.int64(a.shape[2]),
                    np.int64(self.planes.n_sites),
                    pairs,
                    np.int64(len(pairs)),
                    counts,
                ),
            )
        wanted = self.closeness.wanted(counts)
        i, j = pairs[wanted].get().astype(np.int64).T
        return ClosePairs(i + rows[0], j + columns[0], counts[:, wanted].get())


def close_pairs(tiles: Tiles, closeness: Closeness, device: Device, threads: int) -> ClosePairs:
    """`Backend.close_pairs`; `threads`: of the CPU."""
    n = tiles.planes.n_samples
    work = _CloseTiles(tiles, closeness, device, threads)
    parts, n_found, whole = [], 0, False
    for rows, columns in ordered_tiles(n, tiles.side(KINSHIP)):
        if rows == columns:
            work.set_limits(rows)
        n_pairs = (rows[1] - rows[0]) * (columns[1] - columns[0])
        pairs = None
        if not whole:
            sums = tiles.multiply(rows, columns, SQUARED_ALONE)
            pairs = work.select(sums, rows, columns, max(LEAST_PAIRS, n_pairs // CANDIDATE_SHARE))
            whole = isinstance(pairs, int)
        if whole:
            sums = tiles.multiply(rows, columns, KINSHIP)
            pairs = work.select(sums, rows, columns, closeness.most - n_found)
            if isinstance(pairs, int):
                closeness.require_room(n_found + pairs, n)
        found = work.counted(pairs, rows, columns)
        n_found += len(found.rows)
        closeness.require_room(n_found, n)
        parts.append(found)
    return ClosePairs.joined(parts)
