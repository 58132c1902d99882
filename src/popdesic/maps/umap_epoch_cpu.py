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
`layouts.force_positions`.

densMAP (Narayan, Berger and Cho 2021) adds, in its last epochs, the gradient of the correlation
between the logarithms re of local radii on the map and those of the samples, R:

    re_i = ln(1e-8 + sum of phi d2 / sum of phi), phi = 1 / (1 + a d2^b), over the edges of i
    w_i  = R_i - cov(re, R) (re_i - mean re) / s2,  s2 = var(re) + 0.1
    P_i  = w_i / sum of phi,  Q_i = P_i / exp(re_i)
    c    = strength / s [phi (1 - b (1 - phi)) (Q_i + Q_j)
                         + phi a b d2^(b - 1) / (1 + a d2^b) (P_i + P_j)]
    move of i = step * 2 * sum over edges (i, j) of clip(2 c (y_i - y_j))

umap-learn adds c over the share of an edge where the edge is active: in that share of the
epochs. Here every edge adds c in every epoch, clipped to its share of FARTHEST: nearly the same
mean, without the noise. Sums over edges and points are integers; the rest are single operations of
IEEE arithmetic on one point or edge.

Shapes: points int64 (n, 2); starts int64 (n + 1) and ends int64 (n_edges), the graph in rows;
shares int64 (n_edges). Loops: blocks of edges, then draws, then edges; one thread takes a range of
points.
Limits: coordinates stay within BOUND, so that d2 is below 2^62; n < 2^32.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from .layouts import (
    BOUND,
    FARTHEST,
    FORCE_BITS,
    INTERVAL_BITS,
    LEAST_RADIUS,
    PLACE_BITS,
    POINT_BITS,
    RADIUS_BITS,
    SHARE_BITS,
    SPREAD_BITS,
    STEP_BITS,
    TOP_BIT,
)

#: Edges whose forces are computed together.
BLOCK = 512
#: Units of a squared distance in one of a spread over a nearness.
RATIO_SCALE = 2.0 ** (2 * POINT_BITS + FORCE_BITS - SPREAD_BITS)
FORCE_UNIT, RADIUS_UNIT = 2.0**-FORCE_BITS, 2.0**-RADIUS_BITS
SQUARE_UNIT = 2.0 ** (-2 * POINT_BITS)


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
    place = np.uint64(place)  # no negative places, which numba would look for
    low = table[place]
    return low + (((table[place + np.uint64(1)] - low) * beyond) >> PLACE_BITS)


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


@intrinsic
def _block_space(typing_context):
    """Space for BLOCK numbers on the stack: stores to it cannot change what other loads read."""
    signature = types.CPointer(types.int64)()

    def codegen(context, builder, signature, arguments):
        return cgutils.alloca_once(builder, ir.IntType(64), BLOCK)

    return signature, codegen


def _move_points(points, moved, graph, forces, epoch, step, draws, seed, first, last):
    """Write to moved[first:last] where these points are after one epoch.

    points, moved: int64 (n, 2), units 2**-POINT_BITS; graph: starts, ends and shares of `Layout`,
    forces: its attraction and repulsion; step: units 2**-STEP_BITS; draws: points drawn per active
    edge.

    Active edges are gathered in blocks, and each loop over a block is compiled to vectors: its
    places have no sign, and it stores only on the stack.
    """
    (starts, ends, shares), (attraction, repulsion) = graph, forces
    n, zero, one = np.uint64(points.shape[0]), np.uint64(0), np.uint64(1)
    drawn_in_epoch = _mix(np.uint64(seed) ^ _mix(np.uint64(epoch)))
    heads, edges = carray(_block_space(), BLOCK), carray(_block_space(), BLOCK)
    sums_x, sums_y = carray(_block_space(), BLOCK), carray(_block_space(), BLOCK)
    numbers = carray(_block_space(), BLOCK)
    moved[first:last] = 0
    point, begin = first, starts[first]
    while begin < starts[last]:
        until, active = min(begin + BLOCK, starts[last]), 0
        while begin < until:
            for edge in range(begin, min(starts[point + 1], until)):
                heads[active], edges[active] = point, edge
                before, after = epoch * shares[edge], (epoch + 1) * shares[edge]
                active += (after >> SHARE_BITS) != (before >> SHARE_BITS)
            begin = min(starts[point + 1], until)
            point += begin == starts[point + 1]
        for k in range(active):
            i, j = np.uint64(heads[k]), np.uint64(ends[np.uint64(edges[k])])
            dx, dy = points[i, zero] - points[j, zero], points[i, one] - points[j, one]
            force = _force(attraction, max(dx * dx + dy * dy, 1))
            sums_x[k], sums_y[k] = -2 * _clip(force * dx), -2 * _clip(force * dy)
            numbers[k] = np.int64(_mix(drawn_in_epoch ^ np.uint64(edges[k])))
        for _ in range(draws):
            for k in range(active):
                number = _mix(np.uint64(numbers[k]))
                i, r = np.uint64(heads[k]), ((number >> np.uint64(32)) * n) >> np.uint64(32)
                dx, dy = points[i, zero] - points[r, zero], points[i, one] - points[r, one]
                force = _force(repulsion, max(dx * dx + dy * dy, 1))
                sums_x[k] += _clip(force * dx)
                sums_y[k] += _clip(force * dy)
                numbers[k] = np.int64(number)
        for k in range(active):
            moved[heads[k], 0] += sums_x[k]
            moved[heads[k], 1] += sums_y[k]
    half = 1 << (STEP_BITS - 1)
    for i in range(first, last):
        for axis in range(2):
            move = (moved[i, axis] * step + half) >> STEP_BITS
            moved[i, axis] = min(max(points[i, axis] + move, -BOUND), BOUND)


