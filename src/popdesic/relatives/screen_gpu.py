"""Pairs that are looked at again, and best matches, on a GPU: selected where sums were left.

A tile's sums are read twice (kernels/relatives/screen.cu, near_lists.cu). What leaves the device is
the result.
"""

from __future__ import annotations

import cupy
import numpy as np

from ..distance.near_lists_gpu import BOTH, COLUMNS, ROWS, Lists, Offers
from ..distance.nearest_plan import (
    BANDS,
    FILTER_ROWS,
    FILTER_THREADS,
    WHOLE,
    LimitForm,
    TileOfSums,
    Tiles,
    TilesBetween,
    filter_grid,
    ordered_tiles,
    tiles_between,
)
from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.terms import KINSHIP
from ..engine.tile_plan import Bounds
from .matches import NEVER, TopMatches
from .screen import PAIR_WORDS, SCREEN, Screen, Screened

#: Pairs of a tile that there is room for at first, and at most: more come by fewer rows at a time.
LEAST_PAIRS, MOST_PAIRS = 1 << 16, 1 << 23
#: Places of `KINSHIP` where rows and columns change places.
_TURNED = [0, 1, 3, 2, 4]
_NULL = np.uint64(0)


class _Pairs:
    """Pairs of tiles that a screen keeps."""

    def __init__(self, screen: Screen, device: Device) -> None:
        defines = (("N_OUTPUTS", len(KINSHIP.outputs)),)
        self.kernel = load_function(SCREEN, "screen_counts", defines, device.capability)
        self.numbers = (
            *map(np.float64, (0.5 - screen.min_kinship, screen.max_same)),
            *map(np.float64, (screen.max_mismatch, screen.max_absent)),
            *map(np.int32, (screen.least_related, screen.least_matched)),
        )
        self.buffer = cupy.empty((LEAST_PAIRS, PAIR_WORDS), np.int32)
        self.count, self.few = (cupy.zeros(1, np.uint64) for _ in range(2))
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, sums: TileOfSums, rows: Bounds, columns: Bounds, own: bool) -> None:
        """Those of one tile; rows and columns are numbers of samples."""
        n_rows, n_columns = rows[1] - rows[0], columns[1] - columns[0]
        first, step, few = 0, n_rows, self.few
        while first < n_rows:
            last = min(first + step, n_rows)
            n_found = self._select(sums, first, last, n_columns, own, few)
            few = _NULL  # where there is no room, pairs are looked at again
            if n_found > MOST_PAIRS and step > FILTER_ROWS:
                step = max(FILTER_ROWS, step // 2)
            elif n_found > len(self.buffer):
                self.buffer = cupy.empty((n_found, PAIR_WORDS), np.int32)
            else:
                found = self.buffer[:n_found].get().astype(np.int64).T
                self.parts.append((found[0] + rows[0], found[1] + columns[0], found[2:7]))
                first = last

    def _select(
        self, sums: TileOfSums, first: int, last: int, n_columns: int, own: bool, few
    ) -> int:
        """Pairs of some rows of a tile into the buffer; how many there are."""
        self.count.fill(0)
        self.kernel(
            filter_grid(last - first, n_columns),
            (FILTER_THREADS,),
            (
                *sums.arguments(),
                *map(np.int32, (first, last, own)),
                *self.numbers,
                self.buffer,
                self.count,
                np.uint64(len(self.buffer)),
                few,
            ),
        )
        return int(self.count[0])


def screen_own(tiles: Tiles, screen: Screen, top: int, device: Device) -> Screened:
    """`screen_pairs` of a block with itself."""
    n = tiles.planes.n_samples
    side = tiles.side(KINSHIP)
    pairs, best = _Pairs(screen, device), _Best(n, top, side, BOTH, screen, device)
    for rows, columns in ordered_tiles(n, side):
        sums, own = tiles.multiply(rows, columns, KINSHIP), rows == columns
        pairs.add(sums, rows, columns, own)
        best.add(sums, rows, columns, BANDS if own else WHOLE)
    return Screened.joined(pairs.parts, int(pairs.few[0]), best.result())


def screen_between(tiles: TilesBetween, screen: Screen, top: int, device: Device) -> Screened:
    """`screen_pairs` of two blocks, of which the second has the queries."""
    m, n = tiles.rows.n_samples, tiles.columns.n_samples
    sides, of = tiles.sides(KINSHIP), ROWS if tiles.turned else COLUMNS
    n_queries = m if tiles.turned else n
    pairs, best = _Pairs(screen, device), _Best(n_queries, top, max(sides), of, screen, device)
    for rows, columns, bands in tiles_between(m, n, sides):
        sums = tiles.multiply(rows, columns, KINSHIP)
        pairs.add(sums, rows, columns, False)
        best.add(sums, rows, columns, bands)
    parts = pairs.parts
    if tiles.turned:
        parts = [(j, i, counts[_TURNED]) for i, j, counts in parts]
    return Screened.joined(parts, int(pairs.few[0]), best.result())


class _Best:
    """Best matches of queries: lists by their shares of mismatches."""

    def __init__(
        self, n: int, top: int, side: int, sides: int, screen: Screen, device: Device
    ) -> None:
        self.n, self.top = n, top
        if top:
            lists = Lists(n, top, side, LimitForm.of_matches(), device)
            self.offers = Offers(lists, device, max(screen.least_matched, 1), sides=sides)

    def add(
        self, sums: TileOfSums, rows: Bounds, columns: Bounds, bands: tuple[Bounds, ...]
    ) -> None:
        if self.top:
            self.offers.offer(sums, rows, columns, bands)

    def result(self) -> TopMatches:
        found = TopMatches(self.n, self.top)
        if self.top:
            lists = self.offers.lists
            key, index, used = (x.get() for x in (lists.distance, lists.index, lists.called))
            there = np.isfinite(key)
            found.key = np.where(there, np.where(there, key, 0).astype(np.int64), NEVER)
            found.index = np.where(there, index, -1).astype(np.int64)
            found.mismatches, found.called = used >> 32, used & (2**32 - 1)
        return found
