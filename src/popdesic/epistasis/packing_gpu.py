"""Which blocks of pairs of sites have too many samples in common for 16-bit counts.

The counts of both classes share a word where at most MAX_SHARED samples of a class are in a pair
of stored states of y and z: no count of a triple (x, y, z) is larger. In a large cohort more than
that may carry one genotype, but seldom two. There the tables of all pairs are counted once, in two
words, which takes little of a scan of triples.
"""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.layout import divide_up
from ..engine.pinned_gpu import read_by_kernel
from .launches_gpu import LaunchedScan, Operands
from .layout import BLOCK_SITES, TILE_SITES
from .scan_plan import (
    MANY_OVERFLOWING,
    MAX_GRID,
    MAX_SHARED,
    PADDING,
    align,
    overflowing_items,
    schedule_tiles,
)

#: Share of the device's memory for tables of pairs that are measured together.
TABLES_SHARE = 1 / 8


class PackingScan(LaunchedScan):
    """A scan of cases and controls that chooses how each block of y and z is counted."""

    def make_margins(self, sites: range) -> None:
        """See `epistasis_classes.ClassScan`, as for the next two."""
        raise NotImplementedError

    def operands_of_all(self, first_site: int) -> Operands:
        raise NotImplementedError

    def pack(self, operands: Operands, sites: range) -> None:
        raise NotImplementedError

    def choose_packing(self, share_a_word: bool) -> None:
        """Set `split_cells`, `split_accumulators` and `overflowing`, of triples and quads.

        Parameters
        ----------
        share_a_word : whether the bound can take cells of both classes from one word.
        """
        sites = range(self.data.n_sites)
        self.split_cells = self.split_accumulators = 1
        self.make_margins(sites)
        largest = self._measure_pairs()
        overflowing = largest[:, :, 0] > MAX_SHARED
        tile, width = self.core.tile_sites, self.core.z_sites(3, self.states)
        share = overflowing_items(
            schedule_tiles(sites, sites, tile, width), overflowing, tile, width
        ).mean()
        if self.quads:  # no cell of theirs is larger than one of a pair
            share = int(largest.max(initial=0) > MAX_SHARED)
        if share >= MANY_OVERFLOWING:
            return
        self.split_accumulators = 0
        if share:
            self.overflowing = overflowing
        else:
            self.split_cells = int(not share_a_word or largest.max() > MAX_SHARED)
            self.make_margins(sites)

    def _measure_pairs(self) -> np.ndarray:
        """Most samples of a class in a pair of stored states, and in any cell of two sites.

        uint32 (tiles of TILE_SITES sites of y, blocks of BLOCK_SITES sites of z, 2).
        """
        n, shape = self.data.n_sites, (self.padded // TILE_SITES, self.padded // BLOCK_SITES, 2)
        largest = cupy.zeros(shape, np.uint32)
        operands = self.operands_of_all(0)
        self.pack(operands, range(self.padded))
        room = int(TABLES_SHARE * cupy.cuda.runtime.memGetInfo()[1])
        rows = align(room // (4 * self._table_words() // TILE_SITES), self.states)
        rows = max(rows, PADDING[self.states])
        for first in range(0, n, rows):
            strip = range(first, min(n, first + rows))
            tables, base = self.pair_tables(operands, strip)
            kernel = self.load(self.core.source, "pair_sizes", **self.shape_of(2, 1).defines)
            kernel(
                (divide_up(self.padded, 256), min(MAX_GRID, len(strip))),
                (256,),
                (
                    *(base, *map(np.int32, (strip.start, strip.stop, n, self.padded))),
                    *(self.margins, *map(np.uint32, self.n_classes), largest),
                ),
            )
            del tables
        return largest.get()

    def _table_words(self) -> int:
        """Words of the tables of one tile of y and all sites."""
        return self.padded * TILE_SITES * self.states**2 * (1 + self.split_accumulators)

    def table_shape(self, rows: range) -> tuple[int, int]:
        """Tiles of y in `rows`, and words of the tables of each."""
        n_tiles = divide_up(rows.stop, self.core.tile_sites) * self.core.cluster
        return n_tiles - rows.start // TILE_SITES, self._table_words()

    def pair_tables(
        self, operands: Operands, rows: range, tables: cupy.ndarray | None = None
    ) -> tuple[cupy.ndarray, np.uint64]:
        """Tables of the pairs y < z with y in `rows`, which begins a block of rows.

        Returns them, and the address of site 0's. `operands`: of all samples or some, packed;
        `tables`: where to put them, `table_shape`.
        """
        first_tile, words = rows.start // TILE_SITES, self._table_words()
        if tables is None:
            tables = cupy.empty(self.table_shape(rows), np.uint32)
        base = np.uint64(tables.data.ptr - first_tile * words * 4)
        items = self._items(2, rows, range(rows.start, self.data.n_sites))
        self._launch(2, 1, operands, read_by_kernel(items), 0, base, self._describe(range(0)))
        return tables, base
