"""Vector code of the CPU scans: counts of stored states, cells of tables, a bound on their cost.

Consecutive sites z are the lanes of a vector; everything here works on one vector of them and is
written as LLVM IR, so that counts stay in registers and each row of a table is written once.
Counts are int32: a scan has fewer than 2**31 samples.

The bound. The cost of a table is sum_k total[n_k] - part[n0_k] - part[n1_k] over its cells k. With
A(n) = z log2 z, z = n + beta, one beta for `total` and one for `part`, the kernel computes

    S = sum_k A_total(n_k) - A_part(n0_k) - A_part(n1_k)

in float32, three logarithms a cell instead of three look-ups of int64 tables. Let d_total(n) =
scale total[n] + lambda n - A_total(n) and the like for `part`; the lambda terms cancel, as n_k =
n0_k + n1_k. If d_total(n) >= -(u + v n) and d_part(n) <= u' + v' n for all n from 0 to N, then,
since the n_k, and likewise the n0_k and n1_k together, sum to at most N,

    scale cost >= S - (cells u + N v) - (2 cells u' + N v') - rounding.

`CostBound` takes u, v, u', v' from the tables themselves, at every n, with the very logarithm that
the kernel computes; so the bound holds for any tables. It is tight where they resemble z log2 z:
mutual information has beta = 0. For K2, Stirling's series, lnGamma(z + 1/2) = z ln z - z +
ln(2 pi)/2 - r(z) with 0 < r < 1/(24 z), gives beta = 1/2 for `part` and 3/2 for `total`. The
`total` of K2 excess exceeds `part` by half of ln n and a constant (`epistasis.k2_null`), as with
beta = 1, but by nothing in empty cells. The best of a few betas is taken. Rounding: the sum is made
of 3 cells fused multiply-adds, each off by at most 2**-24 of the largest partial sum, which is at
most sum |A_total| + sum |A_part|, bounded in the same way.

Gini. A cell costs n0 n1 / n, which the kernel computes in float32 as such: a sum of positive terms
whose relative error is below (cells + 6) 2**-24. S is 2**-18 less of it than computed.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ..engine.bitgemm_cpu import LANES, LEVELS, WordStream

#: Words of a plane that are counted together: depths are multiples of it.
GROUP = 2**LEVELS
#: Sites of one vector of int32.
WIDE = 2 * LANES

_I32, IR_INT64, _F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
_WORDS = ir.VectorType(IR_INT64, LANES)
_HALF = ir.VectorType(_I32, LANES)
COUNT_TYPE = ir.VectorType(_I32, WIDE)
FLOAT_TYPE = ir.VectorType(_F32, WIDE)
_ONE_BITS, _MANTISSA = 0x3F800000, 0x007FFFFF
#: log2(m) - (m - 1) for 1 <= m <= 2, lowest power first.
_LOG_COEFFICIENTS = (
    np.polynomial.Chebyshev.interpolate(lambda m: np.log2(m) - (m - 1), 5, domain=[1, 2])
    .convert(kind=np.polynomial.Polynomial)
    .coef
)


#: Betas of total and part, and lambda, that are tried: for the mutual information, and for K2.
BETAS = (
    (0.0, 0.0, 0.0),
    *((beta, 0.5, float(1 / np.log(2))) for beta in (0.8, 0.9, 1.0, 1.1, 1.2, 1.5)),
)


#: `CostBound.beta_total` of Gini.
GINI = -1.0


def splat(builder, value, vector):
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, _I32(0))
    mask = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)


class RowsOfWords:
    """Addresses in an array that is contiguous along its last axis."""

    def __init__(self, context, builder, kind, array):
        self.builder = builder
        struct = context.make_array(kind)(context, builder, array)
        self.strides = cgutils.unpack_tuple(builder, struct.strides)
        self.base = builder.ptrtoint(struct.data, IR_INT64)

    def address(self, *index):
        at = self.base
        for i, stride in zip(index, self.strides, strict=True):
            at = self.builder.add(at, self.builder.mul(i, stride))
        return at

    def pointer(self, address, kind):
        return self.builder.inttoptr(address, kind.as_pointer())

    def load(self, address, kind, align=4):
        value = self.builder.load(self.pointer(address, kind))
        value.align = align
        return value

    def store(self, value, address):
        self.builder.store(value, self.pointer(address, value.type)).align = 4


def _counter(z_states: int):
    """counts[s, t, column] of LANES sites: one state s of y, `z_states` states t of z.

    left, planes: uint64 (rows, width). The plane of y's state starts at row i of left, that of z's
    first state at row j of planes, the next ones `depth` rows on; depth is a multiple of GROUP.
    """

    @intrinsic
    def count(typing_context, left, i, y, planes, j, depth, z, counts, s, column):
        n = types.int64
        signature = types.void(left, n, n, planes, n, n, n, counts, n, n)

        def codegen(context, builder, signature, arguments):
            left, i, y, array, j, depth, z, counts, s, column = arguments
            rows_y = RowsOfWords(context, builder, signature.args[0], left)
            rows = RowsOfWords(context, builder, signature.args[3], array)
            out = RowsOfWords(context, builder, signature.args[7], counts)
            stride_y, stride = rows_y.strides[0], rows.strides[0]
            address_y = rows_y.address(i, y)
            addresses = [
                rows.address(builder.add(j, builder.mul(depth, IR_INT64(t))), z)
                for t in range(z_states)
            ]
            streams = [WordStream(builder) for _ in range(z_states)]
            with cgutils.for_range_slice(builder, IR_INT64(0), depth, IR_INT64(GROUP)) as (word, _):
                found = [[] for _ in streams]
                for k in range(GROUP):
                    at = builder.add(word, IR_INT64(k))
                    offset = builder.mul(at, stride)
                    one = builder.add(address_y, builder.mul(at, stride_y))
                    one = rows_y.load(one, IR_INT64, 8)
                    a = splat(builder, one, _WORDS)
                    for vectors, address in zip(found, addresses, strict=True):
                        b = rows.load(builder.add(address, offset), _WORDS, 8)
                        vectors.append(builder.and_(a, b))
                for stream, vectors in zip(streams, found, strict=True):
                    stream.add_group(vectors)
            for t, stream in enumerate(streams):
                value = builder.trunc(stream.by_lane(), _HALF)
                out.store(value, out.address(s, IR_INT64(t), column))
            return context.get_dummy_value()

        return signature, codegen

    return count


def _filler(n_states: int):
    """The nine cells of (y, z) from the stored counts and the margins, for WIDE sites z.

    counts: int32 (n_states, n_states, block). of_y: samples with y in its two stored states and
    missing; margins[t, z]: those with z in state t; whole: all samples. With a missing state
    these include it, and it is taken off. cells[c, row + k]: the cells, states 0, 1 and the third
    a side; cells[c, 18 + k] = rest[r, q + k] less these.
    """

    @intrinsic
    def fill(typing_context, counts, column, of_y, margins, z, whole, rest, place, cells, row):
        n, two = types.int64, types.UniTuple(types.int64, 2)
        of_y = types.UniTuple(n, 3)
        signature = types.void(counts, n, of_y, margins, n, n, rest, two, cells, two)

        def codegen(context, builder, signature, arguments):
            counts, column, of_y, margins, z, whole, rest, place, cells, row = arguments
            (r, q), (c, row) = (cgutils.unpack_tuple(builder, one) for one in (place, row))
            stored = RowsOfWords(context, builder, signature.args[0], counts)
            margin = RowsOfWords(context, builder, signature.args[3], margins)
            before = RowsOfWords(context, builder, signature.args[6], rest)
            out = RowsOfWords(context, builder, signature.args[8], cells)

            def spread(value):
                return splat(builder, builder.trunc(value, _I32), COUNT_TYPE)

            def less(value, *others):
                for other in others:
                    value = builder.sub(value, other)
                return value

            states = range(n_states)
            n = [
                [
                    stored.load(stored.address(IR_INT64(s), IR_INT64(t), column), COUNT_TYPE)
                    for t in states
                ]
                for s in states
            ]
            of_z = [margin.load(margin.address(IR_INT64(t), z), COUNT_TYPE) for t in states]
            of_y = [spread(y) for y in cgutils.unpack_tuple(builder, of_y)]
            third_y = [less(of_y[s], *n[s]) for s in range(2)]
            third_z = [less(of_z[t], *(row[t] for row in n)) for t in range(2)]
            last = less(spread(whole), of_y[0], of_y[1], *third_z)
            if n_states == 3:
                # Taken off: y missing, and z missing while y is in its third state.
                last = less(last, of_y[2], less(of_z[2], *(row[2] for row in n)))
            found = [*n[0][:2], third_y[0], *n[1][:2], third_y[1], *third_z, last]
            for k, value in enumerate(found):
                out.store(value, out.address(c, builder.add(row, IR_INT64(k)), column))
                left = before.load(
                    before.address(r, builder.add(q, IR_INT64(k)), column), COUNT_TYPE
                )
                out.store(builder.sub(left, value), out.address(c, IR_INT64(18 + k), column))
            return context.get_dummy_value()

        return signature, codegen

    return fill


_count_two, _count_three = _counter(2), _counter(3)
_fill_two, _fill_three = _filler(2), _filler(3)


@numba.njit(nogil=True)
def count_row_of_state(left, i, y, planes, row0, depth, z0, width, z_states, counts, s):
    """counts[s, t, z - z0] of the plane in column y of left, from row i on; see `_counter`."""
    for z in range(0, width, LANES):
        if z_states == 2:
            _count_two(left, i, y, planes, row0, depth, z0 + z, counts, s, z)
        else:
            _count_three(left, i, y, planes, row0, depth, z0 + z, counts, s, z)


@numba.njit(nogil=True)
def count_states(planes, row0, depth, n_states, y, y_states, z0, width, z_states, counts):
    """counts[s, t, z - z0] = popcounts of y's state s and z's state t over `depth` words.

    counts: int32 (n_states, n_states, at least width); width is a multiple of LANES.
    """
    for s in range(n_states):
        for t in range(n_states):
            if s >= y_states or t >= z_states:
                counts[s, t, :width] = 0
    for s in range(y_states):
        i = row0 + s * depth
        count_row_of_state(planes, i, y, planes, row0, depth, z0, width, z_states, counts, s)


@numba.njit(nogil=True)
def fill_cells(counts, n_states, of_y, margins, z0, whole, rest, cells, width):
    """See `_filler`, for z in [z0, z0 + width)."""
    (rest, r, q), (cells, c, row) = rest, cells
    for z in range(0, width, WIDE):
        if n_states == 2:
            _fill_two(counts, z, of_y, margins, z0 + z, whole, rest, (r, q), cells, (c, row))
        else:
            _fill_three(counts, z, of_y, margins, z0 + z, whole, rest, (r, q), cells, (c, row))


def _multiply_add(builder, x, y, z):
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(FLOAT_TYPE, [FLOAT_TYPE] * 3), f"llvm.fmuladd.v{WIDE}f32"
    )
    return builder.call(function, [x, y, z])


def ir_constant(value, vector=FLOAT_TYPE):
    return ir.Constant(vector, [value] * WIDE)


def _log2(builder, z):
    """log2 of positive floats to about 2e-5; finite for 0.

    The bits of z, read as an integer, are 2**23 (127 + log2 z) up to a function of the mantissa.
    """
    bits = builder.bitcast(z, COUNT_TYPE)
    mantissa = builder.and_(bits, ir_constant(_MANTISSA, COUNT_TYPE))
    mantissa = builder.bitcast(
        builder.or_(mantissa, ir_constant(_ONE_BITS, COUNT_TYPE)), FLOAT_TYPE
    )
    highest, *others = [float(np.float32(value)) for value in _LOG_COEFFICIENTS[::-1]]
    rest = ir_constant(highest)
    for coefficient in others:
        rest = _multiply_add(builder, rest, mantissa, ir_constant(coefficient))
    line = builder.sitofp(builder.sub(bits, ir_constant(_ONE_BITS, COUNT_TYPE)), FLOAT_TYPE)
    return _multiply_add(builder, line, ir_constant(2.0**-23), rest)


@intrinsic
def _log2_of(typing_context, values, i, out):
    """out[i : i + WIDE] = the logarithms that `_sum_logs` computes of values[i : i + WIDE]."""
    signature = types.void(values, types.int64, out)

    def codegen(context, builder, signature, arguments):
        values, i, out = arguments
        source = RowsOfWords(context, builder, signature.args[0], values)
        target = RowsOfWords(context, builder, signature.args[2], out)
        target.store(_log2(builder, source.load(source.address(i), FLOAT_TYPE)), target.address(i))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _sum_logs(typing_context, cells, n_cells, z, beta_total, beta_part, sums, bounds):
    """bounds[z] = S of the table in cells[:, :n_cells, z], sums[c, z] = its samples of class c."""
    n, real = types.int64, types.float32
    signature = types.void(cells, n, n, real, real, sums, bounds)

    def codegen(context, builder, signature, arguments):
        cells, n_cells, z, beta_total, beta_part, sums, bounds = arguments
        rows = RowsOfWords(context, builder, signature.args[0], cells)
        out_sums = RowsOfWords(context, builder, signature.args[5], sums)
        out = RowsOfWords(context, builder, signature.args[6], bounds)
        starts = [rows.address(IR_INT64(c), IR_INT64(0), z) for c in range(2)]
        beta_total = splat(builder, beta_total, FLOAT_TYPE)
        beta_part = splat(builder, beta_part, FLOAT_TYPE)
        slots = [
            cgutils.alloca_once(builder, kind) for kind in (FLOAT_TYPE, COUNT_TYPE, COUNT_TYPE)
        ]
        for slot in slots:
            builder.store(ir.Constant(slot.type.pointee, None), slot)
        with cgutils.for_range(builder, n_cells) as loop:
            offset = builder.mul(loop.index, rows.strides[1])
            counts = [rows.load(builder.add(start, offset), COUNT_TYPE) for start in starts]
            for count, slot in zip(counts, slots[1:], strict=True):
                builder.store(builder.add(builder.load(slot), count), slot)
            total = builder.load(slots[0])
            whole = builder.sitofp(builder.add(*counts), FLOAT_TYPE)
            whole = builder.fadd(whole, beta_total)
            total = _multiply_add(builder, whole, _log2(builder, whole), total)
            for count in counts:
                part = builder.fadd(builder.sitofp(count, FLOAT_TYPE), beta_part)
                negative = builder.fsub(ir_constant(-0.0), part)
                total = _multiply_add(builder, negative, _log2(builder, part), total)
            builder.store(total, slots[0])
        out.store(builder.load(slots[0]), out.address(z))
        for c, slot in enumerate(slots[1:]):
            out_sums.store(builder.load(slot), out_sums.address(IR_INT64(c), z))
        return context.get_dummy_value()

    return signature, codegen


@numba.njit(nogil=True)
def sum_logs(cells, n_cells, beta_total, beta_part, sums, bounds, width):
    """See `_sum_logs`, for z in [0, width); of Gini (`GINI`) S is the sum of n0 n1 / n."""
    if beta_total == GINI:
        for z in range(width):
            sums[0, z] = sums[1, z] = 0
            bounds[z] = np.float32(0.0)
        for k in range(n_cells):
            for z in range(width):
                n0, n1 = cells[0, k, z], cells[1, k, z]
                sums[0, z] += n0
                sums[1, z] += n1
                held = np.float32(max(n0 + n1, np.int32(1)))
                bounds[z] += np.float32(n0) * np.float32(n1) / held
        for z in range(width):
            bounds[z] *= np.float32(1 - 2.0**-18)
        return
    for z in range(0, width, WIDE):
        _sum_logs(cells, n_cells, z, beta_total, beta_part, sums, bounds)


def _log2_all(values, out):
    for i in range(0, len(values), WIDE):
        _log2_of(values, i, out)


@functools.cache
def log2_kernel():
    floats = types.Array(types.float32, 1, "C")
    return numba.njit([types.void(floats, floats)], nogil=True, cache=True)(_log2_all)


class CostBound(NamedTuple):
    """Costs times `scale` are at least S - `slack` (module docstring); `scale` is log2 units."""

    beta_total: float
    beta_part: float
    scale: float
    slack: float


def cost_bound(total: np.ndarray, part: np.ndarray, n_cells: int) -> CostBound:
    """The bound for tables of `n_cells` cells and at most len(total) - 1 samples; or of Gini."""
    if not len(part):
        return CostBound(GINI, 0.0, 1 / float(total[0]), 1e-6)
    largest = len(total) - 1
    n = np.arange(largest + 1, dtype=np.float64)
    # The scale of the tables, a power of two, is guessed: a wrong guess makes the bound useless,
    # not wrong.
    ratio = float(total[-1]) / max(largest * np.log(max(largest, 2)), 1.0)
    scale = 2.0 ** -round(np.log2(ratio)) / np.log(2) if ratio > 0 else 1.0
    found = []
    for beta_total, beta_part, slope in BETAS:
        curves = [_z_log2_z(n, beta) for beta in (beta_total, beta_part)]
        gaps = [
            scale * table + slope * n - curve
            for table, curve in zip((total, part), curves, strict=True)
        ]
        below = _most(-gaps[0], n_cells) + _most(gaps[1], 2 * n_cells)
        above = _most(gaps[0], n_cells) + _most(-gaps[1], 2 * n_cells)
        size = _most(np.abs(curves[0]), n_cells) + _most(np.abs(curves[1]), 2 * n_cells)
        rounding = 1.01 * 3 * n_cells * 2.0**-24 * size
        found.append(
            (below + above, CostBound(beta_total, beta_part, scale, below + rounding + 1e-6))
        )
    return min(found)[1]


def _z_log2_z(n: np.ndarray, beta: float) -> np.ndarray:
    """The kernel's A(n), exactly, as float64."""
    z = np.zeros(-(-len(n) // WIDE) * WIDE, np.float32)
    z[: len(n)] = n.astype(np.float32) + np.float32(beta)
    logs = np.empty_like(z)
    log2_kernel()(z, logs)
    return (z.astype(np.float64) * logs)[: len(n)]


def _most(gap: np.ndarray, n_terms: int) -> float:
    """Upper bound of sum gap[n_k] over `n_terms` counts n_k >= 0 with sum at most len(gap) - 1.

    By lines: gap(n) <= u + v n for all n gives n_terms u + N v; the best of several u.
    """
    n = np.arange(1, len(gap), dtype=np.float64)
    best = np.inf
    for cut in (1, 4, 16, 64, 256, len(gap)):
        u = float(gap[:cut].max())
        v = max(0.0, float(((gap[1:] - u) / n).max(initial=0.0)))
        best = min(best, n_terms * u + (len(gap) - 1) * v)
    return best
