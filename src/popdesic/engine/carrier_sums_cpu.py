"""Rare sites on a CPU: sites that few samples carry are added by pairs of carriers, exactly.

`carrier_sums_plan.py` has the formula and decides site by site. A range of sites goes these steps:

1. `_count_others`: samples of a site that differ from each homozygote, in bit-sliced counters;
2. `_split_rows`: sites that stay in the dense products are gathered (PEXT) into other planes;
3. `_fill_lists`: carriers of each listed site in order of samples (``sample << 2 | genotype``), and
   for each sample its listed sites, with the place in their lists where its pairs begin;
4. `_add_rows`: for each sample, the carriers of its sites are added to one row of accumulators,
   which stays in the first-level cache. Of a block with itself this is the triangle j >= i.

Tasks of steps 1 and 3 are ranges of words, of 2 and 4 rows of samples: threads never meet, and all
sums are integers, so their number changes no byte.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from .carrier_sums_plan import (
    COMMON,
    FIELD_BITS,
    FIELDS,
    TASK_WORDS,
    CarrierCosts,
    CarrierTables,
)
from .extract_cpu import extract_bits
from .popcount_cpu import popcount
from .terms import Planes, aligned_zeros

#: Rows of one task of step 4: their entries of one column are a line of the cache.
TASK_ROWS = 8
#: Samples of one task of step 2.
TASK_SAMPLES = 32
#: Samples that are copied and counted at a time.
COUNTED_SAMPLES = 4080
#: Samples that are added to bit-sliced counters at a time, and such counters.
_FIFTEEN, _LEVELS = 15, 16
#: A vector of the widest kind, in words.
_VECTOR_WORDS = 8
_BIAS = sum(1 << (FIELD_BITS * k + FIELD_BITS - 1) for k in range(FIELDS))


def count_others(planes: Planes, first: int, last: int, threads: int) -> np.ndarray:
    """Samples that differ from each homozygote of COMMON, by site of some words.

    Returns
    -------
    int64 array, (2, 64 * (last - first))
        Of sites beyond the last one it means nothing.
    """
    out = np.zeros((len(COMMON), 64 * (last - first)), np.int64)
    words, count = planes.words[:, :, first:last], _kernel("count_others")

    def work(begin: int, end: int) -> None:
        for one, other in _tasks(planes.n_samples, COUNTED_SAMPLES):
            # In memory, words of a sample side by side: loops over them are vectors.
            part = np.ascontiguousarray(words[one:other, :, begin:end])
            count(part, out[:, 64 * begin : 64 * end])

    run_tasks(work, _tasks(last - first, TASK_WORDS), threads)
    return out


def split_sites(
    a: Planes,
    b: Planes | None,
    tables: CarrierTables,
    costs: CarrierCosts,
    out: np.ndarray,
    scale: int,
    threads: int,
) -> Iterator[tuple[Planes, Planes]]:
    """Add rare sites to a result, and yield the planes of the others, range by range.

    Parameters
    ----------
    a, b : Planes
        `b` is None for one block with itself.
    out : int64 array, (n_outputs, m, n)
        Gets `scale` times the sums over rare sites.

    Yields
    ------
    Planes of both blocks with sites that are left to the dense products.
    """
    n_words = -(-a.n_sites // 64)
    for first in range(0, n_words, costs.range_words):
        last = min(n_words, first + costs.range_words)
        n_sites = min(a.n_sites, 64 * last) - 64 * first
        sides = [a] if b is None else [a, b]
        counts = [count_others(side, first, last, threads)[:, :n_sites] for side in sides]
        way, _ = costs.choose(counts[0], counts[-1])
        sites = SplitSites.of(way, last - first)
        split = [
            SplitSide.of(Planes(side.words[:, :, first:last], n_sites), sites, threads)
            for side in sides
        ]
        if len(sites.listed):
            _add_listed(split, counts[-1], sites, tables, out, scale, threads)
        if n_sites > len(sites.listed):
            yield split[0].rest, split[-1].rest


class SplitSites:
    """How the sites of a range are added.

    Attributes
    ----------
    listed : int64 array, (n_listed,)
        Sites that are added by carriers, in order.
    common : int64 array, (n_listed,)
        Which of COMMON each is listed against.
    masks : uint64 array, (3, n_words)
        Bits of sites that stay, of listed ones, and of those listed against ``COMMON[1]``.
    before : int64 array, (n_words,)
        Listed sites in the words before.
    """

    def __init__(self, way: np.ndarray, masks: np.ndarray) -> None:
        self.listed = np.flatnonzero(way)
        self.common = way[self.listed].astype(np.int64) - 1
        self.masks = masks
        ones = np.bitwise_count(masks[1]).astype(np.int64)
        self.before = np.cumsum(ones) - ones

    @classmethod
    def of(cls, way: np.ndarray, n_words: int) -> SplitSites:
        bits = np.zeros((3, 64 * n_words), np.uint8)
        bits[:, : len(way)] = way == 0, way > 0, way == 2
        return cls(way, np.packbits(bits, axis=1, bitorder="little").view(np.uint64))


class SplitSide:
    """One block of samples over the sites of a range.

    Attributes
    ----------
    planes : Planes
        Of all sites of the range.
    rest : Planes
        Of those that stay in the dense products.
    found : int64 array, (n_samples, 8)
        Listed sites of each sample by ``4 * common + genotype``, carriers alone.
    parts : int64 array, (n_samples, n_tasks)
        Listed sites that it carries, by range of TASK_WORDS words.
    """

    def __init__(self, planes: Planes, rest: Planes, found: np.ndarray, parts: np.ndarray) -> None:
        self.planes, self.rest, self.found, self.parts = planes, rest, found, parts

    @classmethod
    def of(cls, planes: Planes, sites: SplitSites, threads: int) -> SplitSide:
        n, n_planes, n_words = planes.words.shape
        n_rest = planes.n_sites - len(sites.listed)
        width = -(-max(n_rest, 1) // (64 * _VECTOR_WORDS)) * _VECTOR_WORDS
        words = aligned_zeros((n, n_planes, width))
        found = np.zeros((n, 8), np.int64)
        parts = np.zeros((n, -(-n_words // TASK_WORDS)), np.int64)
        split = _kernel("split_rows")
        run_tasks(
            lambda a, b: split(planes.words, sites.masks, a, b, words, found, parts),
            _tasks(n, TASK_SAMPLES),
            threads,
        )
        return cls(planes, Planes(words, n_rest), found, parts)


def _add_listed(
    split: list[SplitSide],
    others: np.ndarray,
    sites: SplitSites,
    tables: CarrierTables,
    out: np.ndarray,
    scale: int,
    threads: int,
) -> None:
    """Add the listed sites. others: int64 (2, n_sites), carriers of the columns' block."""
    a, b, same = split[0], split[-1], len(split) == 1
    lengths = others[sites.common, sites.listed]
    ends = np.cumsum(lengths)
    starts = ends - lengths
    entries = np.empty(int(ends[-1]), np.uint32)
    carried = np.cumsum(a.parts.ravel())
    places = (carried - a.parts.ravel()).reshape(a.parts.shape)
    mine = np.empty((int(carried[-1]), 2), np.int32)
    fill = _kernel("fill_lists")
    for side, lists, rows in [(a, True, True)] if same else [(b, True, False), (a, False, True)]:
        cursor, own = starts.copy(), places.copy()

        def work(first: int, last: int, side=side, lists=lists, rows=rows, c=cursor, p=own) -> None:
            given = sites.masks, sites.before, c, p
            fill(side.planes.words, *given, first, last, lists, rows, entries, mine)

        run_tasks(work, _tasks(len(sites.before), TASK_WORDS), threads)
    row_ends = np.append(places[:, 0], len(mine))
    of_rows, of_columns = tables.rows @ a.found.T, tables.columns @ b.found.T
    of_rows += (tables.constant @ np.bincount(sites.common, minlength=2))[:, None]
    given = (
        (row_ends, mine, ends, entries),
        (tables.packed, tables.upper, tables.lower),
        (of_rows, of_columns),
    )
    add = _kernel("add_rows")

    def work(first: int, last: int) -> None:
        add(*given, tables.limit, scale, same, first, last, out)

    run_tasks(work, _tasks(len(out[0]), TASK_ROWS), threads)


