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
    Device,
    divide_up,
    load_function,
    supported_kernels,
)

INT64_MAX = np.iinfo(np.int64).max
#: Sites of one tile of y, and how many the padded number is a multiple of, by stored states: rows
#: are made in blocks of 256.
TILE_SITES, PADDING = 64, {2: 128, 3: 256}
#: Samples of one step of depth.
STEP_BITS = 256
#: Largest number of samples of a class in one stored state: counts share a word.
MAX_STORED = (1 << 16) - 1
#: Combinations that one launch may let through, words of the record of each (by `wide`), and
#: combinations of the first launch, before any cost is known.
CAPACITY, RECORD_WORDS, FIRST_LAUNCH = 1 << 23, {0: 32, 1: 64}, 1 << 21
#: The same where a record is counted from the planes: more of them cost more than another launch.
FIRST_PHASED = 1 << 18
#: Records up to which the best are picked out on the host, where a step costs less than a launch.
FEW_RECORDS = 1 << 15
#: How many times the combinations of all launches before a launch may have.
GROWTH = 8
#: Packed planes of one batch, and most x of one.
PACKED_BYTES, BATCH = 8 << 30, 256
#: Stages after which thread blocks wait for each other (common.cuh).
LOCKSTEP = 8
#: Items for each thread block that a launch should have: fewer are cut into runs of x.
ITEMS_A_BLOCK = 12
#: Most thread blocks in the second dimension of a grid.
MAX_GRID = 65535
#: Rows of tiles walked together, so that their planes stay in L2.
ROW_GROUP = 8
#: Steps of depth of an x (mean) from which on thread blocks keep in step, and from which on the
#: states of x go through in phases: 262 144 samples in thirds (683 steps) 1.9 P against 1.6 P
#: triples x samples / s, at 10/20/70 (307 steps) 2.6 P either way (H200).
LOCKSTEP_STEPS, PHASED_STEPS = 48, 400
#: The bound may miss its exact value by this much, in nats, beside its relative slack.
MARGIN_NATS = 2.0**-6


@dataclass(frozen=True)
class Core:
    """One way to count: its kernel file and how it cuts the work."""

    file: str
    defines: tuple[tuple[str, int], ...]
    threads: int
    cluster: int = 1

    def z_sites(self, order: int, states: int, phased: bool) -> int:
        """Sites of z of one item (Z_SITES in kernels/epistasis_scan.cuh)."""
        if states == 3:
            return 32
        return 128 if order == 2 or phased else 64


