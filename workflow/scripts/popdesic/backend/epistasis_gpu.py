"""Scans of all pairs and triples on a CUDA device (kernels/epistasis*.cu).

The device computes tables and a bound of each combination's cost, and keeps those that the bound
does not rule out against the K-th best cost so far; their exact integer costs decide. Work goes
in batches of x (triples) and runs of items (tiles of y and z): after each the K-th best is set
anew. What is kept does not depend on any of this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cupy
import numpy as np
from scipy.special import gammaln, xlogy

from ..errors import UserError
from .base import Hits, ScanData
from .kernels import (
    STAGE_BITS,
    TILE_BYTES,
    Device,
    divide_up,
    load_function,
    supported_kernels,
)

INT64_MAX = np.iinfo(np.int64).max
#: Sites of one tile of 128 rows, and how many the padded number is a multiple of.
TILE_SITES, PADDING = 64, 128
#: Steps of depth (256 samples) of one stage.
STEP_BITS = 256
#: Largest number of samples of a class in one stored state: counts share a word.
MAX_STORED = (1 << 16) - 1
#: Combinations that one launch may let through, and bytes of the record of each.
CAPACITY, RECORD_WORDS = 1 << 23, {0: 32, 1: 64}
#: Combinations of the first launch, before any cost is known.
FIRST_LAUNCH = 1 << 21
#: Packed planes and pair tables of one batch.
PACKED_BYTES, TABLE_BYTES = 8 << 30, 40 << 30
#: Most x of one batch.
BATCH = 256
#: How many times more combinations than the launch before a launch may have.
GROWTH = 8
#: Rows of tiles walked together, so that their planes stay in L2.
ROW_GROUP = 8
#: The bound may miss its exact value by this much, in nats, beside its relative slack.
MARGIN_NATS = 2.0**-6
#: Variants of the cores: file, parameters, threads, whether a cluster takes two rows of tiles.
CORES = {
    "wgmma": ("epistasis_wgmma", {"Y_GROUPS": 1}, 384),
    "mma": ("epistasis_warps", {"Y_GROUPS": 2, "POPC": 0, "STAGES": 3}, 256),
    "popc": ("epistasis_warps", {"Y_GROUPS": 2, "POPC": 1, "STAGES": 1}, 256),
}
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
        *((name, np.float32) for name in ("r", "q0", "q1", "q2", "need")),
        ("controls", np.uint32),
        ("cases", np.uint32),
        ("margins", np.uint64),
    ],
    align=True,
)


def bound_polynomial(share: float) -> tuple[float, float, float, float]:
    """r, q0, q1, q2 with KL(p || r) <= u^2 (q0 + q1 u + q2 u^2), u = p - r, for all p in [0, 1].

    r is `share` in float32 (kernels/epistasis_cells.cuh has the proof).
    """
    r = float(np.float32(min(max(share, 1e-4), 1 - 1e-4)))
    q0 = 0.5 / r + 0.5 / (1 - r)
    q1 = (1 / (1 - r) ** 2 - 1 / r**2) / 6
    ends = ((-r, -math.log1p(-r)), (1 - r, -math.log(r)))
    q2 = max((kl / u**2 - q0 - q1 * u) / u**2 for u, kl in ends)
    return r, q0 * (1 + 1e-6), q1, q2 * (1 + 1e-6)


def need_of(cutoff: float, k2: bool, classes: tuple[int, int], share: float, n_cells: int) -> float:
    """What the divergence of a table must reach for its cost to be at most `cutoff` nats.

    Half the sum of ln(max(n, 1)) over the cells, which the K2 score needs, is added on the device.
    """
    n0, n1 = classes
    if cutoff == math.inf:
        return -3e38
    need = -cutoff - MARGIN_NATS
    if k2:
        whole = gammaln(n0 + n1 + 2) - gammaln(n0 + 1) - gammaln(n1 + 1)
        linear = -n1 * math.log(share) - n0 * math.log1p(-share)
        need += linear - whole - n_cells / 2 * math.log(2)
    return need


def is_k2(data: ScanData) -> bool:
    """K2 has two different tables, the mutual information one."""
    return not np.array_equal(data.total, data.part)


def score_scale(data: ScanData) -> float:
    """The power of two that the score tables are scaled by.

    Raises
    ------
    ValueError
        The tables are neither lnGamma(n + 2), lnGamma(n + 1) nor n ln n twice.
    """
    n = np.arange(len(data.total), dtype=float)
    found = (gammaln(n + 2), gammaln(n + 1)) if is_k2(data) else (xlogy(n, n),) * 2
    entry = min(2, len(n) - 1)
    scale = 2.0 ** round(math.log2(data.total[entry] / found[0][entry])) if entry else 1.0
    for table, exact in zip((data.total, data.part), found, strict=True):
        if not np.allclose(table / scale, exact, rtol=1e-9, atol=2 / scale):
            raise ValueError("the bound of a GPU scan is for K2 and mutual information alone")
    return scale


def order_items(first_row: int, n_rows: int, n_columns: int, columns_a_row: float) -> np.ndarray:
    """(row, column) of the items, int32: the upper triangle, in groups of rows.

    A row of items stands for `columns_a_row` columns: column c is above the diagonal of row r
    if (c + 1) > r * columns_a_row.
    """
    items = []
    for group in range(first_row, n_rows, ROW_GROUP):
        rows = np.arange(group, min(n_rows, group + ROW_GROUP))
        columns = np.arange(int(group * columns_a_row), n_columns)
        grid = np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2)[:, ::-1]
        items.append(grid[grid[:, 1] + 1 > grid[:, 0] * columns_a_row])
    return np.ascontiguousarray(np.concatenate(items), np.int32)


@dataclass
class _Batch:
    """Operands of some x, or of all samples: packed planes and where the depths of each end."""

    stages: np.ndarray
    segments: np.ndarray
    first_tile: int
    n_tiles: int

    @classmethod
    def of(cls, sizes: np.ndarray, first_tile: int, n_tiles: int) -> _Batch:
        """sizes: samples of each segment, int64 (n, 4)."""
        steps = -(-sizes // STEP_BITS)
        segments = np.zeros((len(sizes), 5), np.int32)
        np.cumsum(steps, axis=1, out=segments[:, 1:])
        stages = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(-(-segments[:, 4] * STEP_BITS // STAGE_BITS), out=stages[1:])
        return cls(stages, segments, first_tile, n_tiles)

    @property
    def n_bytes(self) -> int:
        return int(self.stages[-1]) * self.n_tiles * TILE_BYTES


class Scanner:
    """One scan on the current device.

    Parameters
    ----------
    data : ScanData
        Two stored states a site (no genotype missing).
    order, top, cutoff
        As in `Backend.scan_triples`.
    kernel : str
        wgmma, mma or popc.
    """

    def __init__(
        self,
        data: ScanData,
        order: int,
        top: int,
        cutoff: int | None,
        device: Device,
        kernel: str | None = None,
        cluster: int = 1,
        unroll: int = 1,
        parts: int = 1,
    ):
        self.data, self.order, self.top, self.device = data, order, top, device
        self.kernel = kernel or supported_kernels(device)[0]
        self.cluster = cluster if self.kernel == "wgmma" else 1
        self.unroll, self.parts = unroll, parts if self.kernel == "wgmma" else 1
        self.n_cells = 3**order
        self.cutoff = INT64_MAX if cutoff is None else cutoff
        self.n_classes = tuple(one.n_samples for one in data.classes)
        self.wide = int(max(self.n_classes) > MAX_STORED)
        self.k2, self.scale = is_k2(data), score_scale(data)
        self.share = self.n_classes[1] / max(1, sum(self.n_classes))
        self.polynomial = bound_polynomial(self.share)
        self.padded = divide_up(data.n_sites, PADDING) * PADDING
        self.n_tiles = self.padded // TILE_SITES
        self.words = [cupy.asarray(one.words).view(np.uint32) for one in data.classes]
        self.n_words = [np.int32(words.shape[-1]) for words in self.words]
        self._count_states()
        self.total, self.part = cupy.asarray(data.total), cupy.asarray(data.part)
        self.allowed = None if data.allowed is None else cupy.asarray(data.allowed)
        self.records = cupy.empty((CAPACITY, RECORD_WORDS[self.wide]), np.uint32)
        self.number = cupy.zeros(1, np.uint64)
        self.hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))
        self.combinations = 0

    def _load(self, file: str, name: str, **defines) -> cupy.RawKernel:
        defines |= {"K2": int(self.k2), "WIDE": self.wide}
        return load_function(file, name, tuple(sorted(defines.items())), self.device.capability)

    def _count_states(self) -> None:
        n = self.data.n_sites
        sizes = cupy.zeros((n, 2, 2), np.int32)
        count = self._load("epistasis", "count_states")
        for c, words in enumerate(self.words):
            count(
                (divide_up(n * 2 * 32, 256),),
                (256,),
                (words, sizes, np.int32(n), self.n_words[c], np.int32(c)),
            )
        self.sizes = sizes.get().astype(np.int64)
        if self.sizes.max(initial=0) > MAX_STORED:
            raise UserError(
                f"a stored genotype of a scanned site is carried by {self.sizes.max()} samples of "
                f"one phenotype class, and a GPU scan counts {MAX_STORED}; set device to cpu."
            )
        margins = cupy.zeros((self.padded, 2), np.uint32)
        margins[:n] = (sizes[:, 0].astype(np.uint32) << 16) | sizes[:, 1].astype(np.uint32)
        self.margins = margins

    # ------------------------------------------------------------------ launches

    def _scan_kernel(self, order: int, table: int) -> tuple[cupy.RawKernel, int, int]:
        file, parameters, threads = CORES[self.kernel]
        defines = dict(parameters) | {"ORDER": order, "TABLE": table, "UNROLL": self.unroll}
        defines |= {"Z_PARTS": self.parts}
        z_tiles = 2 if order == 2 else 1
        slot = (1 + z_tiles) * TILE_BYTES
        stash = 8 * self.parts * 4 * (1 if order == 2 else 2) * 32 * 16
        margins = 0 if order == 2 else 2 * TILE_SITES * 20 * 4 * (1 + self.wide)
        if self.kernel == "wgmma":
            tables = 0 if order == 2 else TILE_SITES**2 * 16
            fixed = 1024 + 256 + stash + tables + margins
            stages = min(6, (self.device.shared_bytes - fixed) // slot)
            defines |= {"STAGES": stages, "CLUSTER": self.cluster}
        else:
            fixed, stages = 1024 + stash + margins, defines["STAGES"]
        shared = fixed + stages * slot
        function = self._load(file, "epistasis_scan", **defines)
        function.max_dynamic_shared_size_bytes = shared
        return function, threads + 256 * (self.parts - 1), shared

    def _description(self, first: range) -> cupy.ndarray:
        r, q0, q1, q2 = self.polynomial
        one = np.zeros(1, _SCAN)
        one["records"], one["number"] = self.records.data.ptr, self.number.data.ptr
        one["capacity"], one["n_sites"] = CAPACITY, self.data.n_sites
        if self.allowed is not None:
            one["allowed"] = self.allowed.data.ptr
            one["allowed_words"] = self.allowed.shape[1] * 2
        one["first"], one["stop"] = first.start, first.stop
        one["r"], one["q0"], one["q1"], one["q2"] = r, q0, q1, q2
        cutoff = math.inf if self.cutoff == INT64_MAX else self.cutoff / self.scale
        one["need"] = need_of(cutoff, self.k2, self.n_classes, r, self.n_cells)
        one["controls"], one["cases"] = self.n_classes
        one["margins"] = self.margins.data.ptr
        return cupy.asarray(one.view(np.uint8))

    def _launch(self, order, table, operands, items, first, n_x, yz, description) -> None:
        function, threads, shared = self._scan_kernel(order, table)
        batch, packed, xy, stages, segments = operands
        parallel = self.device.multiprocessors // self.cluster
        function(
            (min(len(items), parallel) * self.cluster,),
            (threads,),
            (
                packed,
                stages,
                segments,
                items,
                np.int32(len(items)),
                np.int32(first),
                np.int32(n_x),
                np.int32(batch.first_tile),
                np.int32(batch.n_tiles),
                xy,
                np.int32(self.padded),
                yz,
                np.int32(self.n_tiles),
                description,
            ),
            shared_mem=shared,
        )

    def _pack_all(self, first_tile: int):
        """Operands of all samples: the planes of every site from `first_tile` on."""
        batch = _Batch.of(
            np.array([[self.n_classes[0], 0, self.n_classes[1], 0]]),
            first_tile,
            self.n_tiles - first_tile,
        )
        packed = cupy.empty(max(16, batch.n_bytes), np.uint8)
        segments, stages = cupy.asarray(batch.segments), cupy.asarray(batch.stages)
        self._load("epistasis", "pack_rows")(
            (8 * self.device.multiprocessors,),
            (256,),
            (
                *self.words,
                *self.n_words,
                segments,
                packed,
                np.int32(self.data.n_sites),
                np.int32(first_tile),
                np.int32(batch.n_tiles),
                np.int32(batch.stages[-1]),
            ),
        )
        return batch, packed, np.uint64(0), stages, segments

    def _compact(self, samples, first: int, batch: _Batch):
        """Operands of the x from `first` on, and their pair counts with every site."""
        n = len(batch.segments)
        segments, stages = cupy.asarray(batch.segments), cupy.asarray(batch.stages)
        total = int(batch.stages[-1])
        packed = cupy.empty(max(16, batch.n_bytes), np.uint8)
        xy = cupy.zeros((n, self.padded, 4), np.uint32)
        if not total:
            return batch, packed, xy, stages, segments
        stage_x = cupy.asarray(np.repeat(np.arange(n, dtype=np.int32), np.diff(batch.stages)))
        carriers = cupy.empty(total * STAGE_BITS, np.int32)
        self._load("epistasis", "list_carriers")(
            (n, 4),
            (256,),
            (*self.words, *self.n_words, np.int32(first), stages, segments, carriers),
        )
        self._load("epistasis", "compact_tiles")(
            (total, batch.n_tiles // 2),
            (256,),
            (
                *samples,
                carriers,
                stage_x,
                stages,
                segments,
                packed,
                xy,
                np.int32(self.padded // 16),
                np.int32(batch.first_tile),
                np.int32(batch.n_tiles),
                np.int32(self.padded),
            ),
        )
        return batch, packed, xy, stages, segments

    def _transposed(self) -> list[cupy.ndarray]:
        """Sample-major planes of both classes."""
        row_words = self.padded // 16
        kernel, out = self._load("epistasis", "transpose_planes"), []
        for words, n_words, n in zip(self.words, self.n_words, self.n_classes, strict=True):
            samples = cupy.zeros((max(1, n), row_words), np.uint32)
            if n:
                kernel(
                    (row_words // 8, divide_up(int(n_words), 32)),
                    (256,),
                    (
                        words,
                        samples,
                        np.int32(self.data.n_sites),
                        n_words,
                        np.int32(n),
                        np.int32(row_words),
                    ),
                )
            out.append(samples)
        return out

    # ------------------------------------------------------------------ the best so far

    def _run(self, operands, items, first: range, yz, a_item: int) -> None:
        """Scan runs of items, each at most GROWTH times as long as all before it."""
        done, n_x = 0, len(first) if self.order == 3 else 1
        on_device = cupy.asarray(items)
        while done < len(items):
            budget = max(FIRST_LAUNCH, GROWTH * self.combinations)
            size = max(1, min(len(items) - done, budget // (a_item * n_x)))
            # one item alone always finds room
            while not self._try(operands, on_device[done : done + size], first, n_x, yz):
                size = max(1, size // 8)
            self.combinations += size * a_item * n_x
            done += size

    def _full(self) -> bool:
        return len(self.hits.cost) >= self.top

    def _try(self, operands, items, first: range, n_x: int, yz) -> bool:
        """One launch; False where it let more through than there is room for."""
        self.number.fill(0)
        self._launch(
            self.order, 0, operands, items, first.start, n_x, yz, self._description(first)
        )
        found = int(self.number.get()[0])
        kept = min(found, CAPACITY)
        before = self.hits
        if kept:
            self._merge(kept)
        if found <= CAPACITY:
            return True
        self.hits = before  # the cutoff that these gave stays, they will be found again
        return False

    def _merge(self, n: int) -> None:
        costs = cupy.empty(n, np.int64)
        self._load("epistasis", "score_records")(
            (divide_up(n, 128),),
            (128,),
            (self.records, np.int64(n), self.total, self.part, np.int32(self.n_cells), costs),
        )
        limit = self.cutoff
        if n > self.top:
            limit = min(limit, int(cupy.partition(costs, self.top - 1)[self.top - 1]))
        good = cupy.flatnonzero(costs <= limit)
        sites = self.records[good, :3].get().view(np.int32)[:, 3 - self.order :]
        cost = np.concatenate([self.hits.cost, costs[good].get()])
        sites = np.concatenate([self.hits.sites, sites])
        ranks = np.sort(self.data.rank[sites], axis=1)
        best = np.lexsort((*ranks.T[::-1], cost))[: self.top]
        self.hits = Hits(cost[best], np.ascontiguousarray(sites[best]))
        if self._full():
            self.cutoff = min(self.cutoff, int(self.hits.cost[-1]))

    # ------------------------------------------------------------------ scans

    def pairs(self, first: range) -> Hits:
        """The best pairs (y, z), y in `first`."""
        first = range(first.start, min(first.stop, self.data.n_sites))
        if not len(first) or self.data.n_sites < 2:
            return self.hits
        first_tile = first.start // PADDING * 2
        operands = self._pack_all(first_tile)
        rows = divide_up(divide_up(first.stop, TILE_SITES), self.cluster)
        items = order_items(
            first.start // TILE_SITES // self.cluster, rows, self.n_tiles // 2, self.cluster / 2
        )
        self._run(operands, items, first, np.uint64(0), 2 * TILE_SITES**2 * self.cluster)
        return self.hits

    def _pair_tables(self, first_tile: int) -> tuple[cupy.ndarray, np.uint64]:
        """Tables of all pairs of tiles from `first_tile` on, and their base address."""
        side = self.n_tiles - first_tile
        tables = cupy.empty((side, self.n_tiles, TILE_SITES**2 * 4), np.uint32)
        base = np.uint64(tables.data.ptr - first_tile * self.n_tiles * TILE_SITES**2 * 16)
        operands = self._pack_all(first_tile)
        items = order_items(
            first_tile // self.cluster,
            divide_up(self.n_tiles, self.cluster),
            self.n_tiles // 2,
            self.cluster / 2,
        )
        self._launch(
            2, 1, operands, cupy.asarray(items), 0, 1, base, self._description(range(0))
        )
        return tables, base

    def triples(self, first: range) -> Hits:
        """The best triples (x, y, z), x in `first`."""
        stop = min(first.stop, self.data.n_sites - 2)
        if first.start >= stop:
            return self.hits
        samples = self._transposed()
        tables, yz = self._pair_tables(first.start // PADDING * 2)
        depth = self.sizes.reshape(-1, 4)
        x = first.start
        while x < stop:
            first_tile = (x + 1) // PADDING * 2
            batch = _Batch.of(depth[x : min(stop, x + BATCH)], first_tile, self.n_tiles - first_tile)
            room = PACKED_BYTES // (batch.n_tiles * TILE_BYTES)
            n = max(1, int(np.searchsorted(batch.stages[1:], room, "right")))
            if n < len(batch.segments):
                batch = _Batch.of(depth[x : x + n], first_tile, batch.n_tiles)
            n = len(batch.segments)
            operands = self._compact(samples, x, batch)
            items = order_items(
                (x + 1) // TILE_SITES // self.cluster,
                divide_up(self.n_tiles, self.cluster),
                self.n_tiles,
                self.cluster,
            )
            self._run(operands, items, range(x, x + n), yz, TILE_SITES**2 * self.cluster)
            x += n
        del tables
        return self.hits


def scan_pairs(
    data: ScanData, first: range, top: int, cutoff: int | None, device: Device, kernel=None
) -> Hits:
    """See `backend.base.Backend.scan_pairs`."""
    return Scanner(data, 2, top, cutoff, device, kernel).pairs(first)


def scan_triples(
    data: ScanData, first: range, top: int, cutoff: int | None, device: Device, kernel=None
) -> Hits:
    """See `backend.base.Backend.scan_triples`."""
    return Scanner(data, 3, top, cutoff, device, kernel).triples(first)