def _tasks(n: int, step: int) -> list[tuple[int, int]]:
    return [(k, min(n, k + step)) for k in range(0, n, step)]


@numba.njit(nogil=True)
def _others(words, i, w, common):
    """Bits of the sites of one word at which sample i differs from the homozygote ``2 * common``.

    Beyond the last site they mean nothing.
    """
    plane = words[i, 1, w] if common else ~words[i, 0, w]
    return ~(plane & words[i, 2, w]) if words.shape[1] == 3 else ~plane


@numba.njit(nogil=True)
def _full_adder(x, y, z):
    """Two bits of x + y + z: the sum and the carry."""
    half = x ^ y
    return half ^ z, (x & y) | (half & z)


def _count_others(words, out):
    """out[k, b] += samples that differ from COMMON[k] at bit b of the words of all samples.

    words: uint64 (n_samples, n_planes, n_words). Groups of fifteen samples are added to a number
    of four bits a site by full adders, and that to bit-sliced counters.
    """
    n, n_planes, n_words = words.shape
    full = ~np.uint64(0)
    x = np.zeros((_FIFTEEN, n_words), np.uint64)
    sums = np.zeros((_LEVELS, n_words), np.uint64)
    levels = 4
    while n >> levels:
        levels += 1
    for common in range(2):
        sums[:] = np.uint64(0)
        for first in range(0, n, _FIFTEEN):
            for k in range(_FIFTEEN):
                if first + k >= n:
                    x[k] = np.uint64(0)
                    continue
                row = words[first + k]
                flip = np.uint64(0) if common else full
                if n_planes == 3:
                    for w in range(n_words):
                        x[k, w] = ~((row[common, w] ^ flip) & row[2, w])
                else:
                    for w in range(n_words):
                        x[k, w] = ~(row[common, w] ^ flip)
            for w in range(n_words):
                s0, a0 = _full_adder(x[0, w], x[1, w], x[2, w])
                s1, a1 = _full_adder(x[3, w], x[4, w], x[5, w])
                s2, a2 = _full_adder(x[6, w], x[7, w], x[8, w])
                s3, a3 = _full_adder(x[9, w], x[10, w], x[11, w])
                s4, a4 = _full_adder(x[12, w], x[13, w], x[14, w])
                s5, a5 = _full_adder(s0, s1, s2)
                one, a6 = _full_adder(s3, s4, s5)
                t0, b0 = _full_adder(a0, a1, a2)
                t1, b1 = _full_adder(a3, a4, a5)
                two, b2 = _full_adder(t0, t1, a6)
                four, eight = _full_adder(b0, b1, b2)
                sums[0, w], carry = _full_adder(sums[0, w], one, np.uint64(0))
                sums[1, w], carry = _full_adder(sums[1, w], two, carry)
                sums[2, w], carry = _full_adder(sums[2, w], four, carry)
                sums[3, w], x[0, w] = _full_adder(sums[3, w], eight, carry)
            for level in range(4, levels):
                for w in range(n_words):
                    carry = sums[level, w] & x[0, w]
                    sums[level, w] ^= x[0, w]
                    x[0, w] = carry
        for level in range(levels):
            for w in range(n_words):
                word = sums[level, w]
                for b in range(64):
                    ones = np.int64((word >> np.uint64(b)) & np.uint64(1))
                    out[common, 64 * w + b] += ones << level


