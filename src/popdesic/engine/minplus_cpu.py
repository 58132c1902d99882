"""min-plus micro-kernel for CPUs: a register tile of C against packed panels of A and B.

C[i, j] = min(C[i, j], min_k A[i, k] + B[k, j]). A tile of ROWS x VECTORS vectors of C stays in
registers while k runs; one step loads VECTORS vectors of B and broadcasts ROWS values of A, two
instructions (add, min) for each vector. Operands are packed a block at a time, A as (k, ROWS) and
B as (k, columns), so that every load is contiguous whatever their strides.

The sums of a given pair (i, j) are the same whatever the tile sizes and their minimum does not
depend on order, so results are identical for every thread count, floats included.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ..core.threads import run_tasks
from .minplus import Bounds, closure_panel, infinity
from .reordered import reordered

_FEATURES = binding.get_host_cpu_features()
_REGISTER_BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
#: Register tile: ROWS x VECTORS accumulators, VECTORS loads and one broadcast fit the registers.
ROWS = 8
VECTORS = 3 if _FEATURES.get("avx512f") else 1
#: k-depth of a panel: a B panel of DEPTH x VECTORS registers stays in the first-level cache.
DEPTH = 128
#: A task's block of C: BLOCK_ROWS x BLOCK_TILES register tiles, in the second-level cache together
#: with the packed rows of A; packing is paid once for BLOCK_TILES (A) or BLOCK_ROWS (B) uses.
BLOCK_ROWS = 128
BLOCK_TILES = 8

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def tile_columns(dtype) -> int:
    """Columns of the register tile for `dtype`."""
    return VECTORS * _REGISTER_BYTES // np.dtype(dtype).itemsize


@intrinsic
def _update_tile(typing_context, c, panel_a, panel_b, depth):
    """c (ROWS, columns) = min(c, panel_a (depth, ROWS) * panel_b (depth, columns)), contiguous."""
    signature = types.void(c, panel_a, panel_b, types.int64)

    def codegen(context, builder, signature, arguments):
        element = signature.args[0].dtype
        scalar = context.get_value_type(element)
        size = element.bitwidth // 8
        lanes = _REGISTER_BYTES // size
        vector = ir.VectorType(scalar, lanes)

        def address(array, array_type):
            struct = context.make_array(array_type)(context, builder, array)
            return builder.ptrtoint(struct.data, _I64)

        base_c, base_a, base_b = (
            address(array, kind)
            for array, kind in zip(arguments[:3], signature.args[:3], strict=True)
        )

        def pointer(base, offset, kind):
            return builder.inttoptr(builder.add(base, offset), kind.as_pointer())

        def load(base, offset, kind):
            value = builder.load(pointer(base, offset, kind))
            value.align = size
            return value

        def smaller(x, y):
            if isinstance(element, types.Integer):
                return builder.select(builder.icmp_signed("<", x, y), x, y)
            # `x < y ? x : y` is exactly what MINPS does; NaN never occurs in weights.
            return builder.select(builder.fcmp_ordered("<", x, y), x, y)

        add = builder.add if isinstance(element, types.Integer) else builder.fadd
        slots = [
            [cgutils.alloca_once(builder, vector) for _ in range(VECTORS)] for _ in range(ROWS)
        ]
        offsets = [
            [_I64((row * VECTORS + v) * _REGISTER_BYTES) for v in range(VECTORS)]
            for row in range(ROWS)
        ]
        for row in range(ROWS):
            for v in range(VECTORS):
                builder.store(load(base_c, offsets[row][v], vector), slots[row][v])
        undefined = ir.Constant(vector, ir.Undefined)
        lane_zeros = ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes)
        with cgutils.for_range(builder, arguments[3]) as loop:
            offset_b = builder.mul(loop.index, _I64(VECTORS * _REGISTER_BYTES))
            row_b = [
                load(base_b, builder.add(offset_b, _I64(v * _REGISTER_BYTES)), vector)
                for v in range(VECTORS)
            ]
            offset_a = builder.mul(loop.index, _I64(ROWS * size))
            for row in range(ROWS):
                value = load(base_a, builder.add(offset_a, _I64(row * size)), scalar)
                single = builder.insert_element(undefined, value, _I32(0))
                broadcast = builder.shuffle_vector(single, undefined, lane_zeros)
                for v in range(VECTORS):
                    candidate = add(broadcast, row_b[v])
                    builder.store(smaller(candidate, builder.load(slots[row][v])), slots[row][v])
        for row in range(ROWS):
            for v in range(VECTORS):
                stored = builder.store(
                    builder.load(slots[row][v]), pointer(base_c, offsets[row][v], vector)
                )
                stored.align = size
        return context.get_dummy_value()

    return signature, codegen


@numba.njit(nogil=True, cache=True)
def _pack_rows(a, row0, row1, k0, k1, infinity, packed):
    """packed[t, k, r] = a[row0 + t * ROWS + r, k0 + k]; rows beyond `row1` are infinite.

    A transposed operand is read along its memory: strides of powers of two would share one cache
    set otherwise.
    """
    if a.strides[0] < a.strides[1]:
        for k in range(k1 - k0):
            source = a[row0:row1, k0 + k]
            for t in range(packed.shape[0]):
                for r in range(ROWS):
                    row = t * ROWS + r
                    packed[t, k, r] = source[row] if row < row1 - row0 else infinity
        return
    for t in range(packed.shape[0]):
        for r in range(ROWS):
            row = row0 + t * ROWS + r
            if row < row1:
                source = a[row, k0:k1]
                for k in range(k1 - k0):
                    packed[t, k, r] = source[k]
            else:
                for k in range(k1 - k0):
                    packed[t, k, r] = infinity


@numba.njit(nogil=True, cache=True)
def _pack_columns(b, k0, k1, column0, infinity, packed):
    """packed[k, j] = b[k0 + k, column0 + j]; columns beyond the matrix are infinite."""
    width = min(packed.shape[1], b.shape[1] - column0)
    if b.strides[0] < b.strides[1]:
        for j in range(packed.shape[1]):
            if j < width:
                column = b[k0:k1, column0 + j]
                for k in range(k1 - k0):
                    packed[k, j] = column[k]
            else:
                for k in range(k1 - k0):
                    packed[k, j] = infinity
        return
    for k in range(k1 - k0):
        source = b[k0 + k, column0 : column0 + width]
        target = packed[k]
        for j in range(width):
            target[j] = source[j]
        for j in range(width, packed.shape[1]):
            target[j] = infinity


def _minplus_block(c, a, b, infinity, width, symmetric, runs, block_row, block_column):
    """c = min(c, a * b) in one block of BLOCK_ROWS x `width` (BLOCK_TILES tiles) of C.

    No entry has two writers. With `symmetric`, tiles that lie wholly below the diagonal are left
    as they are. Only those panels of DEPTH k are worked on for which `runs` is set.
    """
    m, n = c.shape
    depth = a.shape[1]
    columns = width // BLOCK_TILES
    row0, column0 = block_row * BLOCK_ROWS, block_column * width
    row1, column1 = min(m, row0 + BLOCK_ROWS), min(n, column0 + width)
    row_tiles = (row1 - row0 + ROWS - 1) // ROWS
    column_tiles = (column1 - column0 + columns - 1) // columns
    packed_a = np.empty((row_tiles, DEPTH, ROWS), c.dtype)
    packed_b = np.empty((DEPTH, columns), c.dtype)
    block = np.full((column_tiles, row_tiles, ROWS, columns), infinity, c.dtype)
    for run in range(runs.shape[0]):
        if not runs[run]:
            continue
        k0, k1 = run * DEPTH, min(depth, (run + 1) * DEPTH)
        _pack_rows(a, row0, row1, k0, k1, infinity, packed_a)
        for s in range(column_tiles):
            _pack_columns(b, k0, k1, column0 + s * columns, infinity, packed_b)
            for t in range(row_tiles):
                if symmetric and row0 + t * ROWS >= column0 + (s + 1) * columns:
                    break
                _update_tile(block[s, t], packed_a[t], packed_b, k1 - k0)
    for i in range(row0, row1):
        t, r = (i - row0) // ROWS, (i - row0) % ROWS
        for s in range(column_tiles):
            first = column0 + s * columns
            target, found = c[i, first : min(n, first + columns)], block[s, t, r]
            for j in range(target.shape[0]):
                target[j] = min(target[j], found[j])


@functools.cache
def block_kernel(dtype: np.dtype):
    """`_minplus_block` compiled for matrices of any strides: one compilation serves all callers."""
    scalar = numba.from_dtype(dtype)
    matrix, readable = types.Array(scalar, 2, "A"), types.Array(scalar, 2, "A", readonly=True)
    integer, flags = types.int64, types.Array(types.boolean, 1, "C")
    signature = types.void(
        matrix, readable, readable, scalar, integer, types.boolean, flags, integer, integer
    )
    return numba.njit([signature], nogil=True, cache=True)(_minplus_block)


#: Side of the blocks that mirroring works on: two of them fit the first-level cache.
MIRROR_BLOCK = 32


@numba.njit(nogil=True, cache=True)
def mirror_upper(c):
    """Copy the upper triangle of a square matrix onto the lower, block by block."""
    n = c.shape[0]
    for row0 in range(0, n, MIRROR_BLOCK):
        row1 = min(n, row0 + MIRROR_BLOCK)
        for column0 in range(0, row1, MIRROR_BLOCK):
            for i in range(row0, row1):
                for j in range(column0, min(column0 + MIRROR_BLOCK, i)):
                    c[i, j] = c[j, i]


@numba.njit(nogil=True, cache=True)
def floyd_warshall(w):
    """All-pairs shortest paths of a small symmetric block, in place (the recursion's base case)."""
    n = w.shape[0]
    for k in range(n):
        for i in range(n):
            via = w[i, k]
            for j in range(n):
                candidate = via + w[k, j]
                if candidate < w[i, j]:
                    w[i, j] = candidate


class CpuMinPlus:
    """(min, +) products on `threads` CPU threads (see `engine.minplus.MinPlus`)."""

    def __init__(self, threads: int):
        self.threads = threads

    def multiply(
        self,
        c: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        *,
        symmetric: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        if not (c.dtype == a.dtype == b.dtype):
            raise ValueError(f"minplus needs one dtype, got {c.dtype}, {a.dtype} and {b.dtype}")
        if 0 in (*c.shape, a.shape[1]):
            return
        height, width, _ = self.bound_tiles(c.dtype)
        limit = infinity(c.dtype)
        kernel = block_kernel(c.dtype)
        blocks = [
            (row, column)
            for row in range(-(-c.shape[0] // height))
            for column in range(-(-c.shape[1] // width))
            if not symmetric or row * height < (column + 1) * width
        ]
        every_run = np.ones(-(-a.shape[1] // DEPTH), bool)

        def work(row: int, column: int) -> int:
            runs = every_run
            if bounds is not None:
                floor = bounds.floor_a[:, row] + bounds.floor_b[:, column]
                runs = floor < bounds.ceiling[row, column]
                if not runs.any():
                    return len(runs)
            kernel(c, a, b, limit, width, symmetric, runs, row, column)
            return len(runs) - int(runs.sum())

        left_out = run_tasks(work, blocks, self.threads)
        if bounds is not None:
            bounds.skipped += sum(left_out) * height * width * DEPTH

    def bound_tiles(self, dtype: np.dtype) -> tuple[int, int, int]:
        columns = tile_columns(dtype) * BLOCK_TILES
        return BLOCK_ROWS, columns, DEPTH

    def tile_minima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        return _tile_extremes(x, height, width, np.minimum)

    def tile_maxima(self, x: np.ndarray, height: int, width: int) -> np.ndarray:
        return _tile_extremes(x, height, width, np.maximum)

    def mirror(self, w: np.ndarray) -> None:
        mirror_upper(w)

    def hold(self, w: np.ndarray, order: np.ndarray | None = None) -> np.ndarray:
        return w if order is None else reordered(w, order, self.threads)

    def spread_matrix(self, w: np.ndarray, order: np.ndarray) -> None:
        return None

    def panel(self, w: np.ndarray) -> int:
        return closure_panel(len(w))

    def fetch(self, held: np.ndarray, w: np.ndarray, order: np.ndarray | None = None) -> None:
        if order is not None:
            reordered(held, np.argsort(order), self.threads, w)
        elif held is not w:
            np.copyto(w, held)

    def transpose(self, source: np.ndarray, target: np.ndarray) -> None:
        target[...] = source.T

    def close_block(self, w: np.ndarray) -> None:
        mirror_upper(w)
        floyd_warshall(w)


def _tile_extremes(x: np.ndarray, height: int, width: int, extreme: np.ufunc) -> np.ndarray:
    columns = extreme.reduceat(x, np.arange(0, x.shape[1], width), axis=1)
    return extreme.reduceat(columns, np.arange(0, x.shape[0], height), axis=0)
