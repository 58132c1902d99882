"""bit-GEMM micro-kernels for CPUs: carry-save population counts over tiles of samples.

Five forms of counts of a pair of samples are compiled, each in one pass over the planes it reads,
and named by the number of its counts:

===== ======= ==================================================================================
form  planes  counts
===== ======= ==================================================================================
2     u, v    sites with |a-b| = 1, with |a-b| = 2
3     u, v, c the same over jointly called sites, and those sites
5     u, v, c these three, then jointly called sites at which a, at which b is heterozygous
4     u, v, c jointly called sites with a >= 1, a = 2, b >= 1, b = 2
1     any one popcount(a & b), for terms that none of these make up
===== ======= ==================================================================================

With p = u ^ u' and q = v ^ v', |a-b| = 1 where p ^ q and |a-b| = 2 where p & q (the 2-bit XOR form
of the genome-distance work: two counted streams where the AND form has three products).

Most CPUs have no vector popcount, so a stream is first reduced by carry-save adders (Harley-Seal):
2**LEVELS vectors become one vector of weight 2**LEVELS with two logic instructions a vector, and
only that one is counted. The body is written as LLVM IR because neither the three-input logic
(VPTERNLOG) nor keeping LEVELS counters a stream in registers can be left to the auto-vectoriser.

Loops: pairs of sample tiles are shared among threads (`core.threads`); within one, TILE rows of
B times BLOCK_WORDS stay in the second-level cache and ROWS_IN_L1 rows of A in the first. All counts
are exact; a lane's counter is 64 bits wide, so no length overflows.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_FEATURES = binding.get_host_cpu_features()
#: 64-bit lanes of one vector register.
LANES = 8 if _FEATURES.get("avx512f") else 4 if _FEATURES.get("avx2") else 2
#: Carry-save levels; none where the CPU counts a whole vector in one instruction. Measured with
#: tests/bench/bench_distance.py: more levels count less often, but their counters spill.
LEVELS = 0 if _FEATURES.get("avx512vpopcntdq") else 2
#: Samples per side of one tile, words of one pass, rows of A that share the first-level cache.
TILE = 64
BLOCK_WORDS = 512
ROWS_IN_L1 = 4

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_I64, LANES)
_ZERO = ir.Constant(_VECTOR, [0] * LANES)
# Truth tables of three-input functions, as VPTERNLOG numbers them.
_XOR3, _MAJORITY, _AND3 = 0x96, 0xE8, 0x80
_XOR_THEN_AND = 0x28  # (x ^ y) & z
_AND_OF_XOR = 0x60  # x & (y ^ z)


def _ternary(builder, x, y, z, table: int):
    """One three-input boolean function, a single instruction where AVX-512 is there."""
    if _FEATURES.get("avx512f"):
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_VECTOR, [_VECTOR] * 3 + [_I32]),
            "llvm.x86.avx512.pternlog.q.512",
        )
        return builder.call(function, [x, y, z, _I32(table)])
    x_xor_y = builder.xor(x, y)
    return {
        _XOR3: lambda: builder.xor(x_xor_y, z),
        _MAJORITY: lambda: builder.or_(builder.and_(x, y), builder.and_(x_xor_y, z)),
        _XOR_THEN_AND: lambda: builder.and_(x_xor_y, z),
        _AND_OF_XOR: lambda: builder.and_(x, builder.xor(y, z)),
        _AND3: lambda: builder.and_(builder.and_(x, y), z),
    }[table]()


def _popcount(builder, x):
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.ctpop.v{LANES}i64"
    )
    return builder.call(function, [x])


def _times_power_of_two(builder, x, power: int):
    return builder.shl(x, ir.Constant(_VECTOR, [power] * LANES)) if power else x


class WordStream:
    """Counts the set bits of a stream of vectors: LEVELS carry-save counters and a total."""

    def __init__(self, builder):
        self.builder = builder
        # Entry-block slots that LLVM promotes to registers.
        self.total = cgutils.alloca_once(builder, _VECTOR)
        self.counters = [cgutils.alloca_once(builder, _VECTOR) for _ in range(LEVELS)]
        for slot in (self.total, *self.counters):
            builder.store(_ZERO, slot)

    def add_group(self, vectors):
        """Add 2**LEVELS vectors: two of one weight and the counter make one of twice the weight."""
        builder = self.builder
        for slot in self.counters:
            counter = builder.load(slot)
            carries = []
            for x, y in zip(vectors[::2], vectors[1::2], strict=True):
                carries.append(_ternary(builder, counter, x, y, _MAJORITY))
                counter = _ternary(builder, counter, x, y, _XOR3)
            builder.store(counter, slot)
            vectors = carries
        (vector,) = vectors
        counted = _times_power_of_two(builder, _popcount(builder, vector), LEVELS)
        builder.store(builder.add(builder.load(self.total), counted), self.total)

    def add_one(self, vector):
        builder = self.builder
        builder.store(builder.add(builder.load(self.total), _popcount(builder, vector)), self.total)

    def by_lane(self):
        """The counts of each lane as a vector."""
        builder = self.builder
        total = builder.load(self.total)
        for level, slot in enumerate(self.counters):
            ones = _popcount(builder, builder.load(slot))
            total = builder.add(total, _times_power_of_two(builder, ones, level))
        return total

    def result(self):
        builder, total = self.builder, self.by_lane()
        lanes = [builder.extract_element(total, _I32(lane)) for lane in range(LANES)]
        while len(lanes) > 1:
            lanes = [builder.add(x, y) for x, y in zip(lanes[::2], lanes[1::2], strict=True)]
        return lanes[0]


def _difference_streams(builder, a, b):
    (u, v), (u2, v2) = a, b
    p = builder.xor(u, u2)  # and q = v ^ v2 inside both of these
    return [_ternary(builder, p, v, v2, _XOR3), _ternary(builder, p, v, v2, _AND_OF_XOR)]


def _masked_streams(builder, a, b):
    (u, v, c), (u2, v2, c2) = a, b
    p, q, called = builder.xor(u, u2), builder.xor(v, v2), builder.and_(c, c2)
    return [
        _ternary(builder, p, q, called, _XOR_THEN_AND),
        _ternary(builder, p, q, called, _AND3),
        called,
    ]


def _product_streams(builder, a, b):
    return [builder.and_(a[0], b[0])]


def _heterozygous_streams(builder, a, b):
    (u, v, c), (u2, v2, c2) = a, b
    called = builder.and_(c, c2)
    het, het2 = builder.xor(u, v), builder.xor(u2, v2)
    return [
        _ternary(builder, het, het2, called, _XOR_THEN_AND),
        _ternary(builder, builder.xor(u, u2), builder.xor(v, v2), called, _AND3),
        called,
        builder.and_(het, called),
        builder.and_(het2, called),
    ]


def _margin_streams(builder, a, b):
    called = builder.and_(a[2], b[2])
    return [builder.and_(plane, called) for plane in (*a[:2], *b[:2])]


#: By form: how many planes a pair is read from, and which streams are counted.
_STREAMS = {
    1: (1, _product_streams),
    2: (2, _difference_streams),
    3: (3, _masked_streams),
    4: (3, _margin_streams),
    5: (3, _heterozygous_streams),
}


@intrinsic
def _count_pair(typing_context, a, i, b, j, planes, first, last):
    """Counts of one pair of samples: as many integers as `planes` has entries.

    a, b: uint64 arrays (n_samples, n_planes, n_words), contiguous in words. planes: a tuple whose
    length is the form, and whose first entries are the plane indices to read. first, last: bounds
    of the words, a multiple of LANES apart.
    """
    integer = types.int64
    signature = types.UniTuple(integer, planes.count)(
        a, integer, b, integer, planes, integer, integer
    )
    n_read, streams = _STREAMS[planes.count]

    def codegen(context, builder, signature, arguments):
        array_a, row_a, array_b, row_b, planes, first, last = arguments
        planes = cgutils.unpack_tuple(builder, planes)

        def plane_addresses(array, array_type, row):
            struct = context.make_array(array_type)(context, builder, array)
            row_stride, plane_stride, _ = cgutils.unpack_tuple(builder, struct.strides)
            base = builder.ptrtoint(struct.data, _I64)
            base = builder.add(base, builder.mul(row, row_stride))
            return [builder.add(base, builder.mul(p, plane_stride)) for p in planes[:n_read]]

        addresses_a = plane_addresses(array_a, signature.args[0], row_a)
        addresses_b = plane_addresses(array_b, signature.args[2], row_b)

        def load(address, word, vector):
            offset = builder.shl(builder.add(word, _I64(vector * LANES)), _I64(3))
            pointer = builder.inttoptr(builder.add(address, offset), _VECTOR.as_pointer())
            value = builder.load(pointer)
            value.align = 8  # alignment to the vector makes it fast, not correct
            return value

        def streams_at(word, vector):
            return streams(
                builder,
                [load(address, word, vector) for address in addresses_a],
                [load(address, word, vector) for address in addresses_b],
            )

        counters = [WordStream(builder) for _ in planes]
        step = _I64(2**LEVELS * LANES)
        groups = builder.sdiv(builder.sub(last, first), step)
        groups_end = builder.add(first, builder.mul(groups, step))
        with cgutils.for_range_slice(builder, first, groups_end, step) as (word, _):
            vectors = [streams_at(word, vector) for vector in range(2**LEVELS)]
            for index, counter in enumerate(counters):
                counter.add_group([vector[index] for vector in vectors])
        with cgutils.for_range_slice(builder, groups_end, last, _I64(LANES)) as (word, _):
            for counter, vector in zip(counters, streams_at(word, 0), strict=True):
                counter.add_one(vector)
        return context.make_tuple(
            builder, signature.return_type, [counter.result() for counter in counters]
        )

    return signature, codegen


def _accumulate_tile(a, b, planes, coefficients, mirrored, same, out, tile_row, tile_column):
    """out[o, i, j] += sum_s coefficients[o, s] * count_s(a[i], b[j]) over one tile of pairs.

    tile_row, tile_column: indices of blocks of TILE samples of a and b. same: a is b, so that only
    pairs i <= j are counted, and `mirrored` holds the coefficients of the same counts for
    out[j, i]. Each entry of `out` belongs to one tile, so threads never meet.
    """
    n_words = a.shape[2]
    n_outputs, n_counts = coefficients.shape
    row0, column0 = tile_row * TILE, tile_column * TILE
    row1, column1 = min(a.shape[0], row0 + TILE), min(b.shape[0], column0 + TILE)
    counts = np.zeros((n_counts, TILE, TILE), np.int64)
    for first in range(0, n_words, BLOCK_WORDS):
        last = min(n_words, first + BLOCK_WORDS)
        for rows in range(row0, row1, ROWS_IN_L1):
            for j in range(rows if same and rows > column0 else column0, column1):
                for i in range(rows, min(rows + ROWS_IN_L1, row1, j + 1 if same else row1)):
                    found = _count_pair(a, i, b, j, planes, first, last)
                    for s in range(n_counts):
                        counts[s, i - row0, j - column0] += found[s]
    for o in range(n_outputs):
        for s in range(n_counts):
            factor, below = coefficients[o, s], mirrored[o, s]
            if factor == 0 and below == 0:
                continue
            for i in range(row0, row1):
                for j in range(i if same and i > column0 else column0, column1):
                    out[o, i, j] += factor * counts[s, i - row0, j - column0]
                if same:
                    for j in range(max(i + 1, column0), column1):
                        out[o, j, i] += below * counts[s, i - row0, j - column0]


@functools.cache
def tile_kernel(form: int):
    """`_accumulate_tile` compiled for arrays of any layout: one compilation serves all callers."""
    words = types.Array(types.uint64, 3, "A", readonly=True)
    integer, planes = types.int64, types.UniTuple(types.int64, form)
    counts, matrices = types.Array(integer, 2, "C"), types.Array(integer, 3, "A")
    signature = types.void(
        words, words, planes, counts, counts, types.boolean, matrices, integer, integer
    )
    return numba.njit([signature], nogil=True, cache=True)(_accumulate_tile)
