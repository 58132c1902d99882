"""Sums of integers over genotypes in PLINK's two-bit codes, by tables instead of products.

Formula: out[r, :] += sum over items i of values[i, code(i, r), :], for 8 columns at a time. Four
items share a byte of codes, so a table of 256 sums of `values` answers for all four at once (the
method of the four Russians): one vector load and one addition do the work of four multiplications
and additions of a matrix product, nothing is unpacked, and integers are exact in any order. One
core does 7 G genotypes x 8 columns a second, OpenBLAS in float32 4 G (tests/bench/bench_pca.py).

Shapes: `words` uint32 (n_words, n_rows), 16 items a word; `values` int32 (16 n_words, 4, 8); `out`
int64 (n_rows, 8). Loops: words, then rows; four tables of 8 KB of int32 stay in the first level of
cache, and `words` and `out` are read in order. The additions are written as LLVM IR because numba
leaves loops of 8 scalar. Values must stay below 2**VALUE_BITS, so that those of one word fit int32,
and sums below 2**63.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .popcount_cpu import popcount

#: Columns that are summed together: one AVX-512 register of int64, half of one of int32.
COLUMNS = 8
#: Items (people of a site, or sites of a person) in one word of codes.
ITEMS = 16
#: Bits of values: 16 of them and their sign fit int32.
VALUE_BITS = 27
_I64 = ir.IntType(64)
_LONG = ir.VectorType(_I64, COLUMNS)
_SHORT = ir.VectorType(ir.IntType(32), COLUMNS)
_LONG_BYTES, _SHORT_BYTES = 8 * COLUMNS, 4 * COLUMNS
_TABLE_BYTES = 256 * _SHORT_BYTES


def _load(builder, address, kind):
    """A vector at an address, aligned to one number."""
    vector = builder.load(builder.inttoptr(address, kind.as_pointer()))
    vector.align = kind.element.width // 8
    return vector


def _store(builder, vector, address):
    at = builder.inttoptr(address, vector.type.as_pointer())
    builder.store(vector, at).align = vector.type.element.width // 8


@intrinsic
def _add_entries(_, out, tables, word):
    """Add the entries of four tables, one a byte of `word`, to 8 numbers; addresses of both."""
    signature = types.void(types.intp, types.intp, types.uint32)

    def generate(context, builder, _, arguments):
        out, tables, word = arguments
        word, entries = builder.zext(word, _I64), []
        for place in range(4):
            byte = builder.and_(builder.lshr(word, _I64(8 * place)), _I64(255))
            entry = builder.add(builder.mul(byte, _I64(_SHORT_BYTES)), _I64(place * _TABLE_BYTES))
            entries.append(_load(builder, builder.add(tables, entry), _SHORT))
        low, high = builder.add(*entries[:2]), builder.add(*entries[2:])
        total = builder.sext(builder.add(low, high), _LONG)
        _store(builder, builder.add(_load(builder, out, _LONG), total), out)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _write_sum(_, out, left, right):
    """out[:8] = left[:8] + right[:8] of int32; addresses of all three."""
    signature = types.void(types.intp, types.intp, types.intp)

    def generate(context, builder, _, arguments):
        out, left, right = arguments
        total = builder.add(_load(builder, left, _SHORT), _load(builder, right, _SHORT))
        _store(builder, total, out)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _add_row(_, out, row):
    """out[:8] += row[:8] of int64; addresses of both."""
    signature = types.void(types.intp, types.intp)

    def generate(context, builder, _, arguments):
        out, row = arguments
        total = builder.add(_load(builder, out, _LONG), _load(builder, row, _LONG))
        _store(builder, total, out)
        return context.get_dummy_value()

    return signature, generate


@numba.njit(nogil=True, cache=True)
def _fill_table(values, first, pairs, table):
    """table[byte] = sum of the values of four items from `first` on, whose codes are in `byte`."""
    of, pair, to = values.ctypes.data, pairs.ctypes.data, table.ctypes.data
    for half in range(2):
        at = of + (first + 2 * half) * 4 * _SHORT_BYTES
        for low in range(4):
            for high in range(4):
                place = (16 * half + (low | high << 2)) * _SHORT_BYTES
                _write_sum(pair + place, at + low * _SHORT_BYTES, at + (4 + high) * _SHORT_BYTES)
    for high in range(16):
        for low in range(16):
            place = to + (high << 4 | low) * _SHORT_BYTES
            _write_sum(place, pair + low * _SHORT_BYTES, pair + (16 + high) * _SHORT_BYTES)


@numba.njit(nogil=True, cache=True)
def sum_codes_loop(words, start, values, out):
    tables = np.empty((4, 256, COLUMNS), np.int32)
    pairs = np.empty((2, 16, COLUMNS), np.int32)
    to, table = out.ctypes.data, tables.ctypes.data
    for w in range(words.shape[0]):
        for place in range(4):
            _fill_table(values, 16 * w + 4 * place, pairs, tables[place])
        for row in range(out.shape[0]):
            _add_entries(to + row * _LONG_BYTES, table, words[w, start + row])


def sum_values(
    words: np.ndarray, values: np.ndarray, rows: tuple[int, int] | None = None
) -> np.ndarray:
    """`sum_codes` of values in the kernel's shape, int32 (16 n_words, 4, 8): int64 (n_rows, 8)."""
    start, end = rows or (0, words.shape[1])
    found = np.zeros((end - start, COLUMNS), np.int64)
    sum_codes_loop(words, start, values, found)
    return found