#: The micro-kernels' cores. `cluster`: tiles of y that share the copies of z.
CORES = {
    "wgmma": Core("epistasis_wgmma", (("Y_GROUPS", 1),), 384, 2),
    "mma": Core("epistasis_warps", (("Y_GROUPS", 2), ("POPC", 0), ("STAGES", 3)), 256),
    "popc": Core("epistasis_warps", (("Y_GROUPS", 2), ("POPC", 1), ("STAGES", 1)), 256),
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


def need_of(
    cutoff: float,
    k2: bool,
    classes: tuple[int, int],
    share: float,
    n_cells: int,
    missing: tuple[int, int] = (0, 0),
) -> float:
    """What the divergence of a table must reach for its cost to be at most `cutoff` nats.

    Half the sum of ln(max(n, 1)) over the cells, which the K2 score needs, is added on the device.
    `missing`: at most so many samples of each class are left out of a table. Then the one cell of
    all n' = n0' + n1' samples costs ln((n' + 1) C(n', n1')), at most ln(n + 1) if a class is
    empty, else n' H(n1'/n') + ln((n' + 1)^2 n' / (2 pi n0' n1')) / 2 (lemma 7 of MacWilliams and
    Sloane), and n' H(n1'/n') is at most what the linear terms of its samples sum to.
    """
    n0, n1 = classes
    if cutoff == math.inf:
        return -3e38
    need = -cutoff - MARGIN_NATS
    if k2 and any(missing):
        n = n0 + n1
        left = [size - out for size, out in zip(classes, missing, strict=True)]
        ways = math.log(n / (2 * math.pi * max(1, left[0]) * max(1, left[1]))) / 2
        if min(left) < 1:
            ways = max(ways, 0.0)
        need -= math.log(n + 1) + ways + n_cells / 2 * math.log(2)
    elif k2:
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
    # the smallest entries and some of all sizes
    n = np.unique(np.geomspace(1, len(data.total), 1000).astype(int)) - 1
    if n[-1] == 0:
        return 1.0
    exact = (gammaln(n + 2), gammaln(n + 1)) if is_k2(data) else (xlogy(n, n), xlogy(n, n))
    entry = min(2, n[-1])  # where both scores are above 0, or the only entry
    entry = n[-1] if not exact[0][n == entry].any() else entry
    known = exact[0][n == entry][0]
    if not known:
        return 1.0
    scale = 2.0 ** round(math.log2(data.total[entry] / known))
    for table, right in zip((data.total, data.part), exact, strict=True):
        if not np.allclose(table[n] / scale, right, rtol=1e-9, atol=2 / scale):
            raise ValueError("the bound of a GPU scan is for K2 and mutual information alone")
    return scale


def to_device(words) -> cupy.ndarray:
    """Planes on the device; pinned host memory is sent as it lies."""
    if isinstance(words, cupy.ndarray):
        return words
    out = cupy.empty(words.shape, words.dtype)
    out.set(np.ascontiguousarray(words))
    return out


def order_items(rows: range, tile: int, first_site: int, columns: int, width: int) -> np.ndarray:
    """Items (row, column) above the diagonal, int32 (n, 2), in groups of rows.

    Row r stands for `tile` sites of y from r * tile on, column c for `width` sites of z; columns
    that end before `first_site` are left out.
    """
    items = [np.zeros((0, 2), np.int32)]
    for group in range(rows.start, rows.stop, ROW_GROUP):
        row = np.arange(group, min(rows.stop, group + ROW_GROUP))
        column = np.arange(max(group * tile, first_site) // width, columns)
        grid = np.stack(np.meshgrid(row, column), axis=-1).reshape(-1, 2)
        items.append(grid[(grid[:, 1] + 1) * width > grid[:, 0] * tile])
    return np.ascontiguousarray(np.concatenate(items), np.int32)


@dataclass
class _Batch:
    """Where the operands of some x, or of all samples, end in the packed planes."""

    stages: np.ndarray
    segments: np.ndarray
    first_site: int

    @classmethod
    def of(cls, sizes: np.ndarray, first_site: int) -> _Batch:
        """sizes: samples of each segment, int64 (n, segments)."""
        steps = -(-sizes // STEP_BITS)
        segments = np.zeros((len(sizes), sizes.shape[1] + 1), np.int32)
        np.cumsum(steps, axis=1, out=segments[:, 1:])
        stages = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(-(-segments[:, -1] * STEP_BITS // STAGE_BITS), out=stages[1:])
        return cls(stages, segments, first_site)

    def __len__(self) -> int:
        return len(self.segments)

    def head(self, n: int) -> _Batch:
        """The first n of these x."""
        return _Batch(self.stages[: n + 1], self.segments[:n], self.first_site)


@dataclass
class _Operands:
    """Packed planes of a batch on the device."""

    batch: _Batch
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
    phased : bool, optional
        Whether the states of x go through one after the other; by the depth if left out.
    """

    def __init__(
        self,
        data: ScanData,
        order: int,
        top: int,
        cutoff: int | None,
        device: Device,
        kernel: str | None = None,
        phased: bool | None = None,
        unroll: int = 2,
    ):
        self.data, self.order, self.top, self.device = data, order, top, device
        self.states = data.classes[0].words.shape[1]
        kernel = kernel or supported_kernels(device)[0]
        if self.states == 3 and kernel == "wgmma":
            kernel = "mma"  # the rows of three states do not fit the operands of wgmma
        self.core, self.unroll = CORES[kernel], unroll
        self.n_cells = 3**order
        self.cutoff = INT64_MAX if cutoff is None else cutoff
        self.n_classes = tuple(one.n_samples for one in data.classes)
        self.wide = 0  # set once the sizes are known
        self.k2, self.scale = is_k2(data), score_scale(data)
        self.polynomial = bound_polynomial(self.n_classes[1] / max(1, sum(self.n_classes)))
        padding = PADDING[self.states]
        self.padded = divide_up(data.n_sites, padding) * padding
        self.row_words = self.padded * self.states // 32
        self.words = [to_device(one.words).view(np.uint32) for one in data.classes]
        self.n_words = [np.int32(words.shape[-1]) for words in self.words]
        self._count_states()
        # an x's segments: states in the order of the phases, controls and cases of each
        order_of_states = [0, 1] if self.states == 2 else [2, 0, 1]
        self.depths = self.sizes[:, :, order_of_states].transpose(0, 2, 1).reshape(data.n_sites, -1)
        mean = self.depths.sum(axis=1).mean() / STEP_BITS if data.n_sites else 0
        deep = mean >= PHASED_STEPS and kernel == "wgmma"
        self.phased = order == 3 and (self.states == 3 or (deep if phased is None else phased))
        self.lockstep = LOCKSTEP if order == 2 or mean >= LOCKSTEP_STEPS else 0
        self.total, self.part = cupy.asarray(data.total), cupy.asarray(data.part)
        self.allowed = None if data.allowed is None else cupy.asarray(data.allowed)
        self.records = cupy.empty((CAPACITY, RECORD_WORDS[self.wide]), np.uint32)
        self.number = cupy.zeros(1, np.uint64)
        self.hits = Hits(np.zeros(0, np.int64), np.zeros((0, order), np.int32))
        self.combinations, self.passing = 0, 0.0

    def _load(self, file: str, name: str, **defines) -> cupy.RawKernel:
        defines |= {"K2": int(self.k2), "WIDE": self.wide, "STATES": self.states}
        return load_function(file, name, tuple(sorted(defines.items())), self.device.capability)

    def _count_states(self) -> None:
        n = self.data.n_sites
        sizes = cupy.zeros((n, 2, self.states), np.int32)
        count = self._load("epistasis", "count_states")
        for c, words in enumerate(self.words):
            count(
                (divide_up(n * self.states * 32, 256),),
                (256,),
                (words, sizes, np.int32(n), self.n_words[c], np.int32(c)),
            )
        self.sizes = sizes.get().astype(np.int64)
        if self.sizes.max(initial=0) > MAX_STORED:
            raise UserError(
                f"a stored genotype of a scanned site is carried by {self.sizes.max()} samples of "
                f"one phenotype class, and a GPU scan counts {MAX_STORED}; set device to cpu."
            )
        # A cell holds at most the samples with its first site in that state: where the genotype
        # that is not stored fits as well, counts of both classes share a word all the way.
        others = np.array(self.n_classes) - self.sizes.sum(axis=2)
        self.wide = int(others.max(initial=0) > MAX_STORED)
        self.margins = cupy.zeros((self.padded, self.states), np.uint32)
        self.margins[:n] = (sizes[:, 0].astype(np.uint32) << 16) | sizes[:, 1].astype(np.uint32)

    # ------------------------------------------------------------------ launches

    def _scan_kernel(self, order: int, table: int) -> tuple[cupy.RawKernel, int]:
        """The kernel for pairs or triples, and the shared memory that it needs."""
        phased = int(order == 3 and self.phased)
        z_sites = self.core.z_sites(order, self.states, phased)
        defines = dict(self.core.defines) | {
            "ORDER": order,
            "PHASED": phased,
            "TABLE": table,
            "TABLE_Z": self.core.z_sites(3, self.states, self.phased),
            "UNROLL": self.unroll,
        }
        cells, products = self.states**2, 1 if order == 2 or phased else 2
        slot = (TILE_SITES + z_sites) * self.states * STAGE_BITS // 8
        fixed = 2048 + 8 * 4 * products * cells * 32 * 4
        if order == 3:
            per_site = {2: (12, 8), 3: (20, 12)}[self.states]
            fixed += 8 * (1 + self.wide) * (TILE_SITES * per_site[0] + z_sites * per_site[1])
        if self.core.cluster == 1:
            defines["STAGES"] = min(defines["STAGES"], 2 if phased else 3)
            whole = fixed + defines["STAGES"] * slot + 4 * self._scratch_words(phased)
            defines["SCRATCH_SHARED"] = int(whole <= self.device.shared_bytes)
            fixed += 4 * self._scratch_words(phased) * defines["SCRATCH_SHARED"]
        if self.core.cluster > 1:
            defines["LOCKSTEP"] = self.lockstep
            defines["STAGES"] = min(6, (self.device.shared_bytes - fixed) // slot)
            defines["CLUSTER"] = self.core.cluster
        shared = fixed + defines["STAGES"] * slot
        if shared > self.device.shared_bytes:
            raise UserError(
                f"{self.device.name} has {self.device.shared_bytes} bytes of shared memory for a "
                f"block and an epistasis scan needs {shared}; use another GPU or set device to cpu."
            )
        function = self._load(self.core.file, "epistasis_scan", **defines)
        function.max_dynamic_shared_size_bytes = shared
        return function, shared

    def _scratch_words(self, phased: int) -> int:
        """Words that one thread block keeps between the phases of an x."""
        pairs = 32 if self.states == 2 else 8
        return 8 * pairs * (self.states**2 + 1) * 32 if phased else 0

    def _describe(self, first: range) -> cupy.ndarray:
        """`Scan` of kernels/epistasis_scan.cuh."""
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
        missing = 3 * self.sizes[:, :, 2].max(axis=0, initial=0) if self.states == 3 else (0, 0)
        one["need"] = need_of(cutoff, self.k2, self.n_classes, r, self.n_cells, missing)
        one["controls"], one["cases"] = self.n_classes
        one["margins"] = self.margins.data.ptr
        return cupy.asarray(one.view(np.uint8))

    def _items(
        self, order: int, first_y: int, stop_y: int, first_site: int, n_x: int = 1
    ) -> np.ndarray:
        """Items whose y may be in [first_y, stop_y), with operands from `first_site` on.

        int32 (n, 4): row, column, and the run of the batch's n_x sites x.
        """
        tile = TILE_SITES * self.core.cluster
        width = self.core.z_sites(order, self.states, order == 3 and self.phased)
        rows = range(first_y // tile, divide_up(stop_y, tile))
        items = order_items(rows, tile, first_site, self.padded // width, width)
        wanted = ITEMS_A_BLOCK * self.device.multiprocessors // self.core.cluster
        runs = max(1, min(n_x, divide_up(wanted, max(1, len(items)))))
        ends = np.linspace(0, n_x, runs + 1).astype(np.int32)
        out = np.empty((runs, len(items), 4), np.int32)
        out[:, :, :2] = items
        out[:, :, 2], out[:, :, 3] = ends[:-1, None], ends[1:, None]
        return out.reshape(-1, 4)

    def _launch(
        self, order, table, operands: _Operands, items, first: int, yz, description
    ) -> None:
        function, shared = self._scan_kernel(order, table)
        cluster = self.core.cluster
        blocks = min(len(items), self.device.multiprocessors // cluster) * cluster
        scratch = np.uint64(0)
        if order == 3 and self.phased:
            scratch = cupy.empty(blocks * self._scratch_words(1), np.uint32)
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
                cupy.zeros(1, np.uint32),
                description,
            ),
            shared_mem=shared,
        )

    def _empty_operands(self, batch: _Batch) -> _Operands:
        rows = (self.padded - batch.first_site) * self.states
        packed = cupy.empty(max(16, int(batch.stages[-1]) * rows * STAGE_BITS // 8), np.uint8)
        stages, segments = cupy.asarray(batch.stages), cupy.asarray(batch.segments)
        return _Operands(batch, packed, stages, segments, np.uint64(0))

    def _pack_all(self, first_site: int) -> _Operands:
        """Operands of all samples: the planes of every site from `first_site` on."""
        operands = self._empty_operands(_Batch.of(np.array([self.n_classes]), first_site))
        self._load("epistasis", "pack_rows")(
            (8 * self.device.multiprocessors,),
            (256,),
            (
                *self.words,
                *self.n_words,
                operands.segments,
                operands.packed,
                np.int32(self.data.n_sites),
                np.int32(first_site),
                np.int32(self.padded),
                np.int32(operands.batch.stages[-1]),
            ),
        )
        return operands

    def _compact(self, samples, first: int, batch: _Batch) -> _Operands:
        """Operands of the x from `first` on, and their pair counts with every site."""
        n, total = len(batch), int(batch.stages[-1])
        operands = self._empty_operands(batch)
        operands.xy = cupy.zeros((n, self.padded, self.states**2), np.uint32)
        if not total:
            return operands
        stage_x = cupy.asarray(np.repeat(np.arange(n, dtype=np.int32), np.diff(batch.stages)))
        carriers = cupy.empty(total * STAGE_BITS, np.int32)
        self._load("epistasis", "list_carriers")(
            (n, 2 * self.states),
            (256,),
            (
                *self.words,
                *self.n_words,
                np.int32(first),
                operands.stages,
                operands.segments,
                carriers,
            ),
        )
        self._load("epistasis", "compact_rows")(
            ((self.padded - batch.first_site) * self.states // 256, total),
            (256,),
            (
                *samples,
                carriers,
                stage_x,
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
        kernel, out = self._load("epistasis", "transpose_planes"), []
        for words, n_words, n in zip(self.words, self.n_words, self.n_classes, strict=True):
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

    def _run(self, operands: _Operands, items, first: range, yz) -> None:
        """Scan runs of items, each at most GROWTH times as long as all before it."""
        width = self.core.z_sites(self.order, self.states, self.phased)
        a_item = TILE_SITES * self.core.cluster * width
        a_item *= int((items[:, 3] - items[:, 2]).max(initial=1))
        on_device, done = cupy.asarray(items), 0
        while done < len(items):
            start = FIRST_PHASED if self.phased else FIRST_LAUNCH
            budget = max(start, GROWTH * self.combinations)
            # as many as half fill the room if they pass at the rate of the launch before
            budget = min(budget, int(CAPACITY / 2 / max(self.passing, 1e-12)))
            size = max(1, min(len(items) - done, budget // a_item))
            # one item alone always finds room
            while (found := self._try(operands, on_device[done : done + size], first, yz)) < 0:
                size = max(1, size // 4)
            self.passing = found / (size * a_item)
            self.combinations += size * a_item
            done += size

    def _full(self) -> bool:
        return len(self.hits.cost) >= self.top

    def _try(self, operands: _Operands, items, first: range, yz) -> int:
        """One launch: how many it let through, -1 where that is more than there is room for."""
        self.number.fill(0)
        self._launch(self.order, 0, operands, items, first.start, yz, self._describe(first))
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
        if self.phased:
            self._load("epistasis", "count_records")(
                (n,),
                (256,),
                (self.records, *self.words, *self.n_words, *map(np.int32, self.n_classes)),
            )
        costs = cupy.empty(n, np.int64)
        self._load("epistasis", "score_records")(
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
        operands = self._pack_all(self._aligned(first.start))
        items = self._items(2, first.start, first.stop, operands.batch.first_site)
        self._run(operands, items, first, np.uint64(0))
        return self.hits

    def _pair_tables(self, first_site: int) -> tuple[cupy.ndarray, np.uint64]:
        """Tables of all pairs of sites from `first_site` on, and the address of site 0's."""
        tile_words = self.padded * TILE_SITES * self.states**2
        first_tile = first_site // TILE_SITES
        tables = cupy.empty((self.padded // TILE_SITES - first_tile, tile_words), np.uint32)
        base = np.uint64(tables.data.ptr - first_tile * tile_words * 4)
        items = self._items(2, first_site, self.padded, first_site)
        operands = self._pack_all(first_site)
        self._launch(2, 1, operands, cupy.asarray(items), 0, base, self._describe(range(0)))
        return tables, base

    def triples(self, first: range) -> Hits:
        """The best triples (x, y, z), x in `first`."""
        stop = min(first.stop, self.data.n_sites - 2)
        if first.start >= stop:
            return self.hits
        samples = self._transposed()
        tables, yz = self._pair_tables(self._aligned(first.start))
        x = first.start
        while x < stop:
            first_site = self._aligned(x + 1)
            batch = _Batch.of(self.depths[x : min(stop, x + BATCH)], first_site)
            stage_bytes = (self.padded - first_site) * self.states * STAGE_BITS // 8
            room = min(PACKED_BYTES // stage_bytes, MAX_GRID)
            room = int(np.searchsorted(batch.stages[1:], room, "right"))
            batch = batch.head(max(1, room))
            operands = self._compact(samples, x, batch)
            items = self._items(3, x + 1, self.padded, first_site, len(batch))
            self._run(operands, items, range(x, x + len(batch)), yz)
            x += len(batch)
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