@functools.cache
def epoch_kernel():
    """`_move_points`, compiled once for all maps and kept in numba's cache on disk."""
    points = types.Array(types.int64, 2, "C")
    row, number = types.Array(types.int64, 1, "C"), types.int64
    signature = types.void(
        points, points, types.UniTuple(row, 3), types.UniTuple(row, 2), *[number] * 6
    )
    return numba.njit([signature], nogil=True, cache=True)(_move_points)


def _measure_radii(
    points, starts, ends, nearness, spread, logarithms, wanted, near, radii, logs, first, last
):  # fmt: skip
    """Sums of phi, radii and their logarithms of points first to last.

    near, radii, logs: int64 (n,), units of the tables and of squared distances.

    Returns
    -------
    int64 : sums of the logarithms, of their squares, and of their products with `wanted`
    """
    total = squares = products = 0
    for i in range(first, last):
        phi = wide = 0
        for edge in range(starts[i], starts[i + 1]):
            j = ends[edge]
            dx, dy = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1]
            squared = dx * dx + dy * dy
            if squared > 0:
                phi += _force(nearness, squared)
                wide += _force(spread, squared)
            else:
                phi += 1 << FORCE_BITS
        near[i] = phi
        radii[i] = LEAST_RADIUS
        if phi > 0:
            radii[i] += np.int64(np.float64(wide) / np.float64(phi) * RATIO_SCALE)
        logs[i] = _force(logarithms, radii[i])
        total += logs[i]
        squares += logs[i] * logs[i]
        products += logs[i] * wanted[i]
    return total, squares, products


def _weigh_radii(wanted, near, radii, logs, mean, slope, pulls, first, last):
    """P and Q of points first to last: pulls float64 (n, 2)."""
    for i in range(first, last):
        pulls[i, 0] = pulls[i, 1] = 0.0
        if near[i] > 0:
            weight = wanted[i] * RADIUS_UNIT - slope * (logs[i] * RADIUS_UNIT - mean)
            pulls[i, 0] = weight / (near[i] * FORCE_UNIT)
            pulls[i, 1] = pulls[i, 0] / (radii[i] * SQUARE_UNIT)


def _spread_points(
    points, moved, starts, ends, shares, by_radius, by_nearness, pulls, factor, step, first, last
):  # fmt: skip
    """Add the moves by the density term to moved[first:last]."""
    half = 1 << (STEP_BITS - 1)
    for i in range(first, last):
        sum_x = sum_y = 0
        for edge in range(starts[i], starts[i + 1]):
            j = ends[edge]
            dx, dy = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1]
            squared = dx * dx + dy * dy
            if squared > 0:
                radius = _force(by_radius, squared) * (pulls[i, 1] + pulls[j, 1])
                nearness = _force(by_nearness, squared) * (pulls[i, 0] + pulls[j, 0])
                force = factor * (radius + nearness)
                farthest = np.float64(shares[edge] * (FARTHEST >> SHARE_BITS))
                sum_x += 2 * np.int64(min(max(force * dx, -farthest), farthest))
                sum_y += 2 * np.int64(min(max(force * dy, -farthest), farthest))
        moved[i, 0] = min(max(moved[i, 0] + ((sum_x * step + half) >> STEP_BITS), -BOUND), BOUND)
        moved[i, 1] = min(max(moved[i, 1] + ((sum_y * step + half) >> STEP_BITS), -BOUND), BOUND)


@functools.cache
def density_kernels():
    """The three functions, compiled once for all maps and kept in numba's cache on disk."""
    points, pulls = types.Array(types.int64, 2, "C"), types.Array(types.float64, 2, "C")
    row, number, real = types.Array(types.int64, 1, "C"), types.int64, types.float64
    signatures = (
        types.UniTuple(number, 3)(points, *[row] * 9, number, number),
        types.void(row, row, row, row, real, real, pulls, number, number),
        types.void(points, points, *[row] * 5, pulls, real, number, number, number),
    )
    functions = (_measure_radii, _weigh_radii, _spread_points)
    return tuple(
        numba.njit([one], nogil=True, cache=True)(function)
        for one, function in zip(signatures, functions, strict=True)
    )
