"""Scans of all pairs and triples on a CUDA device (kernels/epistasis/).

The device computes tables and a lower bound of each combination's cost, and writes records of
those whose bound is not above the K-th best cost so far; their exact integer costs decide. Work is
cut into batches of x (triples) and launches of items (tiles of y and z); after each launch the K-th
best is updated. The result does not depend on how the work is cut.

Scans by interaction write records where the mutual information exceeds that of fewer sites by
enough; a second bound of these is computed from their cells, and the best of them by it are fitted
on the host until the bound of the next one is not enough (docs/interactions.md).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import cupy
import numpy as np

from ..engine.devices import Device
from ..engine.pinned_gpu import read_by_kernel
from ..engine.tune_gpu import choose_scan_kernel
from .best_gpu import INT64_MAX, Best
from .bound import Bound, K2Terms, is_gini, is_k2, need_of, score_scale, share_of_cases
from .classes_gpu import ClassScan
from .interaction_cpu import UNIT, interaction_costs
from .launches_gpu import Operands
from .layout import COMPACT_SCORE, RECORD_SITES
from .packing_gpu import PackingScan
from .parts_plan import ScanPart, both, parts_of
from .planes_gpu import ScanPlanes
from .quads_gpu import QuadScan
from .scan_data import Hits, ScanData
from .scan_plan import (
    BATCH,
    FEWER_QUADS,
    FIRST_LAUNCH,
    FIRST_SITES_ONLY,
    LOCKSTEP,
    LOCKSTEP_STEPS,
    MAX_SHARED,
    Pace,
    align,
    choose_core,
    keeps_sites_only,
    missing_samples,
    padded_sites,
    upload_blocks,
    widest_tile,
)
from .scan_work import require_complete

#: Records up to which the best are picked out on the host, where a step costs less than a launch.
FEW_RECORDS = 1 << 15


def _nothing() -> None:
    pass


class ClassBest(Best):
    """Of cases and controls."""

    scan: ClassScan

    def bits(self) -> int:
        return self.data.lr_bits

    def arguments(self) -> tuple:
        return self.scan.total, self.scan.part, np.float64(2.0**-self.data.lr_bits)

    def costs(self, records: np.ndarray) -> np.ndarray:
        tables = self.cells_of(records)
        return interaction_costs(tables, self.bits(), self.cutoff, threads=self.threads)

    def keep(self, costs: np.ndarray, sites: np.ndarray) -> None:
        """Records of quads are without w, which all of a launch have in common."""
        if self.order > RECORD_SITES:
            sites = np.insert(sites, 0, self.scan.w, axis=1)
        super().keep(costs, sites)

    def merge(self, records: cupy.ndarray) -> None:
        """Scores other than the interaction are sums of table entries, exact on the device."""
        if self.scan.interaction:
            super().merge(records)
            return
        costs = cupy.empty(len(records), np.int64)
        unit = np.float64(self.data.total[0] if is_gini(self.data) else 0)
        self.launch("score_records", records, self.scan.total, self.scan.part, unit, costs)
        sites = records[:, max(0, RECORD_SITES - self.order) : RECORD_SITES]
        if len(records) > FEW_RECORDS:
            costs, sites = self._below(cupy, costs, sites)
        costs, sites = self._below(np, costs.get(), cupy.ascontiguousarray(sites).get())
        self.keep(costs, sites.view(np.int32))

    def _below(self, xp, costs, sites):
        """Those that cost no more than the worst hit and the K-th best of them."""
        limit = min(self.cutoff, INT64_MAX - 1)  # the largest cost: not permitted
        if len(costs) > self.top:
            limit = min(limit, int(xp.partition(costs, self.top - 1)[self.top - 1]))
        good = xp.flatnonzero(costs <= limit)
        return costs[good], sites[good]


@dataclass
class EarlierParts:
    """What the scan of one part of the combinations leaves to that of the next part.

    Attributes
    ----------
    tables : tuple of device arrays
        `total` and `part` of the data.
    scale : float
        `epistasis_bound.score_scale`.
    k2_terms : K2Terms or None
    pace : Pace
        How many combinations were scanned, and which share the cutoff let through last.
    planes : ScanPlanes or None
        None if the next part has other sites.
    sizes : int32 device array or None
        `ClassScan.sizes_there`: right for the sites that were received.
    operands : Operands or None
        Packed planes of pairs.
    """

    tables: tuple[cupy.ndarray, cupy.ndarray]
    scale: float
    k2_terms: K2Terms | None
    pace: Pace
    planes: ScanPlanes | None = None
    sizes: cupy.ndarray | None = None
    operands: Operands | None = None

    def of_other_sites(self) -> EarlierParts:
        """Without what belongs to some sites."""
        return replace(self, planes=None, sizes=None, operands=None)


class Scanner(ClassScan, PackingScan, QuadScan):
    """One scan on the current device.

    Parameters
    ----------
    data : ScanData
    order, top, cutoff
        As in `scan_triples`.
    device : Device
    kernel : str, optional
        wgmma, mma or popc; the fastest on the device (`tune.choose_scan_kernel`).
    threads : int
        CPU threads that fit interactions.
    part : Part, optional
        The combinations that this scan takes; all of them.
    prior : Prior, optional
        From the scan of another part.
    """

    def __init__(
        self,
        data: ScanData,
        order: int,
        top: int,
        cutoff: int | None,
        device: Device,
        kernel: str | None = None,
        threads: int = 1,
        part: ScanPart | None = None,
        prior: EarlierParts | None = None,
    ):
        before = (prior.planes, prior.tables, prior.sizes) if prior else ()
        super().__init__(data, device, part, *before)
        everyone = range(data.n_sites)
        self.chosen = part or ScanPart(self.states, self.states, everyone, everyone, everyone)
        self.order, self.n_cells, self.quads = order, 3**order, int(order > RECORD_SITES)
        #: Sites that the scan of another part will need besides; sent behind those of this one.
        self.later = range(0)
        self.best = ClassBest(self, order, top, cutoff, threads)
        self.k2_terms = None
        if prior is not None:
            self.scale, self.k2_terms = prior.scale, prior.k2_terms
        else:
            self.scale = score_scale(data)
            if is_k2(data):
                self.k2_terms = K2Terms.of(data.total, data.part, self.scale, self.n_cells)
        self.logs = self.k2_terms is not None and self.k2_terms.logs
        # The cells of both classes share a word where every one fits 16 bits and a ratio of small
        # weights is close to the share of cases.
        gini = is_gini(data)
        weighted, steps, overflowing = Bound.weighted(self.n_classes, gini), 0.0, False
        self.split_cells = int(weighted is None)
        if order == 2 and max(self.n_classes) > MAX_SHARED:
            self.split_cells = self.split_accumulators = 1
        counted = prior is not None and prior.sizes is not None
        self.make_margins(range(data.n_sites if counted else 0))
        if order > 2:
            if not counted:
                self.receive(everyone, self.planes.send(everyone))
            steps = self.measure_depths() / (3 if self.quads else 1)
            overflowing = self.sizes.max(initial=0) > MAX_SHARED
        kernel = kernel or choose_scan_kernel(device)
        self.core = choose_core(
            *(kernel, order, self.states, steps),
            overflowing=overflowing,
            shared_bytes=device.shared_bytes,
            x_states=self.x_states,
        )
        self.lockstep = LOCKSTEP if order == 2 or steps >= LOCKSTEP_STEPS else 0
        self.bound = Bound.of(share_of_cases(self.n_classes), gini=gini)
        self.prepare_launches()
        if overflowing:
            self.choose_packing(weighted is not None)
        elif order > 2:
            self.make_margins(range(data.n_sites))
        if not self.split_cells:
            self.bound = weighted
        if order == 3 and self.core.epilogue_workspace and not self.split_accumulators:
            self.join_neighbours(steps)
        sites_only = keeps_sites_only(
            self.core, order, self.x_states, self.overflowing is not None or self.split_accumulators
        )
        pace = Pace(order, top, FIRST_SITES_ONLY if sites_only else FIRST_LAUNCH)
        #: Packed planes of pairs, from the scan of another part; later those of this one.
        self.packed_planes = prior.operands if prior else None
        # of triples of the same sites, batches limit the launches
        if prior is not None and (order == 2 or prior.planes is None):
            pace.combinations, pace.passing = prior.pace.combinations, prior.pace.passing
        self.prepare_records(pace)

    @property
    def sites_only(self) -> bool:
        """See `LaunchedScan`."""
        return keeps_sites_only(self.core, self.order, self.x_states, self.split_accumulators)

    @property
    def prior(self) -> EarlierParts:
        """For the scan of another part."""
        left = self.planes, self.sizes_there, self.packed_planes
        return EarlierParts((self.total, self.part), self.scale, self.k2_terms, self.pace, *left)

    def parts(self, order: int) -> int:
        """See `LaunchedScan.parts`."""
        return self.depths.shape[1] // 2 if order == 3 else 1

    def fields(self) -> dict[str, float]:
        """See `LaunchedScan.fields`."""
        cutoff = self.best.cutoff
        cutoff = math.inf if cutoff == INT64_MAX else cutoff / self.scale
        need = need_of(
            cutoff, self.k2_terms, self.n_classes, self.bound.r, self.n_cells, self._missing()
        )
        if self.interaction:
            need = max(-3e38, need - 2 * UNIT)
        controls, cases = self.n_classes
        occupied = self.k2_terms.occupied if self.k2_terms else 0.0
        fields = self.bound.fields(occupied)
        return {**fields, "need": need, "controls": controls, "cases": cases}

    def _missing(self) -> tuple[int, int]:
        """At most so many samples of each class lack a genotype at the sites of a combination."""
        if self.x_states == 2:
            return 0, 0
        if self.missing is None:
            first, z = self.chosen.first, self.chosen.z
            sites, order = range(first.start, z.stop), self.order
            if self.states == 2:  # y and z are complete
                sites, order = first, 1
            largest = self.sizes_there[sites.start : sites.stop, :, 2].max(axis=0).get()
            self.missing = missing_samples(order, largest)
        return self.missing

    def merge(self, n: int) -> None:
        """See `LaunchedScan.merge`."""
        if self.sites_only:
            planes = self.planes
            self.load(COMPACT_SCORE, "count_records")(
                (n,),
                (256,),
                (
                    *(self.records, *planes.words, *planes.n_words),
                    *map(np.int32, (*self.n_classes, self.w)),
                ),
            )
        super().merge(n)

    @property
    def to_check(self) -> range:
        """Sites that the data say have no missing genotypes, and nobody has looked."""
        n, begin = self.data.n_sites, self.data.complete_from
        return range(n if begin is None or self.stored == 2 else begin, n)

    def check_complete(self) -> None:
        """Refuse data of which a site in `to_check` has missing genotypes."""
        sites = self.to_check
        if not len(sites):
            return
        if self.order == 2:  # whose planes of missing genotypes arrived last
            self.receive(sites, self.planes.send(sites))
        require_complete(self.sizes_there[sites.start :, :, 2])

    # ------------------------------------------------------------------ scans

    def pairs(self, first: range) -> Hits:
        """The best pairs (y, z), y in `first` and in the part, z in the part."""
        first = both(first, self.chosen.first)
        if not len(first) or self.data.n_sites < 2:
            return self.best.hits
        z = self.chosen.z
        start, n = align(z.start if self.mixed else first.start, self.states), z.stop
        operands, end = self.packed_planes, padded_sites(n, self.states)
        packed = operands is not None and operands.holds(start, end, self.states)
        if not packed:
            operands = self.packed_planes = self.operands_of_all(start, end)
        if self.mixed:
            self.make_columns(first)
        arrived = (self.planes.sent[start:n] >= self.states).all()  # or on their way
        blocks = [range(start, n)] if arrived else upload_blocks(start, n, self.states)
        sent = [self.planes.send(block, self.states) for block in blocks]
        self.planes.send(self.later)
        self.planes.send(self.to_check)
        runs = [
            self._items(2, range(first.start, min(first.stop, b.stop)), both(b, z)) for b in blocks
        ]
        there = read_by_kernel(np.concatenate(runs))
        there = cupy.split(there, np.cumsum([len(run) for run in runs[:-1]]))

        def prepare(block: range, arrival: cupy.cuda.Event) -> None:
            if packed:
                return
            self.receive(block, arrival)
            self.pack(operands, range(block.start, operands.end if block.stop == n else block.stop))

        steps = [functools.partial(prepare, *one) for one in zip(blocks, sent, strict=True)]
        steps[0]()
        for run, on_device, following in zip(runs, there, [*steps[1:], _nothing], strict=True):
            self._run(operands, run, on_device, first, np.uint64(0), following)
        return self.best.hits

    def triples(self, first: range) -> Hits:
        """The best triples (x, y, z), x in `first` and in the part, y and z in the part."""
        first, of_y = both(first, self.chosen.first), self.chosen.y
        stop = min(first.stop, of_y.stop - 1, self.data.n_sites - 2)
        if first.start >= stop:
            return self.best.hits
        samples = self.transposed()
        rows = range(max(first.start, of_y.start), of_y.stop)
        if self.offsets:  # also of what pairs with x, and pairs of two z, say
            rows = range(first.start, self.data.n_sites)
        start = align(rows.start, self.states)
        operands = self.operands_of_all(start)
        self.pack(operands, range(start, self.padded))
        tables, kinds = {}, (0, 1) if self.overflowing is not None else (self.split_accumulators,)
        for self.split_accumulators in kinds:
            tables[self.split_accumulators] = self.pair_tables(operands, range(start, rows.stop))
        if self.offsets:
            self.know_pairs(tables[self.split_accumulators][1], start)
        del operands  # their memory is given to those of a batch
        x = first.start
        while x < stop:
            first_site = align(max(x + 1, of_y.start), self.states)
            sizes = self.depths[x : min(stop, x + BATCH) : self.operand_sites]
            batch = self.batch_of(sizes, first_site)
            operands = self.compact(samples, x, batch)
            n = self.data.n_sites
            end = min(stop, x + self.operand_sites * len(batch))
            for self.split_accumulators in kinds:
                y = range(max(x + 1, of_y.start), of_y.stop)
                z = both(range(first_site, n), self.chosen.z)
                items = self._items(3, y, z, len(batch))
                yz = tables[self.split_accumulators][1]
                self._run(operands, items, cupy.asarray(items), range(x, end), yz)
            x = end
        del tables
        return self.best.hits


def scan_parts(
    data: ScanData,
    order: int,
    firsts: list[range],
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None = None,
    threads: int = 1,
    within: tuple[range, range] | None = None,
) -> Hits:
    """The best combinations whose first site is in one of `firsts`.

    Those of sites without missing genotypes and the others have a scan each, one after the other
    (`epistasis_parts.parts_of`); each starts with the hits and the cutoff of those before.

    `within`: ranges of y and z (see `ScanPart`), if not all.
    """
    given = (top, cutoff, device, kernel, threads)
    return scan_step(data, order, firsts, *given, within or (range(data.n_sites),) * 2, None)[0]


def scan_step(
    data: ScanData,
    order: int,
    firsts: list[range],
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None,
    threads: int,
    within: tuple[range, range],
    prior: EarlierParts | None,
) -> tuple[Hits, EarlierParts | None]:
    """The same as one of several scans with the same samples, and what it leaves to the next one.

    `prior`: from the scan of other sites.
    """
    kernel = kernel or choose_scan_kernel(device)
    todo = []
    for part in parts_of(data, order, widest_tile(kernel), threads):
        part = part.within(part.first, *within)
        own = [span for span in (both(first, part.first) for first in firsts) if len(span)]
        if own and part.y and part.z:
            todo.append((part, own))
    hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))
    for number, (part, own) in enumerate(todo, 1):
        scanner = Scanner(data, order, top, cutoff, device, kernel, threads, part, prior)
        scanner.best.hits = hits
        later = [span for _, spans in todo[number:] for span in spans]
        if later:  # other sites of pairs are in the block, which was sent before
            stop = max(span.stop for span in later) if order == 2 else data.n_sites
            scanner.later = range(min(span.start for span in later), stop)
        for span in own:
            (scanner.pairs if order == 2 else scanner.triples)(span)
        if number == len(todo):  # whose planes hold those of the parts before
            scanner.check_complete()
        prior, hits, cutoff = scanner.prior, scanner.best.hits, scanner.best.cutoff
        scanner.best.close()  # its memory is for the next scan
        del scanner
    return hits, prior and prior.of_other_sites()


def scan_quads(
    data: ScanData,
    first: range,
    top: int,
    cutoff: int | None,
    device: Device,
    kernel: str | None = None,
    threads: int = 1,
) -> Hits:
    """See `scan_sites.scan_quads`; scores of association alone."""
    if data.n_sites < 4:
        return Hits(np.zeros(0, np.int64), np.zeros((0, 4), np.int32))
    scanner = Scanner(data, 4, top, cutoff, device, kernel, threads)
    scanner.quads_of(first, BATCH // FEWER_QUADS)
    scanner.check_complete()
    hits = scanner.best.hits
    scanner.best.close()  # its memory is for the next scan
    return hits