def _split_rows(words, masks, first, last, rest, found, parts):
    """Gather the sites that stay, and count what is listed, for samples first ... last - 1.

    masks, found, parts: of `SplitSites` and `SplitSide`; rest: uint64 (n_samples, n_planes, width).
    """
    n_planes, n_words = words.shape[1], words.shape[2]
    full = ~np.uint64(0)
    for i in range(first, last):
        for plane in range(n_planes):
            held, n_held, at = np.uint64(0), 0, 0
            for w in range(n_words):
                keep = masks[0, w]
                if keep == np.uint64(0):
                    continue
                bits = extract_bits(words[i, plane, w], keep)
                n_bits = popcount(keep)
                held |= bits << np.uint64(n_held)
                n_held += n_bits
                if n_held >= 64:
                    rest[i, plane, at] = held
                    at += 1
                    n_held -= 64
                    # A shift by 64 is not defined.
                    held = bits >> np.uint64(n_bits - n_held) if n_held else np.uint64(0)
            if n_held:
                rest[i, plane, at] = held
        for w in range(n_words):
            if masks[1, w] == np.uint64(0):
                continue
            u, v = words[i, 0, w], words[i, 1, w]
            c = words[i, 2, w] if n_planes == 3 else full
            ref, alt = masks[1, w] & ~masks[2, w], masks[2, w]
            found[i, 1] += popcount(ref & c & u & ~v)
            found[i, 2] += popcount(ref & c & v)
            found[i, 3] += popcount(ref & ~c)
            found[i, 4] += popcount(alt & c & ~u)
            found[i, 5] += popcount(alt & c & u & ~v)
            found[i, 7] += popcount(alt & ~c)
            # As `_others` has it, so that lists have their length whatever the planes hold.
            carried = popcount(ref & ~(c & ~u)) + popcount(alt & ~(c & v))
            parts[i, w // TASK_WORDS] += carried


def _fill_lists(words, masks, before, cursor, places, first, last, lists, rows, entries, mine):
    """Fill the lists of the listed sites in words first ... last - 1, a range of TASK_WORDS words.

    cursor: int64 (n_listed,), where each site's list goes on, its start at first. places: int64
    (n_samples, n_tasks), where each sample's sites of a range go on. lists: write `entries`, the
    carriers of each site, ``sample << 2 | genotype``. rows: write `mine`, for each sample the place
    in the list of a site at which its pairs begin, and ``site << 3 | 4 * common + genotype``. Both:
    the pairs of a sample begin with itself.
    """
    one, task = np.uint64(1), first // TASK_WORDS
    for i in range(words.shape[0]):
        for w in range(first, last):
            alt = masks[2, w]
            left = (_others(words, i, w, 0) & ~alt) | (_others(words, i, w, 1) & alt)
            left &= masks[1, w]
            while left:
                low = left & (~left + one)
                left ^= low
                site = before[w] + popcount(masks[1, w] & (low - one))
                if words.shape[1] == 3 and not words[i, 2, w] & low:
                    genotype = 3
                elif words[i, 1, w] & low:
                    genotype = 2
                else:
                    genotype = 1 if words[i, 0, w] & low else 0
                if rows:
                    place = places[i, task]
                    places[i, task] += 1
                    mine[place, 0] = cursor[site]
                    mine[place, 1] = site << 3 | (4 if alt & low else 0) | genotype
                if lists:
                    entries[cursor[site]] = i << 2 | genotype
                    cursor[site] += 1


@numba.njit(nogil=True)
def _take_field(sums, k, values):
    """values[i, j] = field k of accumulators; nothing where k is -1."""
    if k < 0:
        values[:] = 0
        return
    shift, mask = np.uint64(FIELD_BITS * (k % FIELDS)), np.uint64(2**FIELD_BITS - 1)
    for i in range(values.shape[0]):
        row, found = sums[k // FIELDS, i], values[i]
        for j in range(len(row)):
            # Biased, no field borrows from the next one.
            number = (np.uint64(row[j]) + np.uint64(_BIAS)) >> shift & mask
            found[j] = np.int64(number) - 2 ** (FIELD_BITS - 1)


def _add_rows(lists, tables, margins, limit, scale, same, first, last, out):
    """Add the listed sites to rows first ... last - 1, at most TASK_ROWS, of the result.

    lists: bounds of each sample in `mine`, int64 (m + 1,), `mine`, the end of each site's
    `entries`, and these. tables: `packed`, `upper`, `lower` of `CarrierTables`, and `limit` is its
    own. margins: of rows (n_outputs, m) and columns (n_outputs, n). Of a block with itself also
    the same columns, below the diagonal.
    """
    row_ends, mine, ends, entries = lists
    packed, upper, lower = tables
    of_rows, of_columns = margins
    n = out.shape[2]
    sums = np.zeros((packed.shape[0], last - first, n), np.int64)
    values = np.empty((last - first, n), np.int64)
    # Margins are added once, however often a row is brought to the result.
    done, more, once = 0, True, 1
    while more:
        more = False
        for k in range(packed.shape[0]):
            for i in range(first, last):
                end = min(row_ends[i + 1], row_ends[i] + done + limit)
                more = more or end < row_ends[i + 1]
                row = sums[k, i - first]
                for own in range(row_ends[i] + done, end):
                    site, table = mine[own, 1] >> 3, packed[k, mine[own, 1] & 7]
                    # Unsigned, an index needs no look whether it counts from the end.
                    for place in range(np.uint64(mine[own, 0]), np.uint64(ends[site])):
                        entry = np.uint64(entries[place])
                        row[entry >> np.uint64(2)] += table[entry & np.uint64(3)]
        for o in range(out.shape[0]):
            _take_field(sums, upper[o], values)
            for i in range(first, last):
                row, found, margin = out[o, i], values[i - first], of_columns[o]
                own = of_rows[o, i]
                for j in range(i if same else 0, n):
                    row[j] += scale * (found[j] + once * (own + margin[j]))
            if not same:
                continue
            if lower[o] != upper[o]:
                _take_field(sums, lower[o], values)
            for j in range(first + 1, n):
                row, own = out[o, j], of_rows[o, j]
                for i in range(first, min(last, j)):
                    row[i] += scale * (values[i - first, j] + once * (own + of_columns[o, i]))
        done += limit
        once = 0
        if more:
            sums[:] = 0


_INTEGER, _FLAG = types.int64, types.boolean
_WORDS = types.Array(types.uint64, 3, "A", readonly=True)
_MASKS, _NUMBERS = types.Array(types.uint64, 2, "C"), types.Array(_INTEGER, 1, "C")
_TABLE, _CUBE = types.Array(_INTEGER, 2, "C"), types.Array(_INTEGER, 3, "C")
_SHORT, _SHORTS = types.Array(types.uint32, 1, "C"), types.Array(types.int32, 2, "C")
_BOUNDS = (_INTEGER, _INTEGER)
_KERNELS = {
    "count_others": (
        _count_others,
        (types.Array(types.uint64, 3, "C", readonly=True), types.Array(_INTEGER, 2, "A")),
    ),
    "split_rows": (
        _split_rows,
        (_WORDS, _MASKS, *_BOUNDS, types.Array(types.uint64, 3, "C"), _TABLE, _TABLE),
    ),
    "fill_lists": (
        _fill_lists,
        (_WORDS, _MASKS, _NUMBERS, _NUMBERS, _TABLE, *_BOUNDS, _FLAG, _FLAG, _SHORT, _SHORTS),
    ),
    "add_rows": (
        _add_rows,
        (
            types.Tuple((_NUMBERS, _SHORTS, _NUMBERS, _SHORT)),
            types.Tuple((_CUBE, _NUMBERS, _NUMBERS)),
            types.UniTuple(_TABLE, 2),
            *(_INTEGER, _INTEGER, _FLAG, *_BOUNDS, _CUBE),
        ),
    ),
}


@functools.cache
def _kernel(name: str) -> Callable:
    """One of the loops compiled for planes of any layout: one compilation serves all callers."""
    function, signature = _KERNELS[name]
    return numba.njit([types.void(*signature)], nogil=True, cache=True)(function)


def compile_kernels() -> None:
    """Compile all loops, or read them from the cache."""
    for name in _KERNELS:
        _kernel(name)
