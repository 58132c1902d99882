"""Vector code of bound 2 of an interaction: Kirkwood's product of a table's margins, in float32.

With q the product of `interaction_cpu`, in BOOST's form with one normaliser for all cells,

    LR / 2 <= alternating sum of the margins' information + n ln(sum q / n),

and ln x <= x - 1, so that sum q - n may stand for the last term: no logarithm. Lanes are
consecutive sites, as in `epistasis_cells`. A table costs 75 cycles, so that all tables of a block
are bounded at once where many pass the first filter, as under population structure.

Rounding. q is a sum of at most 54 products of at most 8 factors, all positive, each rounded at most
twice; the relative error is below 80 * 2**-24 < `RELATIVE_ERROR`.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from .cells_cpu import COUNT_TYPE, FLOAT_TYPE, IR_INT64, WIDE, RowsOfWords, ir_constant, splat

RELATIVE_ERROR = 2.0**-17


def _sums_of(order: int):
    @intrinsic
    def product_sums(typing_context, cells, z, factor0, factor1, out):
        """out[z] = sum q of the tables in cells[:, :3**order, z], one vector of lanes."""
        real = types.float32
        signature = types.void(cells, types.int64, real, real, out)

        def codegen(context, builder, signature, arguments):
            cells, z, *factors, out = arguments
            rows = RowsOfWords(context, builder, signature.args[0], cells)
            target = RowsOfWords(context, builder, signature.args[4], out)
            totals = _totals(builder, _counts(builder, rows, z), order)
            factors = [splat(builder, factor, FLOAT_TYPE) for factor in factors]
            parts = map(builder.fmul, totals, factors)
            target.store(builder.fadd(*parts), target.address(z))
            return context.get_dummy_value()

        return signature, codegen

    def _counts(builder, rows, z):
        """(class, states of the sites) -> counts."""
        found = {}
        for c in range(2):
            start = rows.address(IR_INT64(c), IR_INT64(0), z)
            for k in range(3**order):
                at = builder.add(start, builder.mul(IR_INT64(k), rows.strides[1]))
                states = tuple(k // 3**place % 3 for place in reversed(range(order)))
                found[c, states] = rows.load(at, COUNT_TYPE)
        return found

    return product_sums


def _totals(builder, counts, order: int):
    """Of each class, the sum over cells of people times the product of the margins' shares."""
    sites = range(order)

    def margin(group):
        """(class, states of the sites of a group) -> counts."""
        found = {}
        for (c, states), count in counts.items():
            key = c, tuple(states[site] for site in group)
            found[key] = builder.add(found[key], count) if key in found else count
        return found

    one = ir_constant(1.0)

    def real(count):
        return builder.sitofp(count, FLOAT_TYPE)

    def positive(value):
        """At least 1: what is divided by 0 is multiplied with 0 later."""
        return builder.select(builder.fcmp_ordered("<", value, one), one, value)

    def shares(group, inverse: bool):
        """Shares of the classes in each cell of a margin, or one over them."""
        found = {}
        table = margin(group)
        for states in {states for _, states in table}:
            parts = [real(table[c, states]) for c in range(2)]
            whole = builder.fadd(*parts)
            over = builder.fdiv(one, positive(whole))
            for c, part in enumerate(parts):
                if inverse:
                    found[c, states] = builder.fdiv(whole, positive(part))
                else:
                    found[c, states] = builder.fmul(part, over)
        return found

    if order == 2:
        largest = {(site,): shares((site,), inverse=False) for site in sites}
    else:
        single = [shares((site,), inverse=True) for site in sites]
        largest = {group: shares(group, inverse=False) for group in ((0, 1), (0, 2), (1, 2))}
        # the divisors are multiplied into the pairs: of sites 0 and 1 into (0, 1), of 2 into (0, 2)
        for group, divided in (((0, 1), (0, 1)), ((0, 2), (2,))):
            for (c, states), value in largest[group].items():
                for site in divided:
                    state = (states[group.index(site)],)
                    value = builder.fmul(value, single[site][c, state])
                largest[group][c, states] = value
    totals = []
    for c in range(2):
        total = ir_constant(0.0)
        for states in sorted({states for _, states in counts}):
            value = real(builder.add(counts[0, states], counts[1, states]))
            for group, table in largest.items():
                value = builder.fmul(value, table[c, tuple(states[site] for site in group)])
            total = builder.fadd(total, value)
        totals.append(total)
    return totals


_sums_of_pairs, _sums_of_triples = _sums_of(2), _sums_of(3)


@numba.njit(nogil=True)
def product_sums(cells, order, n0, n1, out, width):
    """out[z] = sum q of the tables of lanes [0, width), to `RELATIVE_ERROR`.

    Parameters
    ----------
    cells : int32 array, (2, at least 3**order, at least width)
        The first site's state varies slowest; nobody is missing.
    n0, n1 : int
        Samples of the classes, positive.
    out : float32 array, (at least width,)
    """
    n = np.float32(n0 + n1)
    for z in range(0, width, WIDE):
        if order == 2:
            _sums_of_pairs(cells, z, n / np.float32(n0), n / np.float32(n1), out)
        else:
            _sums_of_triples(cells, z, np.float32(n0) / n, np.float32(n1) / n, out)
