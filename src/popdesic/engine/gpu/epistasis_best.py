"""The best hits of a scan on a CUDA device: exact costs of the records that a launch wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy
import numpy as np

from ..base import Hits
from ..host.interaction import interaction_costs, least_of
from .layout import RECORD_SITES, divide_up

if TYPE_CHECKING:
    from .epistasis_operands import DeviceScan

#: The file of the kernels that score records.
KERNEL = "epistasis/compact_score"
#: The largest cost: nothing is ruled out.
INT64_MAX = np.iinfo(np.int64).max
#: Records up to which the best are picked out on the host, where a step costs less than a launch.
FEW_RECORDS = 1 << 15
#: Tables that the host fits first, and how many times as many each time after that.
FITTED, FITTED_GROWTH = 2048, 4


class Best:
    """The best hits so far, and what a hit may still cost.

    Parameters
    ----------
    scan : DeviceScan
    order, top, cutoff
        As in `Backend.scan_triples`.
    threads : int
        CPU threads that fit interactions.
    """

    def __init__(self, scan: DeviceScan, order: int, top: int, cutoff: int | None, threads: int):
        self.scan, self.data, self.order = scan, scan.data, order
        self.top, self.n_cells, self.threads = top, 3**order, threads
        self.cutoff = INT64_MAX if cutoff is None else cutoff
        self.hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))

    def merge(self, records: cupy.ndarray) -> None:
        """Take over what is good enough of some records with all their cells."""
        if self.scan.interaction:
            self._fit(records)
        elif len(records):
            self._score(records)

    def _launch(self, name: str, records, *arguments) -> None:
        n = len(records)
        scan = self.scan
        given = (records, np.int64(n), scan.total, scan.part, np.int32(self.n_cells), *arguments)
        scan.load(KERNEL, name)((divide_up(max(1, n), 128),), (128,), given)

    # ------------------------------------------------------------------ sums of table entries

    def _score(self, records: cupy.ndarray) -> None:
        costs = cupy.empty(len(records), np.int64)
        self._launch("score_records", records, costs)
        sites = records[:, RECORD_SITES - self.order : RECORD_SITES]
        if len(records) > FEW_RECORDS:
            costs, sites = self._below(cupy, costs, sites)
        costs, sites = self._below(np, costs.get(), cupy.ascontiguousarray(sites).get())
        self._keep(costs, sites.view(np.int32))

    def _below(self, xp, costs, sites):
        """Those that cost no more than the worst hit and the K-th best of them."""
        limit = self.cutoff
        if len(costs) > self.top:
            limit = min(limit, int(xp.partition(costs, self.top - 1)[self.top - 1]))
        good = xp.flatnonzero(costs <= limit)
        return costs[good], sites[good]

    # ------------------------------------------------------------------ interactions

    def _fit(self, records: cupy.ndarray) -> None:
        """Fit what the bounds do not rule out, the best bound first, until the next is too low."""
        bits = self.data.lr_bits
        bounds = cupy.empty(len(records), np.float64)
        needed = np.float64(least_of(self.cutoff, bits))
        self._launch("bound_records", records, np.float64(2.0**-bits), needed, bounds)
        size = FITTED
        while True:
            rows = cupy.flatnonzero(bounds >= max(0.0, least_of(self.cutoff, bits)))
            if not len(rows):
                return
            if len(rows) > size:
                own = bounds[rows]
                rows = rows[own >= cupy.partition(own, len(own) - size)[len(own) - size]][:size]
            chosen = records[rows].get()
            bounds[rows] = -1.0
            costs = interaction_costs(self._tables(chosen), bits, self.cutoff, threads=self.threads)
            good = np.flatnonzero(costs <= min(self.cutoff, 0))
            sites = chosen[good, RECORD_SITES - self.order : RECORD_SITES]
            self._keep(costs[good], np.ascontiguousarray(sites).view(np.int32))
            size *= FITTED_GROWTH

    def _tables(self, records: np.ndarray) -> np.ndarray:
        """Tables of records, int64 (n, 2, cells)."""
        wide = self.scan.wide
        cells = records[:, RECORD_SITES : RECORD_SITES + (1 + wide) * self.n_cells]
        parts = (cells[:, ::2], cells[:, 1::2]) if wide else (cells >> 16, cells & 0xFFFF)
        return np.stack(parts, axis=1).astype(np.int64)

    # ------------------------------------------------------------------ all scores

    def _keep(self, costs: np.ndarray, sites: np.ndarray) -> None:
        """Merge hits with the best so far."""
        cost = np.concatenate([self.hits.cost, costs])
        sites = np.concatenate([self.hits.sites, sites])
        ranks = np.sort(self.data.rank[sites], axis=1)
        best = np.lexsort((*ranks.T[::-1], cost))[: self.top]
        self.hits = Hits(cost[best], np.ascontiguousarray(sites[best]))
        if len(best) >= self.top:
            self.cutoff = min(self.cutoff, int(self.hits.cost[-1]))
