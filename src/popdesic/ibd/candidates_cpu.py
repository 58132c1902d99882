"""Candidates of identity by descent on a CPU (`ibd.candidates` has the definition and the method).

Kernels
-------
`_pack`: planes to packed windows. A window is `m` words: its sites' bits of z (genotype 0), then of
v (genotype 2), called sites only. Turned, it begins with v, so that the opposite homozygotes of a
pair are popcount(a & turned b). In windows of up to 32 sites, z and v share one word.
`_find`: one tile of pairs. Loops: probes, rows, 64 columns at a time. A vector holds one word of as
many columns as it has lanes; the words of a window are ANDed with the row's and joined by OR. The
ones of the result are never more than x, so columns with more than `tolerance` of them are not
good: one popcount for the m words. 64 answers are the bits of one word; where bits of `depth`
probes in a row are set, the runs around the probe are walked, window by window, by exact counts.

The rows' windows, and ROWS x COLUMNS of the columns' words, stay in cache. No count overflows: a
window has at most 256 sites.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ..core.threads import run_tasks
from ..engine.popcount_cpu import popcount
from ..engine.terms import Planes, aligned_zeros
from .candidates import Candidates, Probes, Windows, check_operands, require_room, search_blocks

_FEATURES = binding.get_host_cpu_features()
#: 64-bit lanes of one vector register.
LANES = 8 if _FEATURES.get("avx512f") else 4 if _FEATURES.get("avx2") else 2
#: Samples a side of the tile of one task; its columns are whole words of answers.
ROWS, COLUMNS = 128, 512
#: Words of packed windows of at most 32, 64, 128, 256 sites.
WINDOW_WORDS = (1, 2, 4, 8)
#: Most bytes of the packed windows of one block of samples.
BLOCK_BYTES = 1 << 28
#: Runs of a tile that there is room for at first.
LEAST_ROOM = 1 << 12
#: Probes in a row that must be good (tests/bench/bench_ibd.py --depths).
DEPTH = 2

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_I64, LANES)
_WORDS = types.Array(types.uint64, 3, "C")
_PLACES = types.Array(types.int32, 1, "C")


@intrinsic
def _few_of_64(typing_context, form, rows, columns, probe, row, column, most):
    """Which of 64 columns have at most `most` ones in the OR of their words ANDed with the row's.

    form: a tuple whose length is m. rows: (n_probes, n_rows, m); columns: (n_probes, m, n_columns);
    column: the first one. Returns a uint64.
    """
    n_words = form.count
    integer = types.int64
    signature = types.uint64(form, rows, columns, integer, integer, integer, integer)

    def codegen(context, builder, signature, arguments):
        _, rows, columns, probe, row, column, most = arguments

        def address(array, array_type, *place):
            struct = context.make_array(array_type)(context, builder, array)
            strides = cgutils.unpack_tuple(builder, struct.strides)
            offset = _I64(0)
            for index, stride in zip(place, strides, strict=True):
                offset = builder.add(offset, builder.mul(index, stride))
            return builder.add(builder.ptrtoint(struct.data, _I64), offset), strides

        def splat(value):
            vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _I32(0))
            zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
            return builder.shuffle_vector(vector, ir.Constant(_VECTOR, ir.Undefined), zeros)

        def load(address, kind):
            value = builder.load(builder.inttoptr(address, kind.as_pointer()))
            value.align = 8
            return value

        own, _ = address(rows, signature.args[1], probe, row, _I64(0))
        others, strides = address(columns, signature.args[2], probe, _I64(0), column)
        own = [splat(load(builder.add(own, _I64(8 * t)), _I64)) for t in range(n_words)]
        count = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.ctpop.v{LANES}i64"
        )
        limit, answers = splat(most), _I64(0)
        for group in range(64 // LANES):
            joined = None
            for t in range(n_words):
                offset = builder.add(builder.mul(strides[1], _I64(t)), _I64(8 * LANES * group))
                both = builder.and_(own[t], load(builder.add(others, offset), _VECTOR))
                joined = both if joined is None else builder.or_(joined, both)
            few = builder.icmp_signed("<=", builder.call(count, [joined]), limit)
            bits = builder.zext(builder.bitcast(few, ir.IntType(LANES)), _I64)
            answers = builder.or_(answers, builder.shl(bits, _I64(LANES * group)))
        return answers

    return signature, codegen


@numba.njit(nogil=True, inline="always")
def _bits_at(words, sample, plane, site):
    """64 bits of a plane from a site on; zeros behind its last word."""
    word, shift = site >> 6, np.uint64(site & 63)
    n_words = words.shape[2]
    found = words[sample, plane, word] >> shift if word < n_words else np.uint64(0)
    if shift and word + 1 < n_words:
        found |= words[sample, plane, word + 1] << (np.uint64(64) - shift)
    return found


def _pack(words, first, n_sites, bits, out, begin, end):
    """Windows of the samples begin ... end - 1: out uint64 (n_samples, n_windows, m)."""
    half = max(1, bits // 64)
    masked = words.shape[1] > 2
    for sample in range(begin, end):
        for w in range(len(first)):
            for t in range(half):
                left = n_sites[w] - 64 * t
                zero = two = np.uint64(0)
                if left > 0:
                    site = first[w] + 64 * t
                    valid = ~np.uint64(0)
                    if left < 64:
                        valid = (np.uint64(1) << np.uint64(left)) - np.uint64(1)
                    if masked:
                        valid &= _bits_at(words, sample, 2, site)
                    zero = valid & ~_bits_at(words, sample, 0, site)
                    two = valid & _bits_at(words, sample, 1, site)
                if bits == 32:
                    out[sample, w, 0] = zero | two << np.uint64(32)
                else:
                    out[sample, w, t] = zero
                    out[sample, w, half + t] = two


@numba.njit(nogil=True, inline="always")
def _opposite(a, i, b, j, w):
    """Opposite homozygotes of a pair in a window."""
    if a.shape[2] == 1:
        word, shift = b[j, w, 0], np.uint64(32)
        return popcount(a[i, w, 0] & (word << shift | word >> shift))
    half, count = a.shape[2] >> 1, 0
    for t in range(half):
        count += popcount(a[i, w, t] & b[j, w, half + t])
        count += popcount(a[i, w, half + t] & b[j, w, t])
    return count


@numba.njit(nogil=True, inline="always")
def _walk(a, i, b, j, probe, reach, stop, begin, end, tolerance):
    """First and last window of the run around a probe; (-1, -1) where another probe finds it.

    reach: the run holds this window; stop: the run does not.
    """
    if _opposite(a, i, b, j, probe) > tolerance:
        return -1, -1
    first = probe
    while first > begin and _opposite(a, i, b, j, first - 1) <= tolerance:
        first -= 1
        if first == stop:
            return -1, -1
    if first > reach:
        return -1, -1
    last = probe
    while last + 1 < end and _opposite(a, i, b, j, last + 1) <= tolerance:
        last += 1
    return first, last


def _find(form, a, b, rows, columns, probes, tolerance, tile, out):
    """Runs of one tile of pairs, written to `out`, int32 (room, 4); their number, all counted.

    a, b: packed windows of both blocks; rows, columns: those of the probes, (n_probes, n_rows, m)
    and, turned, (n_probes, m, n_columns). tile: first and last row, first and last column, half
    open, and the offset: pairs with i < j + offset count.
    """
    left, right, begin, end = probes.left, probes.right, probes.begin, probes.end
    probe, stop, fresh, depth = probes.probe, probes.stop, probes.fresh, probes.depth
    row0, row1, column0, column1, offset = tile
    n_blocks = (column1 - column0 + 63) >> 6
    before = np.zeros((row1 - row0, n_blocks), np.uint64)
    found = 0
    for p in range(len(probe)):
        w = np.int64(probe[p])
        if fresh[p]:
            before[:] = 0
        for i in range(row0, row1):
            for block in range(n_blocks):
                j0 = column0 + 64 * block
                if i >= j0 + 63 + offset:
                    continue
                good = _few_of_64(form, rows, columns, p, i, j0, tolerance)
                left_over = good
                if depth > 1:
                    left_over &= before[i - row0, block]
                    before[i - row0, block] = good
                while left_over:
                    bit = left_over & (~left_over + np.uint64(1))
                    left_over ^= bit
                    j = j0 + popcount(bit - np.uint64(1))
                    if j >= column1 or i >= j + offset:
                        continue
                    reach = probe[p - depth + 1]
                    first, last = _walk(a, i, b, j, w, reach, stop[p], begin[w], end[w], tolerance)
                    if first >= 0 and right[last] - left[first] >= probes.min_length:
                        if found < len(out):
                            out[found, 0], out[found, 1] = i, j
                            out[found, 2], out[found, 3] = first, last
                        found += 1
    return found


@functools.cache
def pack_kernel():
    words = types.Array(types.uint64, 3, "A", readonly=True)
    sites, integer = types.Array(types.int64, 1, "C"), types.int64
    signature = types.void(words, sites, sites, integer, _WORDS, integer, integer)
    return numba.njit([signature], nogil=True, cache=True)(_pack)


@functools.cache
def find_kernel(n_words: int):
    """`_find` compiled for windows of so many words: one compilation serves all callers."""
    integer, ends = types.int64, types.Array(types.int64, 1, "C")
    probes = _PLACES, *[ends] * 4, *[_PLACES] * 4, types.Array(types.boolean, 1, "C")
    signature = integer(
        types.UniTuple(integer, n_words),
        *(_WORDS, _WORDS, _WORDS, _WORDS),
        *(types.NamedTuple((*probes, integer, integer), Probes), integer),
        *(types.UniTuple(integer, 5), types.Array(types.int32, 2, "C")),
    )
    return numba.njit([signature], nogil=True, cache=True)(_find)


def _packed(
    planes: Planes, samples: slice, probes: Probes, out: np.ndarray, threads: int
) -> np.ndarray:
    """Packed windows of some samples, in `out`: uint64 (n_samples, n_windows, m)."""
    out = out[: samples.stop - samples.start]
    arguments = planes.words[samples], probes.first, probes.sites, probes.bits, out
    bounds = [(first, min(first + ROWS, len(out))) for first in range(0, len(out), ROWS)]
    run_tasks(lambda begin, end: pack_kernel()(*arguments, begin, end), bounds, threads)
    return out


def _columns(packed: np.ndarray, probe: np.ndarray) -> np.ndarray:
    """Turned words of the probes, columns together, in whole answers: (n_probes, m, n)."""
    n, _, m = packed.shape
    out = aligned_zeros((len(probe), m, -(-n // 64) * 64))  # no vector spans two cache lines
    words = packed[:, probe]
    words = words << np.uint64(32) | words >> np.uint64(32) if m == 1 else np.roll(words, m // 2, 2)
    out[:, :, :n] = words.transpose(1, 2, 0)
    return out


def candidates(
    a: Planes,
    b: Planes | None,
    windows: Windows,
    tolerance: int,
    min_length: float,
    most: int,
    threads: int,
    depth: int = DEPTH,
) -> Candidates:
    """`find_candidates`; `depth` as in `Probes`, which changes the time alone."""
    check_operands(a, b, windows, tolerance)
    probes = Probes.of(windows, min_length, depth)
    largest = max(a.n_samples, 0 if b is None else b.n_samples)
    side = _side(probes)
    shape = min(side, largest), len(probes.number), probes.bits // 32
    rooms = [np.empty(shape, np.uint64) for _ in range(2)]  # pages of memory are touched once

    def pack(planes: Planes, samples: slice, place: int) -> np.ndarray:
        return _packed(planes, samples, probes, rooms[place], threads)

    def compare(rows: np.ndarray, columns: np.ndarray, offset: int) -> list[np.ndarray]:
        return _runs(rows, columns, probes, (tolerance, offset, most), threads)

    return search_blocks(a, b, probes, side, most, pack, compare)


def _side(probes: Probes) -> int:
    """Samples of a block, whose packed windows have `BLOCK_BYTES` at most."""
    bytes_a_sample = max(1, probes.bits // 4 * len(probes.number))
    return max(COLUMNS, BLOCK_BYTES // bytes_a_sample // COLUMNS * COLUMNS)


def _runs(
    a: np.ndarray,
    b: np.ndarray,
    probes: Probes,
    limits: tuple[int, int, int],
    threads: int,
) -> list[np.ndarray]:
    """Runs of two blocks by tiles: rows (i, j, first, last), int32 (n, 4).

    a, b: packed windows. limits: tolerance, offset (pairs with i < j + offset count), most runs.
    """
    p, (tolerance, offset, most) = probes, limits
    form = (0,) * a.shape[2]
    rows = np.ascontiguousarray(a[:, p.probe].transpose(1, 0, 2))
    operands = form, a, b, rows, _columns(b, p.probe), p, tolerance
    kernel = find_kernel(len(form))

    def work(row: int, column: int) -> np.ndarray:
        tile = row, min(row + ROWS, len(a)), column, min(column + COLUMNS, len(b)), offset
        out = np.empty((LEAST_ROOM, 4), np.int32)
        found = kernel(*operands, tile, out)
        if found > len(out):
            require_room(found, most, p, (tile[1] - row) * (tile[3] - column))
            out = np.empty((found, 4), np.int32)
            kernel(*operands, tile, out)
        return out[:found].copy()

    tiles = [
        (row, column)
        for row in range(0, len(a), ROWS)
        for column in range(0, len(b), COLUMNS)
        if row < column + COLUMNS - 1 + offset
    ]
    return run_tasks(work, tiles, threads)
