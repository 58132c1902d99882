"""Vector code of scans of several phenotypes: the sum S of `epistasis_cells` in two parts.

The logarithms of the controls' cells are summed once for all phenotypes that have these controls.
Each phenotype adds those of its cases and of the whole cells. These are the additions of
`epistasis_cells.sum_logs` in another order, so that its bound of their rounding holds.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .epistasis_cells import (
    _COUNTS,
    _FLOATS,
    _I64,
    WIDE,
    _constant,
    _log2,
    _multiply_add,
    _Rows,
    _splat,
)


def _less(builder, total, count, beta):
    """`total` less A(count + beta) of the module's docstring."""
    part = builder.fadd(builder.sitofp(count, _FLOATS), beta)
    negative = builder.fsub(_constant(-0.0), part)
    return _multiply_add(builder, negative, _log2(builder, part), total)


def _summer(of_cases: bool):
    """One vector of lanes of `logs_of_controls`, or of `add_logs`."""

    @intrinsic
    def sums_of(typing_context, cells, n_cells, z, beta_total, beta_part, before, sums, out):
        n, real = types.int64, types.float32
        signature = types.void(cells, n, n, real, real, before, sums, out)

        def codegen(context, builder, signature, arguments):
            cells, n_cells, z, beta_total, beta_part, before, sums, out = arguments
            kinds = signature.args
            rows = _Rows(context, builder, kinds[0], cells)
            start = _Rows(context, builder, kinds[5], before)
            out_sums = _Rows(context, builder, kinds[6], sums)
            target = _Rows(context, builder, kinds[7], out)
            starts = [rows.address(_I64(c), _I64(0), z) for c in range(2)]
            betas = [_splat(builder, beta, _FLOATS) for beta in (beta_total, beta_part)]
            slots = [cgutils.alloca_once(builder, kind) for kind in (_FLOATS, _COUNTS)]
            for slot in slots:
                builder.store(ir.Constant(slot.type.pointee, None), slot)
            if of_cases:
                builder.store(start.load(start.address(z), _FLOATS), slots[0])
            with cgutils.for_range(builder, n_cells) as loop:
                offset = builder.mul(loop.index, rows.strides[1])
                total = builder.load(slots[0])
                count = rows.load(builder.add(starts[of_cases], offset), _COUNTS)
                if of_cases:
                    controls = rows.load(builder.add(starts[0], offset), _COUNTS)
                    whole = builder.sitofp(builder.add(controls, count), _FLOATS)
                    whole = builder.fadd(whole, betas[0])
                    total = _multiply_add(builder, whole, _log2(builder, whole), total)
                builder.store(_less(builder, total, count, betas[1]), slots[0])
                builder.store(builder.add(builder.load(slots[1]), count), slots[1])
            target.store(builder.load(slots[0]), target.address(z))
            out_sums.store(builder.load(slots[1]), out_sums.address(_I64(int(of_cases)), z))
            return context.get_dummy_value()

        return signature, codegen

    return sums_of


_of_controls, _of_cases = _summer(False), _summer(True)


@numba.njit(nogil=True)
def logs_of_controls(cells, n_cells, beta_part, sums, out, width):
    """out[z] = the part of S of the cells of controls, cells[0]; sums[0, z] = their number."""
    for z in range(0, width, WIDE):
        _of_controls(cells, n_cells, z, np.float32(0.0), beta_part, out, sums, out)


@numba.njit(nogil=True)
def add_logs(cells, n_cells, beta_total, beta_part, of_controls, sums, bounds, width):
    """bounds[z] = S of the table in cells[:2], from `logs_of_controls`; sums[1, z] = its cases."""
    for z in range(0, width, WIDE):
        _of_cases(cells, n_cells, z, beta_total, beta_part, of_controls, sums, bounds)
