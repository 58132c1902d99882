"""Exhaustive pair and triple scans on CPUs (contract: `backend.base.ScanData`, DESIGN section 8).

    count[c, g, s, t, z] = popcount(compacted(x, g, c)[y, s] & compacted(x, g, c)[z, t])

For x, class c and each stored state g of x, the carriers' bits of every later site are compacted
(PEXT), so that a product has the depth of the carriers alone. Planes lie word by word with the
sites side by side: one word of y meets a vector of z, and no sum crosses lanes. Stored counts give
the 27 cells of a block of z by subtraction from pair tables; the cells give the cost by look-up.

Loops: chunks of x (their compacted planes are made once), tiles of y (their pair tables with all z
are counted once a chunk) shared among threads, blocks of z that stay in the first-level cache.
A worker keeps its best `top` in a heap ordered by (cost, panel ranks), a total order, so that
neither threads nor tiles decide what is found. All counts are exact int64.
"""

from __future__ import annotations

import functools
from queue import SimpleQueue

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .base import Hits, ScanData
from .threads import run_tasks

#: Sites z of one block, y of one tile, x of one chunk; bytes that a chunk's planes may take.
BLOCK = 128
TILE = 8
CHUNK = 16
CHUNK_BYTES = 1 << 28
#: Bits of one panel rank in the key that breaks ties.
RANK_BITS = 21
_HAS_PEXT = bool(binding.get_host_cpu_features().get("bmi2"))
_I64 = ir.IntType(64)


@intrinsic
def _popcount(typing_context, word):
    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _pext(typing_context, word, mask):
    """The bits of `word` under `mask`, side by side."""

    def codegen(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I64, [_I64, _I64]), "llvm.x86.bmi.pext.64"
        )
        return builder.call(function, arguments)

    return types.uint64(types.uint64, types.uint64), codegen


@numba.njit(nogil=True)
def _pext_loop(word, mask):
    out, bit = np.uint64(0), np.uint64(0)
    while mask != np.uint64(0):
        lowest = mask & (~mask + np.uint64(1))
        if word & lowest:
            out |= np.uint64(1) << bit
        bit += np.uint64(1)
        mask ^= lowest
    return out


if _HAS_PEXT:

    @numba.njit(nogil=True)
    def _extract(word, mask):
        return _pext(word, mask)

else:
    _extract = _pext_loop


@numba.njit(nogil=True)
def _compact(words, x, state, first, out, row0, depth):
    """out[row0 + s * depth + w, z] = bits of site z, state s, under x's `state`; z >= first."""
    n_sites, n_states, n_words = words.shape
    for z in range(first, n_sites):
        for s in range(n_states):
            row, filled, pending = row0 + s * depth, 0, np.uint64(0)
            for w in range(n_words):
                mask = words[x, state, w]
                if mask == np.uint64(0):
                    continue
                bits = _extract(words[z, s, w], mask)
                pending |= bits << np.uint64(filled)
                size = _popcount(mask)
                if filled + size >= 64:
                    out[row, z] = pending
                    row += 1
                    used = 64 - filled
                    pending = np.uint64(0) if used == 64 else bits >> np.uint64(used)
                    filled = size - used
                else:
                    filled += size
            if filled > 0:
                out[row, z] = pending


