"""Close pairs of samples on a GPU: selected where the products left their sums, tile by tile.

A tile's sums are read once (kernels/neighbors/close_pairs.cu). What leaves the device is the
result.
"""

from __future__ import annotations

import cupy
import numpy as np

from ..comparisons import count_pairs
from ..relatives import CANDIDATE_SHARE, Closeness, ClosePairs
from ..terms import KINSHIP, SQUARED_ALONE
from .compile import load_function
from .devices import Device
from .layout import FILTER_THREADS, divide_up
from .neighbor_plans import Bounds, TileOfSums, Tiles, filter_grid, ordered_tiles

#: The file of these kernels.
CLOSE = "neighbors/close_pairs"
#: Pairs of a tile that there is room for at first.
LEAST_PAIRS = 1 << 16


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

    def select(
        self, sums: TileOfSums, rows: Bounds, columns: Bounds, most: int
    ) -> cupy.ndarray | int:
        """Pairs (row, column) within a tile, int32 (n_pairs, 2); of more than `most` the number."""
        n_outputs, own = sums.plan.shape[1], rows == columns
        share = self.closeness.widened_share
        while True:
            self.count.fill(0)
            self._load("select_close", n_outputs)(
                filter_grid(rows[1] - rows[0], columns[1] - columns[0]),
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
