"""One epoch of UMAP's layout: every point moves by the sum of its forces, in integers.

UMAP (McInnes, Healy and Melville 2018, section 4.2; the code is umap-learn's) visits the edges of
the neighbour graph one after the other, so that its result depends on their order. Here all points
move at once, from where they were when the epoch began. Coordinates, forces and random numbers are
integers: their sums do not depend on order, so that the bytes of a map are the same for any number
of threads, and a GPU can give the same ones.

    move of i = step * sum over active edges (i, j) of
                  [ -2 clip(A(d2) (y_i - y_j)) + sum over draws r of clip(R(d2) (y_i - y_r)) ]
    A(d2) = 2 a b d2^(b - 1) / (1 + a d2^b)          attraction, twice: i as head and as tail of j
    R(d2) = 2 b / ((0.001 + d2) (1 + a d2^b))        repulsion from points that are drawn

clip limits each coordinate to FARTHEST. An edge of share s (its weight over the largest one) is
active in epoch t if floor((t + 1) s) > floor(t s). A and R are tables over d2: see
`force_positions`.

Shapes: points int64 (n, 2); starts int64 (n + 1) and ends int64 (n_edges), the graph in rows;
shares int64 (n_edges). Loops: points, then edges, then draws; one thread takes a range of points.
Limits: coordinates stay within BOUND, so that d2 is below 2^62; n < 2^32.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Fractional bits of coordinates, of the tables' forces, of shares of edges and of steps.
POINT_BITS, FORCE_BITS, SHARE_BITS, STEP_BITS = 20, 24, 20, 16
#: Intervals of a table between two powers of two (their bits), and bits of a place in one.
INTERVAL_BITS, PLACE_BITS = 5, 16
#: Largest force in one coordinate, as in umap-learn, and largest coordinate.
FARTHEST, BOUND = 4 << POINT_BITS, 1 << 29
#: Highest bit of a squared distance.
TOP_BIT = 62


def force_positions() -> np.ndarray:
    """Squared distances at which the tables of forces hold values, in units of the map.

    float64 (TOP_BIT * 2**INTERVAL_BITS + 1,); between them the kernel interpolates.
    """
    steps = 1 + np.arange(1 << INTERVAL_BITS) / (1 << INTERVAL_BITS)
    found = steps * 2.0 ** np.arange(TOP_BIT)[:, None]
    return np.append(found.ravel(), 2.0**TOP_BIT) * 2.0 ** (-2 * POINT_BITS)


@intrinsic
def _leading_zeros(typing_context, value):
    signature = types.int64(types.int64)

    def codegen(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, codegen


@numba.njit(nogil=True)
def _force(table, squared):
    """Value of a table of forces at a squared distance of at least 1, interpolated."""
    top = 63 - _leading_zeros(squared)
    digits = squared << (TOP_BIT - top)
    place = top << INTERVAL_BITS
    place += (digits >> (TOP_BIT - INTERVAL_BITS)) & ((1 << INTERVAL_BITS) - 1)
    beyond = (digits >> (TOP_BIT - INTERVAL_BITS - PLACE_BITS)) & ((1 << PLACE_BITS) - 1)
    low = table[place]
    return low + (((table[place + 1] - low) * beyond) >> PLACE_BITS)


@numba.njit(nogil=True)
def _clip(product):
    """Force times difference in units of the map, rounded towards 0: both ends feel the same."""
    negative = product >> 63
    value = (product + (negative & ((1 << FORCE_BITS) - 1))) >> FORCE_BITS
    return min(max(value, -FARTHEST), FARTHEST)


@numba.njit(nogil=True)
def _mix(value):
    """A random number that depends on its counter alone (SplitMix64: Steele et al. 2014)."""
    value += np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _move_points(
    points, moved, starts, ends, shares, attraction, repulsion, epoch, step, draws, seed,
    first, last,
):  # fmt: skip
    """Write to moved[first:last] where these points are after one epoch.

    points, moved: int64 (n, 2), units 2**-POINT_BITS; shares: units 2**-SHARE_BITS; attraction and
    repulsion: units 2**-FORCE_BITS; step: units 2**-STEP_BITS; draws: points drawn per active edge.
    """
    n = np.uint64(points.shape[0])
    drawn_in_epoch = _mix(np.uint64(seed) ^ _mix(np.uint64(epoch)))
    for i in range(first, last):
        x, y = points[i, 0], points[i, 1]
        sum_x = sum_y = 0
        for edge in range(starts[i], starts[i + 1]):
            share = shares[edge]
            if ((epoch + 1) * share) >> SHARE_BITS == (epoch * share) >> SHARE_BITS:
                continue
            j = ends[edge]
            dx, dy = x - points[j, 0], y - points[j, 1]
            squared = dx * dx + dy * dy
            if squared > 0:
                force = _force(attraction, squared)
                sum_x -= 2 * _clip(force * dx)
                sum_y -= 2 * _clip(force * dy)
            number = _mix(drawn_in_epoch ^ np.uint64(edge))
            for _ in range(draws):
                number = _mix(number)
                r = np.int64(((number >> np.uint64(32)) * n) >> np.uint64(32))
                dx, dy = x - points[r, 0], y - points[r, 1]
                squared = dx * dx + dy * dy
                if squared > 0:
                    force = _force(repulsion, squared)
                    sum_x += _clip(force * dx)
                    sum_y += _clip(force * dy)
        half = 1 << (STEP_BITS - 1)
        moved[i, 0] = min(max(x + ((sum_x * step + half) >> STEP_BITS), -BOUND), BOUND)
        moved[i, 1] = min(max(y + ((sum_y * step + half) >> STEP_BITS), -BOUND), BOUND)


@functools.cache
def epoch_kernel():
    """`_move_points`, compiled once for all maps and kept in numba's cache on disk."""
    points = types.Array(types.int64, 2, "C")
    row, number = types.Array(types.int64, 1, "C"), types.int64
    signature = types.void(points, points, row, row, row, row, row, *[number] * 6)
    return numba.njit([signature], nogil=True, cache=True)(_move_points)