@numba.njit(nogil=True)
def _add_seven(planes, i, y, j, z0, out, width):
    z1 = z0 + width
    a0, b0 = planes[i + 0, y], planes[j + 0, z0:z1]
    a1, b1 = planes[i + 1, y], planes[j + 1, z0:z1]
    a2, b2 = planes[i + 2, y], planes[j + 2, z0:z1]
    a3, b3 = planes[i + 3, y], planes[j + 3, z0:z1]
    a4, b4 = planes[i + 4, y], planes[j + 4, z0:z1]
    a5, b5 = planes[i + 5, y], planes[j + 5, z0:z1]
    a6, b6 = planes[i + 6, y], planes[j + 6, z0:z1]
    for z in range(width):
        x0, x1, x2 = a0 & b0[z], a1 & b1[z], a2 & b2[z]
        x3, x4, x5, x6 = a3 & b3[z], a4 & b4[z], a5 & b5[z], a6 & b6[z]
        p, q = x0 ^ x1 ^ x2, x3 ^ x4 ^ x5
        carry_p = (x0 & x1) | (x2 & (x0 | x1))
        carry_q = (x3 & x4) | (x5 & (x3 | x4))
        ones, carry = p ^ q ^ x6, (p & q) | (x6 & (p | q))
        twos = carry_p ^ carry_q ^ carry
        fours = (carry_p & carry_q) | (carry & (carry_p | carry_q))
        out[z] += _popcount(ones) + 2 * _popcount(twos) + 4 * _popcount(fours)


@numba.njit(nogil=True)
def _add_three(planes, i, y, j, z0, out, width):
    z1 = z0 + width
    a0, b0 = planes[i + 0, y], planes[j + 0, z0:z1]
    a1, b1 = planes[i + 1, y], planes[j + 1, z0:z1]
    a2, b2 = planes[i + 2, y], planes[j + 2, z0:z1]
    for z in range(width):
        x0, x1, x2 = a0 & b0[z], a1 & b1[z], a2 & b2[z]
        carry = (x0 & x1) | (x2 & (x0 | x1))
        out[z] += _popcount(x0 ^ x1 ^ x2) + 2 * _popcount(carry)


@numba.njit(nogil=True)
def _add_one(planes, i, y, j, z0, out, width):
    a, b = planes[i, y], planes[j, z0 : z0 + width]
    for z in range(width):
        out[z] += _popcount(a & b[z])


@numba.njit(nogil=True)
def _count(planes, row0, depth, n_states, y, y_states, z0, z1, z_states, counts):
    """counts[s, t, z - z0] = popcounts of y's state s and z's state t over `depth` words."""
    width = z1 - z0
    for s in range(n_states):
        for t in range(n_states):
            out = counts[s, t]
            for z in range(width):
                out[z] = 0
    w = 0
    while w < depth:
        # Full adders first: seven words of one weight make three of weights 1, 2 and 4.
        group = 7 if depth - w >= 7 else 3 if depth - w >= 3 else 1
        for s in range(y_states):
            i = row0 + s * depth + w
            for t in range(z_states):
                j, out = row0 + t * depth + w, counts[s, t]
                if group == 7:
                    _add_seven(planes, i, y, j, z0, out, width)
                elif group == 3:
                    _add_three(planes, i, y, j, z0, out, width)
                else:
                    _add_one(planes, i, y, j, z0, out, width)
        w += group


@numba.njit(nogil=True)
def _fill_cells(counts, n_states, from_y, from_z, whole, cells, width):
    """All nine cells of (y, z) from the stored counts and the margins.

    counts: (n_states, n_states, block). from_y[s]: samples with y in state s; from_z[t, z]: with
    z in state t; whole: all samples. With a missing state these margins include it, and it is
    taken off. cells: (9, block), states 0, 1 and the third a side.
    """
    for s in range(2):
        stored0, stored1 = counts[s, 0], counts[s, 1]
        c0, c1, c2 = cells[3 * s], cells[3 * s + 1], cells[3 * s + 2]
        for z in range(width):
            c0[z] = stored0[z]
            c1[z] = stored1[z]
            c2[z] = from_y[s] - stored0[z] - stored1[z]
        if n_states == 3:
            missing = counts[s, 2]
            for z in range(width):
                c2[z] -= missing[z]
    for t in range(2):
        out, a, b, margin = cells[6 + t], counts[0, t], counts[1, t], from_z[t]
        for z in range(width):
            out[z] = margin[z] - a[z] - b[z]
        if n_states == 3:
            missing = counts[2, t]
            for z in range(width):
                out[z] -= missing[z]
    rest = whole - from_y[0] - from_y[1]
    out, a, b = cells[8], cells[6], cells[7]
    for z in range(width):
        out[z] = rest - a[z] - b[z]
    if n_states == 3:
        # z missing: whoever has it and y in the third state.
        margin, m0, m1, m2 = from_z[2], counts[0, 2], counts[1, 2], counts[2, 2]
        missing_y = from_y[2]
        for z in range(width):
            out[z] -= missing_y + (margin[z] - m0[z] - m1[z] - m2[z])