def sum_codes(
    words: np.ndarray,
    two: np.ndarray,
    one: np.ndarray,
    none: np.ndarray,
    rows: tuple[int, int] | None = None,
) -> np.ndarray:
    """Sum values of all items of each row; missing genotypes count 0.

    Parameters
    ----------
    words : uint32 array, (n_words, n_rows)
        Of `by_site` or `by_person`.
    two, one, none : arrays of whole numbers, (n_items, k)
        Values of two ALT alleles (code 00), one (10) and none (11), below 2**VALUE_BITS.
    rows : (int, int), optional
        Bounds of the rows to sum; all by default.

    Returns
    -------
    int64 array, (n_rows, k)
    """
    n_items, k = two.shape
    start, end = rows or (0, words.shape[1])
    out = np.empty((end - start, k), np.int64)
    padded = np.zeros((len(words) * ITEMS, 4, COLUMNS), np.int32)
    for first in range(0, k, COLUMNS):
        few = min(COLUMNS, k - first)
        for code, values in ((0, two), (2, one), (3, none)):
            padded[:n_items, code, :few] = values[:, first : first + few]
        padded[:n_items, :, few:] = 0
        found = sum_values(words, padded, (start, end))
        if k == COLUMNS:
            return found
        out[:, first : first + few] = found[:, :few]
    return out


@numba.njit(nogil=True, cache=True)
def sum_missing_loop(words, numbers, out):
    of, to = numbers.ctypes.data, out.ctypes.data
    for w in range(words.shape[0]):
        for row in range(words.shape[1]):
            word = np.uint64(words[w, row])
            missing = word & ~(word >> np.uint64(1)) & np.uint64(0x55555555)
            while missing:
                lowest = missing & (~missing + np.uint64(1))
                item = 16 * w + (popcount(lowest - np.uint64(1)) >> 1)
                _add_row(to + row * _LONG_BYTES, of + item * _LONG_BYTES)
                missing ^= lowest


