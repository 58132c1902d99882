"""Scans of all pairs and triples on a CUDA device (kernels/epistasis/).

The device computes tables and a bound of each combination's cost, and keeps those that the bound
does not rule out against the K-th best cost so far; their exact integer costs decide. Work goes
in batches of x (triples) and runs of items (tiles of y and z): after each the K-th best is set
anew. What is kept does not depend on any of this.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import cupy
import numpy as np

from ...io.errors import UserError
from ..base import Hits, ScanData
from .compile import load_function
from .devices import Device, supported_kernels
from .epistasis_bound import Bound, is_k2, need_of, score_scale, share_of_cases
from .epistasis_planes import ScanPlanes, read_by_kernel
from .epistasis_plans import (
    JOINT_STEPS,
    LOCKSTEP_STEPS,
    PADDING,
    STEP_BITS,
    TILE_SITES,
    Batch,
    choose_core,
    cut_runs,
    joint_depths,
    largest_sum,
    order_items,
)
from .layout import STAGE_BITS, divide_up

INT64_MAX = np.iinfo(np.int64).max
#: Largest number of samples of a class in one stored state: counts share a word.
MAX_STORED = (1 << 16) - 1
#: Combinations that one launch may let through, words of the record of each (by `wide`), and
#: combinations of the first launch, before any cost is known.
CAPACITY, RECORD_WORDS, FIRST_LAUNCH = 1 << 23, {0: 32, 1: 64}, 1 << 21
#: The same where a record is counted from the planes: more of them cost more than another launch.
FIRST_BARE = 1 << 18
#: Records up to which the best are picked out on the host, where a step costs less than a launch.
FEW_RECORDS = 1 << 15
#: Times the number of hits that a launch of as many combinations is taken to let through once a
#: cutoff is known; triples: as many as before, they cost more.
PASSING = {2: 32, 3: math.inf}
#: How many times the combinations of all launches before a launch may have, by order: triples that
#: a weak cutoff lets through cost more than another launch, pairs less.
GROWTH = {2: 64, 3: 8}
#: Share of the device's memory for the packed planes of one batch, and most x of one.
PACKED_SHARE, BATCH = 1 / 8, 256
#: Rows of a block that is compacted, and how many blocks of all stages come before others.
COMPACT_ROWS, COMPACT_WIDTH = 512, 8
#: Stages after which thread blocks wait for each other (common.cuh).
LOCKSTEP = 8
#: Most thread blocks in the second dimension of a grid.
MAX_GRID = 65535
#: Shares of the sites up to which the planes of a scan of pairs reach the device at a time: the
#: first are scanned while the others are on their way. A small block gives the first cutoff.
UPLOADS = (0.06, 0.4, 0.7, 1)


_FOUND = [
    ("records", np.uint64),
    ("number", np.uint64),
    ("capacity", np.uint64),
    ("allowed", np.uint64),
    ("allowed_words", np.int32),
    ("n_sites", np.int32),
    ("first", np.int32),
    ("stop", np.int32),
]
_SCAN = np.dtype(
    [
        *_FOUND,
        ("weights", np.uint32),
        *((name, np.float32) for name in ("r", "q0", "q1", "q2", "low_slope", "high_slope")),
        ("need", np.float32),
        ("controls", np.uint32),
        ("cases", np.uint32),
        ("margins", np.uint64),
    ],
    align=True,
)


def _nothing() -> None:
    pass


@dataclass
class _Operands:
    """Packed planes of a batch on the device."""

    batch: Batch
    packed: cupy.ndarray
    stages: cupy.ndarray
    segments: cupy.ndarray
    xy: cupy.ndarray | np.uint64


class Scanner:
    """One scan on the current device.

    Parameters
    ----------
    data : ScanData
    order, top, cutoff
        As in `Backend.scan_triples`.
    device : Device
    kernel : str, optional
        wgmma, mma or popc; the fastest that the device and the data allow.
    """

    def __init__(
        self,
        data: ScanData,
        order: int,
        top: int,
        cutoff: int | None,
        device: Device,
        kernel: str | None = None,
    ):
        self.data, self.order, self.top, self.device = data, order, top, device
        self.states = data.classes[0].words.shape[1]
        self.n_cells = 3**order
        self.cutoff = INT64_MAX if cutoff is None else cutoff
        self.n_classes = tuple(one.n_samples for one in data.classes)
        self.k2, self.scale = is_k2(data), score_scale(data)
        padding = PADDING[self.states]
        self.padded = divide_up(data.n_sites, padding) * padding
        self.row_words = self.padded * self.states // 32
        # what is small goes first: copies to a device queue up
        self.total, self.part = cupy.asarray(data.total), cupy.asarray(data.part)
        self.allowed = None if data.allowed is None else cupy.asarray(data.allowed)
        self.sizes_there = cupy.zeros((data.n_sites, 2, self.states), np.int32)
        self.margins = cupy.zeros((self.padded, self.states), np.uint32)
        self.planes, self.packed = ScanPlanes(data.classes), cupy.empty(0, np.uint8)
        # Where every cell fits and small weights make the share of cases, counts of both classes
        # share a word all the way; cells of triples are known before the first of them.
        weighted, steps = Bound.weighted(self.n_classes), 0.0
        self.wide = int(weighted is None or (order == 2 and max(self.n_classes) > MAX_STORED))
        if order == 3:
            self._receive(range(data.n_sites), self.planes.send(range(data.n_sites)))
            steps = self._measure_depths()
        self.bound = Bound.of(share_of_cases(self.n_classes)) if self.wide else weighted
        kernel = kernel or supported_kernels(device)[0]
        self.core = choose_core(kernel, order, self.states, steps)
        self.joint = 1  # first sites of an operand
        if order == 3 and self.core.relay:
            self._join_neighbours(steps)
        self.lockstep = LOCKSTEP if order == 2 or steps >= LOCKSTEP_STEPS else 0
        # records of sites alone: the cells of the first states are gone by then
        self.bare = order == 3 and self.states == 3 and not self.core.relay
        self.records = cupy.empty((CAPACITY, RECORD_WORDS[self.wide]), np.uint32)
        self.number, self.progress = cupy.zeros(1, np.uint64), cupy.zeros(1, np.uint32)
        self.hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))
        self.combinations, self.passing, self.missing = 0, 0.0, None

    def _load(self, file: str, name: str, **defines) -> cupy.RawKernel:
        of_all = {"K2": int(self.k2), "WIDE": self.wide, "STATES": self.states, "JOINT": 1}
        defines = tuple(sorted({**of_all, **defines}.items()))
        return load_function(file, name, defines, self.device.capability)

    def _receive(self, sites: range, arrival: cupy.cuda.Event) -> None:
        """Waits for the planes of some sites, and counts their states."""
        cupy.cuda.get_current_stream().wait_event(arrival)
        count = self._load("epistasis/compact_score", "count_states")
        for c, words in enumerate(self.planes.words):
            count(
                (divide_up(max(1, len(sites)) * self.states * 32, 256),),
                (256,),
                (
                    words,
                    self.sizes_there,
                    np.int32(sites.start),
                    np.int32(sites.stop),
                    self.planes.n_words[c],
                    np.int32(c),
                ),
            )
        sizes = self.sizes_there[sites.start : sites.stop].astype(np.uint32)
        self.margins[sites.start : sites.stop] = (sizes[:, 0] << 16) | sizes[:, 1]
        if (
            max(self.n_classes) > MAX_STORED
            and len(sites)
            and (most := int(sizes.max())) > MAX_STORED
        ):
            raise UserError(
                f"a stored genotype of a scanned site is carried by {most} samples of one "
                f"phenotype class, and a GPU scan counts {MAX_STORED}; set device to cpu."
            )

    def _measure_depths(self) -> float:
        """Samples of each state of each site, and the mean depth of an x in steps."""
        self.sizes = sizes = self.sizes_there.get().astype(np.int64)
        # a cell holds at most the samples with its first site in that state
        others = np.array(self.n_classes) - sizes.sum(axis=2)
        self.wide |= int(others.max(initial=0) > MAX_STORED)
        # an x's segments: states in the order of the depth, controls and cases of each
        order_of_states = [0, 1] if self.states == 2 else [2, 0, 1]
        self.depths = sizes[:, :, order_of_states].transpose(0, 2, 1)
        self.depths = self.depths.reshape(self.data.n_sites, -1)
        return self.depths.sum(axis=1).mean() / STEP_BITS if self.data.n_sites else 0.0

    def _join_neighbours(self, steps: float) -> None:
        """Let each x share its operand with the site after it, if that pays and its sums fit."""
        n = self.data.n_sites - 1
        if n < 1:
            return
        both = cupy.empty((n, 2, 2, 2), np.int32)
        for c, words in enumerate(self.planes.words):
            self._load("epistasis/compact_score", "count_neighbours")(
                (divide_up(n * 4 * 32, 256),),
                (256,),
                (words, both, np.int32(n), self.planes.n_words[c], np.int32(c)),
            )
        depths = joint_depths(self.sizes, both.get())
        saved = 2 * steps - depths.sum(axis=1).mean() / STEP_BITS
        if saved >= JOINT_STEPS[self.states] and largest_sum(depths) <= MAX_STORED:
            self.joint, self.depths = 2, depths

    # ------------------------------------------------------------------ launches

    def _scratch_words(self, order: int) -> int:
        parts = self.depths.shape[1] // 2 if order == 3 else 1
        return self.core.scratch_words(order, self.states, parts)

    def _scan_kernel(self, order: int, table: int) -> tuple[cupy.RawKernel, int]:
        """The kernel for pairs or triples, and the shared memory that it needs."""
        core, states = self.core, self.states
        defines = {"ORDER": order, "TABLE": table, **dict(core.defines)}
        if order == 3:
            defines["JOINT"] = self.joint
        z_sites = core.z_sites(order, states)
        slot = (TILE_SITES + z_sites) * states * STAGE_BITS // 8
        fixed = 2048 + core.stash_bytes(order, states)
        if order == 3:
            per_site = {2: (12, 8), 3: (20, 12)}[states]
            fixed += 8 * (1 + self.wide) * (TILE_SITES * per_site[0] + z_sites * per_site[1])
        if core.cluster > 1:
            stages = min(6, (self.device.shared_bytes - fixed) // slot)
            defines |= {"LOCKSTEP": self.lockstep, "CLUSTER": core.cluster}
        else:
            stages = 1 if defines["POPC"] else 2 if self.bare else 3
            scratch = 4 * self._scratch_words(order)
            inside = int(fixed + stages * slot + scratch <= self.device.shared_bytes)
            defines["SCRATCH_SHARED"] = inside
            fixed += scratch * inside
        shared = fixed + stages * slot
        if shared > self.device.shared_bytes:
            raise UserError(
                f"{self.device.name} has {self.device.shared_bytes} bytes of shared memory for a "
                f"block and an epistasis scan needs {shared}; use another GPU or set device to cpu."
            )
        function = self._load(core.file, "epistasis_scan", STAGES=stages, **defines)
        function.max_dynamic_shared_size_bytes = shared
        return function, shared

    def _describe(self, first: range) -> np.ndarray:
        """`Scan` of kernels/epistasis/scan.cuh."""
        one = np.zeros(1, _SCAN)
        one["records"], one["number"] = self.records.data.ptr, self.number.data.ptr
        one["capacity"], one["n_sites"] = CAPACITY, self.data.n_sites
        if self.allowed is not None:
            one["allowed"] = self.allowed.data.ptr
            one["allowed_words"] = self.allowed.shape[1] * 2
        one["first"], one["stop"] = first.start, first.stop
        for name, value in self.bound.fields().items():
            one[name] = value
        cutoff = math.inf if self.cutoff == INT64_MAX else self.cutoff / self.scale
        one["need"] = need_of(
            cutoff, self.k2, self.n_classes, self.bound.r, self.n_cells, self._missing()
        )
        one["controls"], one["cases"] = self.n_classes
        one["margins"] = self.margins.data.ptr
        return one

    def _missing(self) -> tuple[int, int]:
        """At most so many samples of each class lack a genotype at the sites of a combination."""
        if self.states == 2:
            return 0, 0
        if self.missing is None:
            most = self.order * self.sizes_there[:, :, 2].max(axis=0)
            self.missing = tuple(most.get().tolist())
        return self.missing

    def _items(self, order: int, y: range, z: range, operands: int = 1) -> np.ndarray:
        """Items of some sites y, z, int32 (n, 4): row, column, run of the batch's operands."""
        blocks = self.device.multiprocessors // self.core.cluster
        tile, width = TILE_SITES * self.core.cluster, self.core.z_sites(order, self.states)
        items = order_items(y, z, tile, width)
        return cut_runs(items, operands, blocks)

    def _launch(
        self, order, table, operands: _Operands, items, first: int, yz, description
    ) -> None:
        function, shared = self._scan_kernel(order, table)
        core, cluster = self.core, self.core.cluster
        blocks = min(len(items), self.device.multiprocessors // cluster) * cluster
        self.progress.fill(0)
        words = blocks * self._scratch_words(order)
        scratch = cupy.empty(max(1, words), np.uint32)
        function(
            (blocks,),
            (self.core.threads,),
            (
                operands.packed,
                operands.stages,
                operands.segments,
                items,
                np.int32(len(items)),
                np.int32(first),
                np.int32(operands.batch.first_site),
                np.int32(self.padded),
                operands.xy,
                yz,
                scratch,
                self.progress,
                description if core.relay else cupy.asarray(description.view(np.uint8)),
            ),
            shared_mem=shared,
        )

    def _empty_operands(self, batch: Batch) -> _Operands:
        rows = (self.padded - batch.first_site) * self.states
        size = max(16, int(batch.stages[-1]) * rows * STAGE_BITS // 8)
        if self.packed.size < size:
            self.packed = None  # given back first
            self.packed = cupy.empty(size, np.uint8)
        packed = self.packed[:size]
        stages, segments = cupy.asarray(batch.stages), cupy.asarray(batch.segments)
        return _Operands(batch, packed, stages, segments, np.uint64(0))

    def _operands_of_all(self, first_site: int) -> _Operands:
        """Operands of all samples, still to be packed."""
        return self._empty_operands(Batch.of(np.array([self.n_classes]), first_site))

    def _pack(self, operands: _Operands, sites: range) -> None:
        """Pack the planes of some sites, whole blocks of rows, into operands of all samples."""
        self._load("epistasis/compact_score", "pack_rows")(
            (8 * self.device.multiprocessors,),
            (256,),
            (
                *self.planes.words,
                *self.planes.n_words,
                operands.segments,
                operands.packed,
                np.int32(self.data.n_sites),
                np.int32(operands.batch.first_site),
                np.int32(self.padded),
                np.int32(sites.start),
                np.int32(sites.stop),
                np.int32(operands.batch.stages[-1]),
            ),
        )

    def _compact(self, samples, first: int, batch: Batch) -> _Operands:
        """Operands of the x from `first` on, and the pair counts of these with every site."""
        n, total = len(batch), int(batch.stages[-1])
        operands = self._empty_operands(batch)
        operands.xy = cupy.zeros((n * self.joint, self.padded, self.states**2), np.uint32)
        if not total:
            return operands
        visits = cupy.asarray(batch.visits())
        carriers = cupy.empty(total * STAGE_BITS, np.int32)
        self._load("epistasis/compact_score", "list_carriers", JOINT=self.joint)(
            (n, batch.segments.shape[1] - 1),
            (256,),
            (
                *self.planes.words,
                *self.planes.n_words,
                np.int32(first),
                operands.stages,
                operands.segments,
                carriers,
            ),
        )
        row_blocks = (self.padded - batch.first_site) * self.states // COMPACT_ROWS
        width = min(row_blocks, COMPACT_WIDTH)
        self._load("epistasis/compact_score", "compact_rows", JOINT=self.joint)(
            (2 * width, total, divide_up(row_blocks, width)),
            (256,),
            (
                *samples,
                carriers,
                visits,
                operands.stages,
                operands.segments,
                operands.packed,
                operands.xy,
                np.int32(self.row_words),
                np.int32(batch.first_site),
                np.int32(self.padded),
            ),
        )
        return operands

    def _transposed(self) -> list[cupy.ndarray]:
        """Sample-major planes of both classes."""
        kernel, out = self._load("epistasis/compact_score", "transpose_planes"), []
        planes = self.planes
        for words, n_words, n in zip(planes.words, planes.n_words, self.n_classes, strict=True):
            samples = cupy.zeros((max(1, n), self.row_words), np.uint32)
            if n:
                kernel(
                    (self.row_words // 8, divide_up(int(n_words), 32)),
                    (256,),
                    (
                        words,
                        samples,
                        np.int32(self.data.n_sites),
                        n_words,
                        np.int32(n),
                        np.int32(self.row_words),
                    ),
                )
            out.append(samples)
        return out

    # ------------------------------------------------------------------ the best so far

    def _run(
        self, operands: _Operands, items, on_device, first: range, yz, meanwhile=_nothing
    ) -> None:
        """Scan runs of items, each at most GROWTH times as long as all before it.

        `on_device`: the same items there; `meanwhile`: what the host does while the last of them
        are scanned.
        """
        if not len(items):
            meanwhile()
        width = self.core.z_sites(self.order, self.states)
        a_item = TILE_SITES * self.core.cluster * width
        a_item *= self.joint * int((items[:, 3] - items[:, 2]).max(initial=1))
        done = 0
        while done < len(items):
            start = FIRST_BARE if self.bare else FIRST_LAUNCH
            budget = max(start, GROWTH[self.order] * self.combinations)
            # as many as half fill the room if they pass at the rate of the launch before
            budget = min(budget, int(CAPACITY / 2 / max(self.passing, 1e-12)))
            size = max(1, min(len(items) - done, budget // a_item))
            # one item alone always finds room
            while True:
                self._start(operands, on_device[done : done + size], first, yz)
                if done + size == len(items):
                    meanwhile()
                    meanwhile = _nothing
                if (found := self._take_over()) >= 0:
                    break
                size = max(1, size // 4)
            self.passing = min(found, PASSING[self.order] * self.top) / (size * a_item)
            self.combinations += size * a_item
            done += size

    def _full(self) -> bool:
        return len(self.hits.cost) >= self.top

    def _start(self, operands: _Operands, items, first: range, yz) -> None:
        self.number.fill(0)
        self._launch(self.order, 0, operands, items, first.start, yz, self._describe(first))

    def _take_over(self) -> int:
        """How many a launch let through, -1 where that is more than there is room for."""
        found = int(self.number.get()[0])
        kept = min(found, CAPACITY)
        before = self.hits
        if kept:
            self._merge(kept)
        if found <= CAPACITY:
            return found
        self.hits = before  # the cutoff that these gave stays, they will be found again
        return -1

    def _merge(self, n: int) -> None:
        if self.bare:
            planes = self.planes
            self._load("epistasis/compact_score", "count_records")(
                (n,),
                (256,),
                (self.records, *planes.words, *planes.n_words, *map(np.int32, self.n_classes)),
            )
        costs = cupy.empty(n, np.int64)
        self._load("epistasis/compact_score", "score_records")(
            (divide_up(n, 128),),
            (128,),
            (self.records, np.int64(n), self.total, self.part, np.int32(self.n_cells), costs),
        )
        sites = self.records[:n, 3 - self.order : 3]
        if n > FEW_RECORDS:
            costs, sites = self._below(cupy, costs, sites)
        costs, sites = self._below(np, costs.get(), cupy.ascontiguousarray(sites).get())
        cost = np.concatenate([self.hits.cost, costs])
        sites = np.concatenate([self.hits.sites, sites.view(np.int32)])
        ranks = np.sort(self.data.rank[sites], axis=1)
        best = np.lexsort((*ranks.T[::-1], cost))[: self.top]
        self.hits = Hits(cost[best], np.ascontiguousarray(sites[best]))
        if self._full():
            self.cutoff = min(self.cutoff, int(self.hits.cost[-1]))

    def _below(self, xp, costs, sites):
        """Those that cost no more than the worst hit and the K-th best of them."""
        limit = self.cutoff
        if len(costs) > self.top:
            limit = min(limit, int(xp.partition(costs, self.top - 1)[self.top - 1]))
        good = xp.flatnonzero(costs <= limit)
        return costs[good], sites[good]

    # ------------------------------------------------------------------ scans

    def _aligned(self, site: int) -> int:
        """The first site of the block of rows that holds `site`."""
        return site // PADDING[self.states] * PADDING[self.states]

    def pairs(self, first: range) -> Hits:
        """The best pairs (y, z), y in `first`."""
        first = range(first.start, min(first.stop, self.data.n_sites))
        if not len(first) or self.data.n_sites < 2:
            return self.hits
        operands = self._operands_of_all(self._aligned(first.start))
        start, n = operands.batch.first_site, self.data.n_sites
        ends = [self._aligned(start + int((n - start) * share)) for share in UPLOADS[:-1]]
        blocks = [range(a, b) for a, b in itertools.pairwise([start, *ends, n]) if a < b]
        sent = [self.planes.send(block) for block in blocks]
        runs = [self._items(2, range(first.start, min(first.stop, b.stop)), b) for b in blocks]
        there = read_by_kernel(np.concatenate(runs))
        there = cupy.split(there, np.cumsum([len(run) for run in runs[:-1]]))

        def prepare(block: range, arrival: cupy.cuda.Event) -> None:
            self._receive(block, arrival)
            self._pack(operands, range(block.start, self.padded if block.stop == n else block.stop))

        steps = [functools.partial(prepare, *one) for one in zip(blocks, sent, strict=True)]
        steps[0]()
        for run, on_device, following in zip(runs, there, [*steps[1:], _nothing], strict=True):
            self._run(operands, run, on_device, first, np.uint64(0), following)
        return self.hits

    def _pair_tables(self, first_site: int) -> tuple[cupy.ndarray, np.uint64]:
        """Tables of all pairs of sites from `first_site` on, and the address of site 0's."""
        tile_words = self.padded * TILE_SITES * self.states**2
        first_tile = first_site // TILE_SITES
        tables = cupy.empty((self.padded // TILE_SITES - first_tile, tile_words), np.uint32)
        base = np.uint64(tables.data.ptr - first_tile * tile_words * 4)
        sites = range(first_site, self.data.n_sites)
        items = self._items(2, sites, sites)
        operands = self._operands_of_all(first_site)
        self._pack(operands, range(first_site, self.padded))
        self._launch(2, 1, operands, cupy.asarray(items), 0, base, self._describe(range(0)))
        return tables, base

    def triples(self, first: range) -> Hits:
        """The best triples (x, y, z), x in `first`."""
        stop = min(first.stop, self.data.n_sites - 2)
        if first.start >= stop:
            return self.hits
        samples = self._transposed()
        tables, yz = self._pair_tables(self._aligned(first.start))
        packed_bytes = int(PACKED_SHARE * cupy.cuda.runtime.memGetInfo()[1])
        x = first.start
        while x < stop:
            first_site = self._aligned(x + 1)
            batch = Batch.of(self.depths[x : min(stop, x + BATCH) : self.joint], first_site)
            stage_bytes = (self.padded - first_site) * self.states * STAGE_BITS // 8
            room = min(packed_bytes // stage_bytes, MAX_GRID)
            room = int(np.searchsorted(batch.stages[1:], room, "right"))
            batch = batch.head(max(1, room))
            operands = self._compact(samples, x, batch)
            n = self.data.n_sites
            items = self._items(3, range(x + 1, n), range(first_site, n), len(batch))
            end = min(stop, x + self.joint * len(batch))
            self._run(operands, items, cupy.asarray(items), range(x, end), yz)
            x = end
        del tables
        return self.hits


def scan_pairs(
    data: ScanData, first: range, top: int, cutoff: int | None, device: Device, kernel=None
) -> Hits:
    """See `engine.base.Backend.scan_pairs`."""
    return Scanner(data, 2, top, cutoff, device, kernel).pairs(first)


def scan_triples(
    data: ScanData, first: range, top: int, cutoff: int | None, device: Device, kernel=None
) -> Hits:
    """See `engine.base.Backend.scan_triples`."""
    return Scanner(data, 3, top, cutoff, device, kernel).triples(first)