@numba.njit(nogil=True)
def _add_costs(controls, cases, n_cells, total, part, n_states, shift, costs, sums, width):
    """costs[z] = sum of the cells' entries, less that of the one cell of all called samples."""
    for z in range(width):
        costs[z] = -shift
    for k in range(n_cells):
        a, b = controls[k], cases[k]
        for z in range(width):
            costs[z] += total[a[z] + b[z]] - part[a[z]] - part[b[z]]
    if n_states == 3:
        for z in range(width):
            sums[0, z] = 0
            sums[1, z] = 0
        for k in range(n_cells):
            a, b = controls[k], cases[k]
            for z in range(width):
                sums[0, z] += a[z]
                sums[1, z] += b[z]
        for z in range(width):
            n0, n1 = sums[0, z], sums[1, z]
            costs[z] += shift - (total[n0 + n1] - part[n0] - part[n1])


@numba.njit(nogil=True)
def _permitted(allowed, i, j):
    if allowed.shape[0] == 0:
        return True
    return (allowed[i, j >> 6] >> np.uint64(j & 63)) & np.uint64(1) != np.uint64(0)


@numba.njit(nogil=True)
def _key(ranks, x, y, z):
    """The ranks in ascending order as one number; z < 0 stands for none."""
    a, b = min(ranks[x], ranks[y]), max(ranks[x], ranks[y])
    if z < 0:
        return (np.int64(a) << RANK_BITS) | np.int64(b)
    c = np.int64(ranks[z])
    low, high = min(np.int64(a), c), max(np.int64(b), c)
    middle = np.int64(a) + np.int64(b) + c - low - high
    return (((low << RANK_BITS) | middle) << RANK_BITS) | high


@numba.njit(nogil=True)
def _after(heap, i, j):
    """True if entry i comes after entry j in the order of hits."""
    return heap[i, 0] > heap[j, 0] or (heap[i, 0] == heap[j, 0] and heap[i, 1] > heap[j, 1])


@numba.njit(nogil=True)
def _swap(heap, i, j):
    for k in range(heap.shape[1]):
        heap[i, k], heap[j, k] = heap[j, k], heap[i, k]


