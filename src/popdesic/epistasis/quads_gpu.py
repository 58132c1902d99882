"""Scans of all quads of sites w < x < y < z by association on a CUDA device.

A table of four sites is three tables of x, y and z: of the samples with w in each genotype. Costs
are sums over cells, so for each w the kernels of triples run with three operands of each x, and add
what they find before they compare it (QUADS in kernels/epistasis/parts.cuh). What a launch lets
through is counted again from the planes. All sites take the products of missing genotypes if any
has some.
"""

from __future__ import annotations

import cupy
import numpy as np

from .launches_gpu import LaunchedScan, Operands
from .layout import TILE_SITES
from .scan_data import Hits
from .scan_plan import Batch, align, depths_of, states_in_depth

#: Genotypes of w: operands of an x.
GIVEN = 3


class QuadScan(LaunchedScan):
    """A scan of cases and controls that may be one of quads.

    Attributes
    ----------
    sizes : int64 array, (n_sites, 2, stored)
        Samples of each site, class and stored state.
    depths : int64 array, (operands, segments)
        Samples of each segment of an x.
    w : int
        The first site of the quads that are being scanned.
    of_w : int array, (3, 2)
        Controls and cases with it in states 0 and 1, and in the genotype that is not stored.
    table_words : int
        Of the pair tables of one of these genotypes.
    """

    sizes: np.ndarray
    depths: np.ndarray
    of_w, table_words = np.zeros((GIVEN, 2), np.int64), 0

    def compact(self, samples, first: int, batch: Batch, every: int = -1) -> Operands:
        """See `classes_gpu.ClassScan`."""
        raise NotImplementedError

    def table_shape(self, rows: range) -> tuple[int, int]:
        """See `packing_gpu.PackingScan`, as for the next one."""
        raise NotImplementedError

    def pair_tables(self, operands: Operands, rows: range, tables=None) -> tuple:
        raise NotImplementedError

    def quads_of(self, first: range, most: int) -> Hits:
        """The best quads (w, x, y, z), w in `first`; at most `most` x in a batch."""
        stop = min(first.stop, self.data.n_sites - 3)
        if first.start < stop:
            samples = self.transposed()
            for self.w in range(first.start, stop):
                self._scan_after_w(samples, max(1, most))
        return self.best.hits

    def _describe(self, first: range) -> np.ndarray:
        """See `LaunchedScan`; `Found` of quads has w in place of the first x."""
        one = super()._describe(first)
        if self.quads:
            one["first"], one["of_w"], one["table_words"] = self.w, self.of_w, self.table_words
        return one

    def _scan_after_w(self, samples: list[cupy.ndarray], most: int) -> None:
        """All quads of one w."""
        n, begin = self.data.n_sites, self.w + 1
        depths, tables, yz = self._samples_of_w(samples, align(begin, self.states))
        while begin < n - 2:
            first_site = align(begin + 1, self.states)
            stop = min(n - 2, begin + most)
            sizes = depths[begin:stop].reshape(-1, depths.shape[2])
            batch = self.batch_of(sizes, first_site, GIVEN)
            operands = self.compact(samples, begin, batch)
            end = begin + len(batch) // GIVEN
            items = self._items(3, range(begin + 1, n), range(first_site, n), end - begin)
            self._run(operands, items, cupy.asarray(items), range(begin, end), yz)
            begin = end
        del tables

    def _samples_of_w(
        self, samples: list[cupy.ndarray], start: int
    ) -> tuple[np.ndarray, cupy.ndarray, np.uint64]:
        """Margins and pair tables of the samples with w in each genotype; sites from `start` on.

        Returns
        -------
        int64 array, (padded sites, 3, segments)
            Samples of the segments of each x.
        device array
            The tables, one genotype after the other.
        uint64
            Where those of site 0 would be.
        """
        stored = self.sizes[self.w]
        rest = np.array(self.n_classes) - stored.sum(axis=1)
        self.of_w = np.stack([stored[:, 0], stored[:, 1], rest])
        rows = range(start, self.data.n_sites)
        shape = self.table_shape(rows)
        tables = cupy.empty((GIVEN, *shape), np.uint32)
        margins = []
        for given, sizes in enumerate(self.of_w):
            segments = np.zeros((1, self.depths.shape[1]), np.int64)
            segments[0, :2] = sizes
            operands = self.compact(samples, self.w, Batch.of(segments, start), given)
            counts = operands.xy.reshape(self.padded, self.x_states, self.states, -1)
            margins.append(counts[:, states_in_depth(self.x_states)[0]])
            self.pair_tables(operands, rows, tables[given])
        self.margins = cupy.ascontiguousarray(cupy.stack(margins))
        found = self.margins.get().astype(np.int64)
        if not self.split_cells:
            found = np.concatenate([found >> 16, found & 0xFFFF], axis=3)
        depths = np.stack(
            [depths_of(one.transpose(0, 2, 1), self.x_states) for one in found], axis=1
        )
        self.table_words = shape[0] * shape[1]
        first_tile = start // TILE_SITES
        return depths, tables, np.uint64(tables.data.ptr - first_tile * shape[1] * 4)
