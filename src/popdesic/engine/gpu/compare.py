"""SNP comparisons on a GPU: best matches of query profiles, correlated pairs of sites.

Both select on the device and copy only results: of 32 x 20 million pairs the best of each query, of
a billion correlations those that reach a limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import cupy
import cupyx
import numpy as np

from ..matches import NEVER, TopMatches, rank_key
from ..terms import PRODUCT, Planes
from .bitgemm import pack_planes
from .bitgemm_plans import plan_products
from .compare_plans import (
    MOST_MATCHES,
    ROUNDING,
    blocks_of_rows,
    count_mismatches,
    part_rows,
    piece_size,
    query_words,
    serves,
    with_planes,
)
from .compile import load_function
from .devices import Device
from .layout import (
    BLOCK_ROWS,
    CANDIDATES,
    INDEX_BITS,
    KEEP_THREADS,
    PROFILES_A_STEP,
    QUERIES,
    SCAN_WARPS,
    SELECT_COLUMNS,
    SELECT_ROWS,
    SLOT_BYTES,
    SLOT_OVERHEAD,
    STAGE_WORDS,
    divide_up,
    layout_tiles,
    packed_bytes,
)
from .variants import MICRO_KERNELS, Variant, block_order, defines_of, launch_shape, step_table

#: The file of these kernels.
KERNEL = "compare/compare"
#: Bytes of one part of a database on its way to the device.
PART_BYTES = 256 << 20
#: Correlations of one square of sites: 1 GiB of float32.
SQUARE_SITES = 1 << 14
#: Pairs of sites that one launch has room for at first.
PAIRS_CAPACITY = 1 << 24


class _Search:
    """Candidates of one batch of queries on the device."""

    def __init__(self, queries: Planes, k: int, min_called: int, device: Device):
        self.k, self.min_called, self.n_sites = k, max(min_called, 1), queries.n_sites
        self.n_queries = queries.n_samples
        self.words = cupy.asarray(query_words(queries))
        defines = (("N_PLANES", queries.words.shape[1]),)
        self.scan_kernel = load_function(KERNEL, "scan_profiles", defines, device.capability)
        self.keep_kernel = load_function(KERNEL, "keep_best", defines, device.capability)
        self.blocks = device.multiprocessors * 4
        self.candidates = cupy.empty((QUERIES, CANDIDATES), np.uint64)
        self.counts = cupy.empty(QUERIES, np.uint32)
        self.limits = cupy.empty(QUERIES, np.uint64)
        self.overflow = cupy.empty(1, np.int32)
        self.reset(cautious=False)

    def reset(self, cautious: bool) -> None:
        self.counts.fill(0)
        self.limits.fill(0)
        self.limits[: self.n_queries] = np.uint64(2**64 - 1)
        self.overflow.fill(0)
        self.cautious, self.seen = cautious, 0

    def scan(self, words: cupy.ndarray, first_index: int) -> None:
        """Scan profiles, in pieces that grow as the limits tighten (`piece_size`).

        Where an unlucky order of the profiles makes candidates overflow, the search is repeated
        with pieces that cannot.
        """
        row, n = 0, len(words)
        while row < n:
            size = min(piece_size(self.k, self.seen, self.cautious), n - row)
            self.scan_kernel(
                (min(self.blocks, divide_up(size, PROFILES_A_STEP * SCAN_WARPS)),),
                (32 * SCAN_WARPS,),
                (
                    words,
                    self.words,
                    self.limits,
                    self.candidates,
                    self.counts,
                    np.int64(row),
                    np.int64(size),
                    np.int64(first_index + row),
                    np.int32(words.shape[2]),
                    np.int32(self.words.shape[2]),
                    np.int32(self.n_sites),
                    np.int32(self.min_called),
                ),
            )
            self.keep_kernel(
                (QUERIES,),
                (KEEP_THREADS,),
                (self.candidates, self.counts, self.limits, self.overflow, np.int32(self.k)),
            )
            row += size
            self.seen += size

    def indices(self) -> np.ndarray | None:
        """int64 (n_queries, k) numbers of the best profiles, -1 for none; None: scan again."""
        if int(self.overflow[0]):
            return None
        keys = self.candidates[: self.n_queries, : self.k].get()
        counts = self.counts[: self.n_queries].get()
        there = np.arange(self.k)[None, :] < counts[:, None]
        index = (keys & np.uint64(2**INDEX_BITS - 1)).astype(np.int64)
        return np.where(there, index, -1)


def resident_matches(
    queries: Planes, words: cupy.ndarray, device: Device, k: int, min_called: int = 1
) -> np.ndarray:
    """Best matches in a database that is on the device already: int64 (n_queries, k).

    Parameters
    ----------
    queries : Planes
        Any number of queries; 1, 2 or 3 planes. One plane is one bit a site: has the allele or not.
    words : uint64 device array, (n_profiles, n_planes, row_words)
        As many planes; `row_words` even.
    """
    return _matches(queries, lambda: iter([(0, words)]), device, k, min_called)


def _matches(queries: Planes, parts, device: Device, k: int, min_called: int) -> np.ndarray:
    searches = [
        _Search(Planes(queries.words[q : q + QUERIES], queries.n_sites), k, min_called, device)
        for q in range(0, queries.n_samples, QUERIES)
    ]
    for first, words in parts():
        for search in searches:
            search.scan(words, first)
    found = [search.indices() for search in searches]
    if any(index is None for index in found):
        for search in searches:
            search.reset(cautious=True)
        for first, words in parts():
            for search in searches:
                search.scan(words, first)
        found = [search.indices() for search in searches]
    return np.concatenate(found)


def stream_parts(database: np.ndarray) -> Iterator[tuple[int, cupy.ndarray]]:
    """Parts of a database in host memory, each copied while the one before it is scanned.

    A database in pinned memory goes as it is; another passes through two pinned buffers.
    """
    n_profiles, n_planes, n_words = database.shape
    rows = part_rows(n_profiles, n_planes * n_words * 8, PART_BYTES)
    row_words = n_words + n_words % 2
    pinned = _is_pinned(database) and row_words == n_words
    buffers = [cupy.zeros((rows, n_planes, row_words), np.uint64) for _ in range(2)]
    hosts = (
        []
        if pinned
        else [cupyx.zeros_pinned((rows, n_planes, row_words), np.uint64) for _ in range(2)]
    )
    copy = cupy.cuda.Stream(non_blocking=True)
    compute = cupy.cuda.get_current_stream()
    sent = [cupy.cuda.Event(), cupy.cuda.Event()]
    scanned = [cupy.cuda.Event(), cupy.cuda.Event()]
    copy.wait_event(compute.record())

    def send(turn: int, first: int) -> None:
        last = min(first + rows, n_profiles)
        if pinned:
            source = database[first:last]
        else:
            sent[turn].synchronize()
            hosts[turn][: last - first, :, :n_words] = database[first:last]
            source = hosts[turn][: last - first]
        copy.wait_event(scanned[turn])
        buffers[turn][: last - first].set(source, stream=copy)
        sent[turn].record(copy)

    starts = list(range(0, n_profiles, rows))
    if starts:
        send(0, 0)
    for number, first in enumerate(starts):
        turn = number % 2
        if number + 1 < len(starts):
            send(1 - turn, starts[number + 1])
        compute.wait_event(sent[turn])
        yield first, buffers[turn][: min(rows, n_profiles - first)]
        scanned[turn].record(compute)
    compute.synchronize()


def _is_pinned(array: np.ndarray) -> bool:
    if not array.flags.c_contiguous:
        return False
    try:
        return cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == 1
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def top_matches(
    queries: Planes, database: Planes, device: Device, k: int, min_called: int
) -> TopMatches | None:
    """`Backend.top_matches`, chosen on the device; None where `k` is more than it keeps."""
    if k > MOST_MATCHES:
        return None
    n_planes = max(queries.words.shape[1], database.words.shape[1])
    queries = with_planes(queries, n_planes)
    words = database.words
    if words.shape[1] != n_planes:
        words = with_planes(database, n_planes).words
    index = _matches(queries, lambda: stream_parts(words), device, k, min_called)
    mismatches, called = np.zeros_like(index), np.zeros_like(index)
    for q, row in enumerate(index):
        found = row >= 0
        mismatches[q, found], called[q, found] = count_mismatches(
            queries.words[q], np.asarray(words[row[found]]), queries.n_sites
        )
    best = TopMatches(len(index), k)
    best.key = np.where(index >= 0, rank_key(mismatches, called, min_called), NEVER)
    best.index, best.mismatches, best.called = index, mismatches, called
    return best


# --- correlations -------------------------------------------------------------------------------


class R2Squares:
    """Squared correlations of complete sites, square by square, without leaving the device.

    Needs wgmma (compute capability 9.0): its accumulators become correlations where they are.
    """

    def __init__(self, words: cupy.ndarray, n_samples: int, device: Device):
        """words: uint64 device array (n_sites, 2, n_words), variant-major planes u and v."""
        self.n_sites, self.n_samples, self.device = len(words), n_samples, device
        self.plan = plan_products(PRODUCT, True)
        if self.plan.n_slots != 1 or any(map(any, (*self.plan.rows, *self.plan.columns))):
            raise AssertionError("the product of two sites is one output without margins")
        stages = divide_up(words.shape[2], STAGE_WORDS)
        padded = divide_up(self.n_sites, BLOCK_ROWS) * BLOCK_ROWS
        counts = cupy.zeros((self.n_sites, 3), np.uint64)
        self.packed = cupy.empty(
            packed_bytes(self.n_sites, len(self.plan.letters), stages), np.uint8
        )
        letters = self.plan.letters
        self.n_stages = pack_planes(
            *(words, 0, words.shape[2], n_samples, letters, self.packed, counts),
            device.capability,
        )
        carriers, homs = counts[:, 0].astype(np.int64), counts[:, 1].astype(np.int64)
        total, squares = carriers + homs, carriers + 3 * homs
        variance = (n_samples * squares - total * total).astype(np.float64)
        scale = cupy.where(variance > 0, 1 / cupy.sqrt(cupy.maximum(variance, 1)), np.nan)
        self.moments = cupy.zeros((padded, 2), np.int32)
        self.moments[: self.n_sites, 0] = total.astype(np.int32)
        self.moments[: self.n_sites, 1] = scale.astype(np.float32).view(np.int32)
        stages = (device.shared_bytes - SLOT_OVERHEAD) // SLOT_BYTES
        variant = Variant("wgmma", (("CLUSTER", 2), ("LOCKSTEP", 4), ("STAGES", stages)))
        self.shape = launch_shape(variant)
        self.kernel = load_function(
            MICRO_KERNELS["wgmma"],
            "bitgemm_wgmma",
            (*defines_of(variant, self.plan.passes[0], True), ("R2", 1)),
            device.capability,
        )
        self.kernel.max_dynamic_shared_size_bytes = self.shape.shared_bytes
        self.steps = cupy.asarray(step_table(self.plan.passes[0].steps))

    def compute(self, out: cupy.ndarray, blocks: cupy.ndarray, first_block: int) -> None:
        """Write blocks of 256 x 256 correlations.

        out: float32 (rows, padded n_sites), row 0 standing for block row `first_block`; blocks:
        int32 (n_blocks, 2), numbered over all sites.
        """
        # the kernel addresses rows from the start of all sites
        origin = out.data.ptr - first_block * BLOCK_ROWS * out.shape[1] * 4
        tiles = layout_tiles(self.n_sites)
        self.kernel(
            (self.shape.grid(len(blocks), self.device.multiprocessors),),
            (self.shape.threads,),
            (
                self.packed,
                self.packed,
                np.uint64(origin),
                self.steps,
                blocks,
                np.int32(len(self.plan.passes[0].steps)),
                np.int32(len(blocks)),
                np.int32(1),
                np.int32(self.n_stages),
                np.int32(tiles),
                np.int32(tiles),
                np.int64(out.shape[1]),
                np.int64(0),
                np.int32(1),
                cupy.zeros(1, np.uint32),
                self.moments,
                self.moments,
                np.int32(self.n_samples),
                np.int32(self.plan.scale[0]),
            ),
            shared_mem=self.shape.shared_bytes,
        )

    def pairs(self, ends: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Pairs i < j < ends[i] whose r2, in float32, is at least `least`: sorted int64 arrays."""
        ends_there = cupy.asarray(ends.astype(np.int32))
        padded = divide_up(self.n_sites, BLOCK_ROWS) * BLOCK_ROWS
        per_pass = SQUARE_SITES // BLOCK_ROWS
        every = block_order(padded // BLOCK_ROWS, padded // BLOCK_ROWS, True)
        out = cupy.empty((min(padded, SQUARE_SITES), padded), np.float32)
        defines = (("N_PLANES", 3),)
        select = load_function(KERNEL, "select_pairs", defines, self.device.capability)
        capacity = PAIRS_CAPACITY
        found, count = cupy.empty((capacity, 2), np.int32), cupy.zeros(1, np.uint64)
        parts = []
        for first in range(0, padded // BLOCK_ROWS, per_pass):
            row0, row1 = first * BLOCK_ROWS, min((first + per_pass) * BLOCK_ROWS, self.n_sites)
            last = divide_up(int(ends[row0:row1].max()), BLOCK_ROWS)
            chosen = blocks_of_rows(every, range(first, first + per_pass), last)
            self.compute(out, cupy.asarray(chosen), first)
            while True:
                count.fill(0)
                select(
                    (
                        divide_up(self.n_sites, SELECT_COLUMNS),
                        min(1024, divide_up(row1 - row0, SELECT_ROWS)),
                    ),
                    (SELECT_COLUMNS * SELECT_ROWS,),
                    (
                        out,
                        np.int64(padded),
                        np.int32(row1 - row0),
                        np.int32(self.n_sites),
                        np.int32(row0),
                        np.int32(0),
                        ends_there,
                        np.float32(least),
                        found,
                        count,
                        np.uint64(capacity),
                    ),
                )
                n_found = int(count[0])
                if n_found <= capacity:
                    break
                capacity = n_found
                found = cupy.empty((capacity, 2), np.int32)
            parts.append(found[:n_found].get())
        pairs = np.concatenate(parts).astype(np.int64)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return pairs[order, 0], pairs[order, 1]


def r2_candidates(
    planes: Planes, ends: np.ndarray, least: float, device: Device
) -> tuple[np.ndarray, np.ndarray] | None:
    """Pairs of variant-major planes within their windows that may reach `least`.

    float32 rounding is allowed for: every pair with r2 >= least is among them, with some just
    below. None where this device or data need the general path.
    """
    if not serves(device, planes):
        return None
    squares = R2Squares(cupy.asarray(np.ascontiguousarray(planes.words)), planes.n_sites, device)
    return squares.pairs(ends, least - ROUNDING)