@numba.njit(nogil=True)
def _offer(heap, state, cost, key, x, y, z):
    """Take a hit into the heap (worst on top) of state[0] entries; state[1] is what may enter."""
    size, top = state[0], heap.shape[0]
    if size == top:
        if cost > heap[0, 0] or (cost == heap[0, 0] and key > heap[0, 1]):
            return
        i = 0
    else:
        i = size
        state[0] = size = size + 1
    heap[i, 0], heap[i, 1], heap[i, 2], heap[i, 3], heap[i, 4] = cost, key, x, y, z
    while i > 0 and _after(heap, i, (i - 1) // 2):
        _swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _after(heap, child + 1, child):
            child += 1
        if not _after(heap, child, i):
            break
        _swap(heap, i, child)
        i = child
    if size == top:
        state[1] = min(state[1], heap[0, 0])


@numba.njit(nogil=True)
def _collect(costs, x, y, z0, low, high, data_rank, allowed, heap, state):
    """Offer the costs of (x, y, z) for z in [low, high); x < 0: of the pairs (y, z)."""
    for z in range(low, high):
        cost = costs[z - z0]
        if cost <= state[1] and _permitted(allowed, y, z):
            if x < 0:
                _offer(heap, state, cost, _key(data_rank, y, z, -1), y, z, -1)
            elif _permitted(allowed, x, z):
                _offer(heap, state, cost, _key(data_rank, x, y, z), x, y, z)


def _row_tables(planes0, planes1, n_states, states_of, x, out):
    """out[c, s, t, z]: pair tables of site x with every site."""
    for z0 in range(0, out.shape[3], BLOCK):
        z_states = _block_states(states_of, n_states, z0)
        for c in range(2):
            planes = planes0 if c == 0 else planes1
            depth = planes.shape[0] // n_states
            _count(
                planes, 0, depth, n_states, x, states_of[x], z0, z0 + BLOCK, z_states,
                out[c, :, :, z0 : z0 + BLOCK],
            )  # fmt: skip


@numba.njit(nogil=True)
def _block_states(states_of, n_states, z0):
    """Stored states that occur in a block of sites."""
    if n_states == 2:
        return 2
    found = 2
    for z in range(z0, min(z0 + BLOCK, states_of.shape[0])):
        found = max(found, states_of[z])
    return found


def _pair_task(
    tables, sizes, margins, states_of, n_states, x, total, part, shift, rank, allowed, heap, state
):
    """All pairs (x, y) of one x. tables: (2, n_states, n_states, width) of `_row_tables`."""
    n_sites = rank.shape[0]
    cells = np.empty((2, 9, BLOCK), np.int64)
    costs, sums = np.empty(BLOCK, np.int64), np.empty((2, BLOCK), np.int64)
    for z0 in range((x + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        for c in range(2):
            _fill_cells(
                tables[c, :, :, z0 : z0 + BLOCK], n_states, margins[c, :, x],
                margins[c, :, z0 : z0 + BLOCK], sizes[c], cells[c], BLOCK,
            )  # fmt: skip
        _add_costs(cells[0], cells[1], 9, total, part, n_states, shift, costs, sums, BLOCK)
        low, high = max(z0, x + 1), min(z0 + BLOCK, n_sites)
        _collect(costs, -1, x, z0, low, high, rank, allowed, heap, state)


def _triple_task(
    tables_y, tables_x, compacted, offsets, depths, sizes, margins, states_of, n_states, first,
    y0, y1, total, part, shift, rank, allowed, heap, state,
):  # fmt: skip
    """All triples (x, y, z) of the chunk of x that starts at `first` and y in [y0, y1).

    tables_y, tables_x: (sites, 2, n_states, n_states, width) pair tables of these y and x.
    compacted: uint64 (rows, width); offsets, depths: (x, 2, n_states), where each state's planes
    start and how many words deep they are.
    """
    n_sites = rank.shape[0]
    counts = np.empty((n_states, n_states, BLOCK), np.int64)
    scratch = np.empty((9, BLOCK), np.int64)
    cells = np.empty((2, 27, BLOCK), np.int64)
    costs, sums = np.empty(BLOCK, np.int64), np.empty((2, BLOCK), np.int64)
    for i in range(tables_x.shape[0]):
        x = first + i
        for z0 in range((max(x + 1, y0) + 1) // BLOCK * BLOCK, n_sites, BLOCK):
            z_states = _block_states(states_of, n_states, z0)
            for y in range(max(x + 1, y0), y1):
                low, high = max(z0, y + 1), min(z0 + BLOCK, n_sites)
                if low >= high or not _permitted(allowed, x, y):
                    continue
                for c in range(2):
                    rest = cells[c, 18:27]
                    _fill_cells(
                        tables_y[y - y0, c, :, :, z0 : z0 + BLOCK], n_states, margins[c, :, y],
                        margins[c, :, z0 : z0 + BLOCK], sizes[c], rest, BLOCK,
                    )  # fmt: skip
                    for g in range(states_of[x]):
                        _count(
                            compacted, offsets[i, c, g], depths[i, c, g], n_states, y,
                            states_of[y], z0, z0 + BLOCK, z_states, counts,
                        )  # fmt: skip
                        found = cells[c, 9 * g : 9 * g + 9] if g < 2 else scratch
                        _fill_cells(
                            counts, n_states, tables_x[i, c, g, :, y],
                            tables_x[i, c, g, :, z0 : z0 + BLOCK], margins[c, g, x], found, BLOCK,
                        )  # fmt: skip
                        for k in range(9):
                            out, taken = rest[k], found[k]
                            for z in range(BLOCK):
                                out[z] -= taken[z]
                _add_costs(cells[0], cells[1], 27, total, part, n_states, shift, costs, sums, BLOCK)
                _collect(costs, x, y, z0, low, high, rank, allowed, heap, state)


_U2, _U3 = types.Array(types.uint64, 2, "C"), types.Array(types.uint64, 3, "C", readonly=True)
_R1 = types.Array(types.int64, 1, "C", readonly=True)
_I1, _I2, _I3 = (types.Array(types.int64, n, "C") for n in (1, 2, 3))
_T4, _T5 = types.Array(types.int64, 4, "C"), types.Array(types.int64, 5, "C")
_N = types.int64
_SHARED = (_R1, _R1, _N, types.Array(types.int32, 1, "C", readonly=True))
_SHARED += (types.Array(types.uint64, 2, "C", readonly=True), _I2, _I1)


@functools.cache
def _kernels():
    """The compiled kernels: compact, row tables, pairs, triples."""

    def compiled(function, *arguments):
        return numba.njit([types.void(*arguments)], nogil=True, cache=True)(function)

    return (
        compiled(_compact.py_func, _U3, _N, _N, _N, _U2, _N, _N),
        compiled(_row_tables, _U2, _U2, _N, _I1, _N, _T4),
        compiled(_pair_task, _T4, _I1, _I3, _I1, _N, _N, *_SHARED),
        compiled(
            _triple_task, _T5, _T5, _U2, _I3, _I3, _I1, _I3, _I1, _N, _N, _N, _N, *_SHARED
        ),
    )  # fmt: skip


class _Scan:
    """Arrays that all tasks of one scan read, and the workers' heaps."""

    def __init__(self, data: ScanData, top: int, cutoff: int | None, threads: int):
        if data.n_sites >= 1 << RANK_BITS:
            raise ValueError(f"{data.n_sites} sites: at most {(1 << RANK_BITS) - 1} can be scanned")
        self.data, self.threads = data, threads
        self.n_states = data.classes[0].words.shape[1]
        self.width = -(-data.n_sites // BLOCK) * BLOCK
        self.words = [np.ascontiguousarray(one.words, np.uint64) for one in data.classes]
        self.planes = [self._word_major(words) for words in self.words]
        self.sizes = np.array([one.n_samples for one in data.classes], np.int64)
        self.margins = np.zeros((2, self.n_states, self.width), np.int64)
        for c, words in enumerate(self.words):
            self.margins[c, :, : data.n_sites] = np.bitwise_count(words).sum(axis=2).T
        missing = self.margins[:, 2:, : data.n_sites].sum(axis=(0, 1)) > 0
        self.states_of = np.where(missing, 3, 2).astype(np.int64)
        total, part = data.total, data.part
        n0, n1 = self.sizes
        shift = int(total[n0 + n1]) - int(part[n0]) - int(part[n1])
        allowed = np.zeros((0, 0), np.uint64) if data.allowed is None else data.allowed
        rank = np.ascontiguousarray(data.rank, np.int32)
        self.shared = (total, part, shift, rank, np.ascontiguousarray(allowed))
        self.heaps = []
        self.free: SimpleQueue = SimpleQueue()
        limit = np.iinfo(np.int64).max if cutoff is None else cutoff
        for _ in range(max(1, threads)):
            self.heaps.append((np.empty((top, 5), np.int64), np.array([0, limit], np.int64)))
            self.free.put(self.heaps[-1])

    def _word_major(self, words):
        n_sites, n_states, n_words = words.shape
        out = np.zeros((n_states * n_words, self.width), np.uint64)
        out[:, :n_sites] = words.reshape(n_sites, -1).T
        return out

    def tables(self, n: int) -> np.ndarray:
        return np.zeros((n, 2, self.n_states, self.n_states, self.width), np.int64)

    def hits(self, order: int) -> Hits:
        found = np.concatenate([heap[: state[0]] for heap, state in self.heaps])
        found = found[np.lexsort((found[:, 1], found[:, 0]))][: len(self.heaps[0][0])]
        return Hits(found[:, 0].copy(), found[:, 2 : 2 + order].astype(np.int32))


def scan_pairs(
    data: ScanData, first: range, top: int, cutoff: int | None = None, *, threads: int = 1
) -> Hits:
    """See `backend.base.Backend.scan_pairs`."""
    scan = _Scan(data, top, cutoff, threads)
    _, count_row, pairs, _ = _kernels()

    def work(start: int, stop: int) -> None:
        heap, state = scan.free.get()
        tables = scan.tables(1)[0]
        for x in range(start, stop):
            count_row(*scan.planes, scan.n_states, scan.states_of, x, tables)
            pairs(
                tables, scan.sizes, scan.margins, scan.states_of, scan.n_states, x,
                *scan.shared, heap, state,
            )  # fmt: skip
        scan.free.put((heap, state))

    starts = range(first.start, min(first.stop, data.n_sites), TILE)
    run_tasks(work, [(s, min(s + TILE, first.stop, data.n_sites)) for s in starts], threads)
    return scan.hits(2)


def scan_triples(
    data: ScanData, first: range, top: int, cutoff: int | None = None, *, threads: int = 1
) -> Hits:
    """See `backend.base.Backend.scan_triples`."""
    scan = _Scan(data, top, cutoff, threads)
    stop = min(first.stop, data.n_sites - 2)
    start = first.start
    while start < stop:
        depths = _depths(scan, start, min(stop, start + CHUNK))
        rows = np.cumsum(depths.sum(axis=(1, 2))) * scan.n_states
        n = max(1, int(np.searchsorted(rows * scan.width * 8, CHUNK_BYTES, "right")))
        _scan_chunk(scan, start, depths[:n])
        start += len(depths[:n])
    return scan.hits(3)


def _depths(scan: _Scan, start: int, stop: int) -> np.ndarray:
    """Words of the compacted planes: int64 (x, 2, n_states)."""
    return -(-np.moveaxis(scan.margins[:, :, start:stop], 2, 0) // 64)


def _scan_chunk(scan: _Scan, start: int, depths: np.ndarray) -> None:
    compact, count_row, _, triples = _kernels()
    n, n_sites = len(depths), scan.data.n_sites
    depths = np.ascontiguousarray(depths)
    rows = depths.ravel() * scan.n_states
    offsets = (np.cumsum(rows) - rows).reshape(depths.shape)
    compacted = np.zeros((max(1, int(rows.sum())), scan.width), np.uint64)
    tables_x = scan.tables(n)

    def prepare(i: int) -> None:
        count_row(*scan.planes, scan.n_states, scan.states_of, start + i, tables_x[i])
        for c in range(2):
            for g in range(scan.n_states):
                compact(
                    scan.words[c], start + i, g, start + i + 1, compacted, offsets[i, c, g],
                    depths[i, c, g],
                )  # fmt: skip

    def work(y0: int, y1: int) -> None:
        heap, state = scan.free.get()
        tables_y = scan.tables(y1 - y0)
        for y in range(y0, y1):
            count_row(*scan.planes, scan.n_states, scan.states_of, y, tables_y[y - y0])
        triples(
            tables_y, tables_x, compacted, offsets, depths, scan.sizes, scan.margins,
            scan.states_of, scan.n_states, start, y0, y1, *scan.shared, heap, state,
        )  # fmt: skip
        scan.free.put((heap, state))

    run_tasks(prepare, [(i,) for i in range(n)], scan.threads)
    tiles = range(start + 1, n_sites - 1, TILE)
    run_tasks(work, [(y0, min(y0 + TILE, n_sites - 1)) for y0 in tiles], scan.threads)
