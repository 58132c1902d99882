"""The best hits of a scan on a CUDA device: exact costs of the records that a launch wrote."""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.layout import divide_up
from .interaction_cpu import least_of
from .launches_gpu import DeviceScan
from .layout import COMPACT_SCORE, RECORD_SITES
from .scan_data import Hits, merge_hits

#: The largest cost: nothing is ruled out.
INT64_MAX = np.iinfo(np.int64).max


#: Tables that the host fits first, and how many times as many each time after that.
FITTED, FITTED_GROWTH = 2048, 4


class Best:
    """The best hits so far, and what a hit may still cost.

    A device bounds what a record can reach at best; the host computes the costs of those with the
    best bounds, until the bound of the next one is not enough.

    Parameters
    ----------
    scan : DeviceScan
    order, top, cutoff
        As in `scan_triples`.
    threads : int
        CPU threads that compute costs.
    """

    def __init__(self, scan: DeviceScan, order: int, top: int, cutoff: int | None, threads: int):
        self.scan, self.data, self.order = scan, scan.data, order
        self.top, self.n_cells, self.threads = top, 3**order, threads
        self.cutoff = INT64_MAX if cutoff is None else cutoff
        self.hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))

    def close(self) -> None:
        """Let go of the scan, which holds this object too: its memory is free at once."""
        del self.scan

    def bits(self) -> int:
        """Bits after the point of a cost in nats."""
        raise NotImplementedError

    def arguments(self) -> tuple:
        """Those of the kernel `bound_records` between the number of cells and `need`."""
        raise NotImplementedError

    def costs(self, records: np.ndarray) -> np.ndarray:
        """Costs of records, int64 (n,); the largest int64 may stand for more than `cutoff`."""
        raise NotImplementedError

    def merge(self, records: cupy.ndarray) -> None:
        """Take over what is good enough of some records with all their cells."""
        bounds = cupy.empty(len(records), np.float64)
        needed = np.float64(least_of(self.cutoff, self.bits()))
        self.launch("bound_records", records, *self.arguments(), needed, bounds)
        size = FITTED
        while True:
            rows = cupy.flatnonzero(bounds >= max(0.0, least_of(self.cutoff, self.bits())))
            if not len(rows):
                return
            if len(rows) > size:
                own = bounds[rows]
                rows = rows[own >= cupy.partition(own, len(own) - size)[len(own) - size]][:size]
            chosen = records[rows].get()
            bounds[rows] = -1.0
            costs = self.costs(chosen)
            good = np.flatnonzero(costs <= min(self.cutoff, 0))
            sites = chosen[good, RECORD_SITES - self.order : RECORD_SITES]
            self.keep(costs[good], np.ascontiguousarray(sites).view(np.int32))
            size *= FITTED_GROWTH

    def launch(self, name: str, records: cupy.ndarray, *arguments) -> None:
        """A kernel with one thread for each record."""
        n, limit = len(records), self.scan.limit()
        self.scan.load(COMPACT_SCORE, name)(
            (divide_up(max(1, n), 128),),
            (128,),
            (records, np.int64(n), limit, np.int32(self.n_cells), *arguments),
        )

    def cells_of(self, records: np.ndarray) -> np.ndarray:
        """Both numbers of the cells of records, int64 (n, 2, cells)."""
        split_cells = self.scan.split_cells
        cells = records[:, RECORD_SITES : RECORD_SITES + (1 + split_cells) * self.n_cells]
        parts = (cells[:, ::2], cells[:, 1::2]) if split_cells else (cells >> 16, cells & 0xFFFF)
        return np.stack(parts, axis=1).astype(np.int64)

    def keep(self, costs: np.ndarray, sites: np.ndarray) -> None:
        """Merge hits with the best so far."""
        self.hits = merge_hits([self.hits, Hits(costs, sites)], self.data.rank, self.top)
        if len(self.hits.cost) >= self.top:
            self.cutoff = min(self.cutoff, int(self.hits.cost[-1]))