def sum_missing(words: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Sum numbers of the items of each row that are missing.

    Few are, so they are sought bit by bit.

    Parameters
    ----------
    words : uint32 array, (n_words, n_rows)
    numbers : int64 array, (n_items, k)

    Returns
    -------
    int64 array, (n_rows, k)
    """
    k = numbers.shape[1]
    out = np.empty((words.shape[1], k), np.int64)
    padded = np.zeros((len(words) * ITEMS, COLUMNS), np.int64)
    for first in range(0, k, COLUMNS):
        few = min(COLUMNS, k - first)
        padded[: len(numbers), :few] = numbers[:, first : first + few]
        found = np.zeros((words.shape[1], COLUMNS), np.int64)
        sum_missing_loop(words, padded, found)
        out[:, first : first + few] = found[:, :few]
    return out


@numba.njit(nogil=True, cache=True)
def count_differing(rows, out):
    """out[k, s] = places of row s whose code is not 11 (k = 0), not 00 (k = 1).

    rows: uint64 (n_sites, n_words), rows of a .bed; out: int64 (2, n_sites).
    """
    low, one = np.uint64(0x5555555555555555), np.uint64(1)
    for s in range(rows.shape[0]):
        out[:, s] = 32 * rows.shape[1]
        for w in range(rows.shape[1]):
            word, shifted = rows[s, w], rows[s, w] >> one
            out[0, s] -= popcount(word & shifted & low)
            out[1, s] -= popcount(~(word | shifted) & low)


@numba.njit(nogil=True, cache=True)
def list_differing(rows, sites, common, starts, items):
    """List who differs from the common code of some sites: ``place << 2 | code``, places in order.

    rows: of `count_differing`; sites, common: int64 (n_listed,), rows and 3 or 0; starts: int64
    (n_listed,), places in `items`, int32.
    """
    low, one = np.uint64(0x5555555555555555), np.uint64(1)
    for k in range(len(sites)):
        at, flip = starts[k], ~np.uint64(0) if common[k] else np.uint64(0)
        for w in range(rows.shape[1]):
            word = rows[sites[k], w]
            other = word ^ flip
            other = (other | other >> one) & low
            while other:
                bit = popcount((other & (~other + one)) - one)
                other &= other - one
                code = np.int64((word >> np.uint64(bit)) & np.uint64(3))
                items[at] = (32 * w + (bit >> 1)) << 2 | code
                at += 1


@numba.njit(nogil=True, cache=True)
def sum_listed_sites(lists, first, end, numbers, column, out):
    """Sums of genotype x number, and of the numbers of who is missing, at listed sites.

    Parameters
    ----------
    lists : starts int64 (n_listed + 1,), items and common of `list_differing`
    first, end : int
        Places that count.
    numbers : int64 array, (end - first, 8)
    column : int
        Of `out`, int64 (2, n_listed, k), from which on at most 8 are filled.
    """
    starts, items, common = lists
    sums, total = np.zeros((4, COLUMNS), np.int64), np.zeros(COLUMNS, np.int64)
    of, to, rest = numbers.ctypes.data, sums.ctypes.data, total.ctypes.data
    for place in range(end - first):
        _add_row(rest, of + place * _LONG_BYTES)
    for k in range(len(starts) - 1):
        sums[:] = 0
        for at in range(starts[k], starts[k + 1]):
            place = items[at] >> 2
            if place >= end:
                break
            if place >= first:
                _add_row(to + (items[at] & 3) * _LONG_BYTES, of + (place - first) * _LONG_BYTES)
        for c in range(min(COLUMNS, out.shape[2] - column)):
            two = sums[0, c] if common[k] else total[c] - sums[1, c] - sums[2, c] - sums[3, c]
            out[0, k, column + c] = 2 * two + sums[2, c]
            out[1, k, column + c] = sums[1, c]


@numba.njit(nogil=True, cache=True)
def sum_listed_people(lists, first, end, values, column, out):
    """Add values of listed sites to the sums of people.

    Parameters
    ----------
    lists, first, end : as above
    values : three int64 arrays, (n_listed, k)
        Of two ALT alleles, one and none; missing genotypes count 0.
    column : int
        Of `values`, from which on at most 8 count.
    out : int64 array, (end - first, 8)
    """
    starts, items, common = lists
    twos, ones, nones = values
    table, total = np.zeros((4, COLUMNS), np.int64), np.zeros(COLUMNS, np.int64)
    of, to = table.ctypes.data, out.ctypes.data
    for k in range(len(starts) - 1):
        for c in range(min(COLUMNS, twos.shape[1] - column)):
            two, one, none = twos[k, column + c], ones[k, column + c], nones[k, column + c]
            usual = none if common[k] else two
            total[c] += usual
            table[0, c], table[1, c] = two - usual, -usual
            table[2, c], table[3, c] = one - usual, none - usual
        for at in range(starts[k], starts[k + 1]):
            place = items[at] >> 2
            if place >= end:
                break
            if place >= first:
                _add_row(to + (place - first) * _LONG_BYTES, of + (items[at] & 3) * _LONG_BYTES)
    for place in range(end - first):
        _add_row(to + place * _LONG_BYTES, total.ctypes.data)


def by_site(rows: np.ndarray) -> np.ndarray:
    """Words of people for each site: .bed rows uint8 (n_sites, 4 n_words), transposed."""
    return np.ascontiguousarray(rows.view(np.uint32).T)


def by_person(rows: np.ndarray) -> np.ndarray:
    """Words of sites for each person.

    Parameters
    ----------
    rows : uint8 array, (n_sites, row_bytes)

    Returns
    -------
    uint32 array, (ceil(n_sites / 16), 4 row_bytes)
        Sites beyond the last read as missing.
    """
    out = np.empty((-(-len(rows) // ITEMS), 4 * rows.shape[1]), np.uint32)
    if len(rows) % ITEMS:
        padding = np.full((-len(rows) % ITEMS, rows.shape[1]), 0x55, np.uint8)
        rows = np.concatenate([rows, padding])
    transpose_codes(rows, out)
    return out


@numba.njit(nogil=True, cache=True)
def transpose_codes(rows, out):
    """16 sites x 4 people at a time, in squares of four that two swap steps transpose."""
    for w in range(out.shape[0]):
        for byte in range(rows.shape[1]):
            a = b = c = d = np.uint32(0)
            for group in range(4):
                first = 16 * w + 4 * group
                x = np.uint32(rows[first, byte])
                x |= np.uint32(rows[first + 1, byte]) << np.uint32(8)
                x |= np.uint32(rows[first + 2, byte]) << np.uint32(16)
                x |= np.uint32(rows[first + 3, byte]) << np.uint32(24)
                t = (x ^ (x >> np.uint32(6))) & np.uint32(0x00CC00CC)
                x = x ^ t ^ (t << np.uint32(6))
                t = (x ^ (x >> np.uint32(12))) & np.uint32(0x0000F0F0)
                x = x ^ t ^ (t << np.uint32(12))
                shift = np.uint32(8 * group)
                a |= (x & np.uint32(0xFF)) << shift
                b |= ((x >> np.uint32(8)) & np.uint32(0xFF)) << shift
                c |= ((x >> np.uint32(16)) & np.uint32(0xFF)) << shift
                d |= (x >> np.uint32(24)) << shift
            out[w, 4 * byte] = a
            out[w, 4 * byte + 1] = b
            out[w, 4 * byte + 2] = c
            out[w, 4 * byte + 3] = d
