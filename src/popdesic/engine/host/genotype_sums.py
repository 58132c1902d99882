"""Sums of integers over genotypes in PLINK's two-bit codes, by tables instead of products.

Formula: out[r, :] += sum over items i of values[i, code(i, r), :], for 8 columns at a time. Four
items share a byte of codes, so a table of 256 sums of `values` answers for all four at once (the
method of the four Russians): one vector load and one addition do the work of four multiplications
and additions of a matrix product, nothing is unpacked, and integers are exact in any order. One
core does 7 G genotypes x 8 columns a second, OpenBLAS in float32 4 G (tests/bench/bench_pca.py).

Shapes: `words` uint32 (n_words, n_rows), 16 items a word; `values` int64 (16 n_words, 4, 8); `out`
int64 (n_rows, 8). Loops: words, then rows; four tables of 16 KB stay in the first two levels of
cache, and `words` and `out` are read in order. The additions are written as LLVM IR because numba
leaves loops of 8 scalar. Sums must stay below 2**63.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

#: Columns that are summed together: one AVX-512 register of int64.
COLUMNS = 8
#: Items (people of a site, or sites of a person) in one word of codes.
ITEMS = 16
_I64 = ir.IntType(64)
_VECTOR = ir.VectorType(_I64, COLUMNS)
_ROW_BYTES, _TABLE_BYTES = 8 * COLUMNS, 256 * 8 * COLUMNS


@intrinsic
def _add_entries(_, out, tables, word):
    """Add the entries of four tables, one a byte of `word`, to 8 numbers; addresses of both."""
    signature = types.void(types.intp, types.intp, types.uint32)

    def generate(context, builder, _, arguments):
        out, tables, word = arguments
        pointer = _VECTOR.as_pointer()

        def load(address):
            vector = builder.load(builder.inttoptr(address, pointer))
            vector.align = 8
            return vector

        word, total = builder.zext(word, _I64), load(out)
        for place in range(4):
            byte = builder.and_(builder.lshr(word, _I64(8 * place)), _I64(255))
            entry = builder.add(builder.mul(byte, _I64(_ROW_BYTES)), _I64(place * _TABLE_BYTES))
            total = builder.add(total, load(builder.add(tables, entry)))
        builder.store(total, builder.inttoptr(out, pointer)).align = 8
        return context.get_dummy_value()

    return signature, generate


@numba.njit(nogil=True, cache=True)
def _fill_table(values, first, table):
    """table[byte] = sum of the values of four items from `first` on, whose codes are in `byte`."""
    pairs = np.empty((2, 16, COLUMNS), np.int64)
    for half in range(2):
        at = first + 2 * half
        for low in range(4):
            for high in range(4):
                for k in range(COLUMNS):
                    pairs[half, low | high << 2, k] = values[at, low, k] + values[at + 1, high, k]
    for high in range(16):
        for low in range(16):
            for k in range(COLUMNS):
                table[high << 4 | low, k] = pairs[0, low, k] + pairs[1, high, k]


@numba.njit(nogil=True, cache=True)
def _sum_codes(words, values, out):
    tables = np.empty((4, 256, COLUMNS), np.int64)
    to, table = out.ctypes.data, tables.ctypes.data
    for w in range(words.shape[0]):
        for place in range(4):
            _fill_table(values, 16 * w + 4 * place, tables[place])
        for row in range(words.shape[1]):
            _add_entries(to + row * _ROW_BYTES, table, words[w, row])


def sum_codes(words: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum values of all items of each row.

    Parameters
    ----------
    words : uint32 array, (n_words, n_rows)
        Of `by_site` or `by_person`.
    values : int64 array, (n_items, 4, k)
        By code (00 two ALT alleles, 01 missing, 10 one, 11 none); items beyond the last count 0.

    Returns
    -------
    int64 array, (n_rows, k)
    """
    n_items, _, k = values.shape
    out = np.zeros((words.shape[1], k), np.int64)
    padded = np.zeros((len(words) * ITEMS, 4, COLUMNS), np.int64)
    for first in range(0, k, COLUMNS):
        few = min(COLUMNS, k - first)
        padded[:n_items, :, :few] = values[:, :, first : first + few]
        padded[:n_items, :, few:] = 0
        found = np.zeros((words.shape[1], COLUMNS), np.int64)
        _sum_codes(words, padded, found)
        out[:, first : first + few] = found[:, :few]
    return out


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
    _transpose_codes(rows, out)
    return out


@numba.njit(nogil=True, cache=True)
def _transpose_codes(rows, out):
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
