"""Scans of pairs by residuals on a CUDA device (epistasis/residual_cpu.py has the statistic).

The samples are the depth of a product once, and those with each bit of their level once more
(kernels/epistasis/parts.cuh): about five times the samples instead of nine, since half of them have
a given bit. Tables of people and of levels are compared by the sum of squares between their cells
less that of the better site; the records of those that pass hold both tables.
"""

from __future__ import annotations

import cupy
import numpy as np

from ..engine.devices import Device
from ..engine.layout import STAGE_BITS, divide_up
from ..engine.tune_gpu import choose_scan_kernel
from .best_gpu import INT64_MAX, Best
from .interaction_cpu import UNIT_BITS, least_of
from .launches_gpu import LaunchedScan, Operands
from .layout import COMPACT_SCORE, STEP_BITS
from .residual_cpu import MAX_SAMPLES, level_planes, residual_costs
from .scan_data import LEVEL_BITS, ZERO_LEVEL, Hits, ResidualData
from .scan_plan import FIRST_LAUNCH, LOCKSTEP, ROUNDING, Batch, Pace, align, choose_core


class ResidualBest(Best):
    """Of residuals: records hold people and the sum of their levels in each cell."""

    def bits(self) -> int:
        return UNIT_BITS

    def arguments(self) -> tuple:
        return (np.float64(self.data.variance),)

    def costs(self, records: np.ndarray) -> np.ndarray:
        people, sums = np.moveaxis(self.cells_of(records), 1, 0)
        return residual_costs(
            people,
            sums - ZERO_LEVEL * people,
            self.data.variance,
            self.cutoff,
            threads=self.threads,
        )


class ResidualScanner(LaunchedScan):
    """One scan of residuals on the current device.

    Parameters
    ----------
    data : ResidualData
    top, cutoff, device, kernel, threads
        As in `epistasis.Scanner`.
    """

    split_cells = split_accumulators = 1
    interaction = residuals = True
    order = 2

    def __init__(
        self,
        data: ResidualData,
        top: int,
        cutoff: int | None,
        device: Device,
        kernel: str | None = None,
        threads: int = 1,
    ):
        if data.n_samples > MAX_SAMPLES:
            raise ValueError(f"{data.n_samples} samples: at most {MAX_SAMPLES} can be scanned")
        super().__init__(data, (data.planes,), device)
        self.best = ResidualBest(self, 2, top, cutoff, threads)
        self.core = choose_core(kernel or choose_scan_kernel(device), 2, self.states, 0.0)
        self.lockstep = LOCKSTEP
        self.levels = int(data.levels.sum(dtype=np.int64))
        self.prepare_launches()
        self.prepare_records(Pace(2, top, FIRST_LAUNCH))
        everyone = range(data.n_sites)
        cupy.cuda.get_current_stream().wait_event(self.planes.send(everyone))
        self._measure_sites()

    def parts(self, order: int) -> int:
        """All samples."""
        return 1

    def fields(self) -> dict[str, float]:
        """See `LaunchedScan.fields`."""
        need = -3e38
        if self.best.cutoff != INT64_MAX:
            least = 2 * self.data.variance * max(0.0, least_of(self.best.cutoff, self.best.bits()))
            need = least * (1 - ROUNDING)
        return {"need": need, "controls": self.data.n_samples, "cases": self.levels}

    def _measure_sites(self) -> None:
        """People and levels of each stored state of each site, and what a site explains."""
        words, n_words = self.planes.words[0], int(self.planes.n_words[0])
        n, rows = self.data.n_sites, self.data.n_sites * self.states
        slices = np.zeros((LEVEL_BITS, n_words), np.uint32)
        made = level_planes(self.data.levels).view(np.uint32)
        slices[:, : made.shape[1]] = made
        both = cupy.zeros((2, n, self.states), np.uint32)
        ones = cupy.zeros((LEVEL_BITS, n_words), np.uint32)
        ones[0] = 0xFFFFFFFF  # everybody has level 1: counts
        for given, sums in zip((ones, cupy.asarray(slices)), both, strict=True):
            self.load(COMPACT_SCORE, "sum_levels")(
                (divide_up(max(1, rows) * 32, 256),),
                (256,),
                (words, given, sums, np.int32(rows), np.int32(n_words)),
            )
        self.margins = cupy.zeros((self.padded, self.states, 2), np.uint32)
        self.margins[:n] = cupy.moveaxis(both, 0, 2)
        self.known = cupy.zeros(self.padded, np.float32)
        if self.states == 2:
            cells = both.astype(np.float64)
            whole = cupy.asarray([self.data.n_samples, self.levels], np.float64)
            third = whole[:, None] - cells.sum(axis=2)
            people, levels = cupy.concatenate([cells, third[:, :, None]], axis=2)
            squares = (levels - ZERO_LEVEL * people) ** 2 / cupy.maximum(people, 1)
            self.known[:n] = squares.sum(axis=1) * (1 - ROUNDING)
        self.known_address = self.known.data.ptr

    def _operands(self, first_site: int) -> Operands:
        """Planes of all samples, then of those with each bit of their level, highest first."""
        levels = self.data.levels
        lists = [np.arange(len(levels))]
        lists += [np.flatnonzero((levels >> bit) & 1) for bit in reversed(range(LEVEL_BITS))]
        batch = Batch.of(np.array([[len(one) for one in lists]]), first_site)
        operands = self._empty_operands(batch)
        carriers = np.full(int(batch.stages[-1]) * STAGE_BITS, -1, np.int32)
        for one, step in zip(lists, batch.segments[0], strict=False):
            carriers[step * STEP_BITS : step * STEP_BITS + len(one)] = one
        samples = self.transposed()
        self.gather([samples[0], samples[0]], cupy.asarray(carriers), operands)
        return operands

    def pairs(self, first: range) -> Hits:
        """The best pairs (y, z), y in `first`."""
        n = self.data.n_sites
        first = range(first.start, min(first.stop, n))
        if not len(first) or n < 2:
            return self.best.hits
        operands = self._operands(align(first.start, self.states))
        items = self._items(2, first, range(operands.batch.first_site, n))
        self._run(operands, items, cupy.asarray(items), first, np.uint64(0))
        return self.best.hits


def scan_residual_pairs(
    data: ResidualData,
    first: range,
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None = None,
    threads: int = 1,
) -> Hits:
    """See `scan_residual_pairs`."""
    return ResidualScanner(data, top, cutoff, device, kernel, threads).pairs(first)
