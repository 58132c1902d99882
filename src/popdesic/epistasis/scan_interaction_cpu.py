"""Hits of scans by interaction: the filter by mutual information, and the fit of what passes.

A table passes where I(g; c) - I(S; c) reaches the worst hit kept, S the best margin of one site
fewer (bound 1 of `epistasis.interaction_cpu`): first by float32 logarithms, as for other scores,
then exactly. Without missing genotypes I(S; c) is looked up, once per site or pair of sites; with
them it is computed from the table's own cells. What passes is fitted at once, so that the worst
hit kept is up to date.
"""

from __future__ import annotations

import numba
import numpy as np

from .hits_cpu import combination_key, exact_cost, offer, permitted, too_near
from .interaction_cpu import UNIT_BITS, fixed_cost, half_statistic, least_of, margins_of
from .products_cpu import RELATIVE_ERROR, product_sums

#: Tables of a block that pass the first filter, from which on the second bounds the whole block.
MANY = 4


@numba.njit(nogil=True)
def _of_margin(cells, z, far, near, step, part, whole):
    """I of the margin over `step` in lane z: cells far * a + near * b + step * {0, 1, 2}."""
    cost = np.int64(0)
    for a in range(3 if far else 1):
        for b in range(3):
            at = far * a + near * b
            n0 = cells[0, at, z] + cells[0, at + step, z] + cells[0, at + 2 * step, z]
            n1 = cells[1, at, z] + cells[1, at + step, z] + cells[1, at + 2 * step, z]
            cost += part[n0 + n1] - part[n0] - part[n1]
    return whole - cost


@numba.njit(nogil=True)
def _of_sites(cells, order, z, part, whole):
    """The sum of I(site; c) over the sites of the table in lane z."""
    cost, n_cells = np.int64(0), 9 if order == 2 else 27
    step = n_cells // 3
    for _ in range(order):
        for state in range(3):
            n0, n1 = np.int64(0), np.int64(0)
            for k in range(n_cells // 3):
                at = (k // step * 3 + state) * step + k % step
                n0 += cells[0, at, z]
                n1 += cells[1, at, z]
            cost += part[n0 + n1] - part[n0] - part[n1]
        step //= 3
    return order * whole - cost


@numba.njit(nogil=True)
def of_margins(cells, order, z, part, whole, enough):
    """I of the margins of one site fewer: the largest, and the sum over them.

    The sum less that over margins of two sites fewer, if there are any (see `product_excess`). It
    is not finished once the largest is at least `enough`. cells: int32 (2, at least 3**order,
    lanes), of lane z; `whole`: as `shift` below.
    """
    if order == 2:
        first = _of_margin(cells, z, 0, 3, 1, part, whole)
        second = _of_margin(cells, z, 0, 1, 3, part, whole)
        return max(first, second), first + second
    best = total = _of_margin(cells, z, 9, 3, 1, part, whole)
    for far, near, step in ((9, 1, 3), (3, 1, 9)):
        if best >= enough:
            return best, total
        one = _of_margin(cells, z, far, near, step, part, whole)
        best, total = max(best, one), total + one
    return best, total - _of_sites(cells, 3, z, part, whole)


@numba.njit(nogil=True)
def product_excess(counts, order):
    """N ln(sum q / N), q Kirkwood's product of the margins, n in all: in nats.

    BOOST's form of bound 2, with one normaliser for all cells, is this and the alternating sum
    I(g; c) - sum I(pairs; c) + sum I(sites; c), of pairs I(g; c) - sum I(sites; c): sums of n ln n
    that are known. It costs a sixth of `half_statistic`'s first bound, without logarithms.
    counts: float64 (2, at least 3**order), both classes present. Error below N 2**-46 nats.
    """
    n_cells = 9 if order == 2 else 27
    margin = margins_of(counts, order)
    whole0, whole1 = counts[0, :n_cells].sum(), counts[1, :n_cells].sum()
    n = whole0 + whole1
    for i in range(2 if order == 2 else 6):
        # shares of the classes in a cell: of the largest margins factors, of the next ones divisors
        for cell in range(3 if i < 3 else 9):
            size = margin[i, cell, 0] + margin[i, cell, 1]
            for c in range(2):
                if margin[i, cell, c] > 0.0:
                    share = margin[i, cell, c] / size
                    margin[i, cell, c] = share if i >= 3 or order == 2 else 1.0 / share
    total = 0.0
    for k in range(n_cells):
        size = counts[0, k] + counts[1, k]
        if order == 2:
            a, b = k // 3, k % 3
            q0 = margin[0, a, 0] * margin[1, b, 0] * n / whole0
            q1 = margin[0, a, 1] * margin[1, b, 1] * n / whole1
        else:
            a, b, c = k // 9, k // 3 % 3, k % 3
            ab, ac, bc = 3 * a + b, 3 * a + c, 3 * b + c
            q0 = margin[3, ab, 0] * margin[4, ac, 0] * margin[5, bc, 0] * whole0 / n
            q0 *= margin[0, a, 0] * margin[1, b, 0] * margin[2, c, 0]
            q1 = margin[3, ab, 1] * margin[4, ac, 1] * margin[5, bc, 1] * whole1 / n
            q1 *= margin[0, a, 1] * margin[1, b, 1] * margin[2, c, 1]
        total += size * (q0 + q1)
    return n * np.log(total / n)


@numba.njit(nogil=True)
def collect_interactions(
    cells, n_cells, n_states, x, y, z0, low, high, costs, logs, kept, information
):
    """Offer the triples (x, y, z), z in [low, high), to the heap; x < 0: the pairs (y, z).

    As `scan_kernels_cpu._collect`. information: int64 (lanes,) each, the best I(S; c) of each table
    without missing genotypes, and the second result of `of_margins`; not read with three stored
    states.
    """
    (total, part, shift, bound, bits), (sums, work) = costs, logs
    (rank, rule, heap, state), (known, alternating) = kept, information
    order = 2 if n_cells == 9 else 3
    scale, slack, n_lanes = bound[2], bound[3], work.shape[0]
    # costs are rounded to a unit, the entries of the tables to less
    rounding = np.int64(2) << np.int64(bits - UNIT_BITS)
    worst = min(state[1], np.int64(0))  # no cost is above 0
    limit = (np.float64(worst) + np.float64(rounding)) * scale + slack
    if n_states == 2:
        reached = 0
        for i in range(n_lanes):
            reached += work[i] <= limit + np.float64(shift - known[i]) * scale
        if reached == 0:
            return
        if reached >= MANY and sums[0, 0] > 0 and sums[1, 0] > 0:
            # bound 2 in float32: what the parts say in the alternating sum, and sum q - n
            products = np.empty(n_lanes, np.float32)
            n = np.float64(sums[0, 0]) + np.float64(sums[1, 0])
            product_sums(cells, order, sums[0, 0], sums[1, 0], products, n_lanes)
            reached = 0
            for i in range(n_lanes):
                excess = np.float64(products[i]) * (1.0 + RELATIVE_ERROR) - n
                part_2 = np.float64(shift - alternating[i]) + excess * 2.0 ** np.float64(bits)
                if work[i] > limit + part_2 * scale:
                    work[i] = np.float32(np.inf)
                else:
                    reached += 1
            if reached == 0:
                return
    counts = np.empty((2, n_cells))
    for z in range(low, high):
        i = z - z0
        best_known = np.int64(0)
        if n_states == 2:
            best_known = known[i]
        else:
            n0, n1 = sums[0, i], sums[1, i]
            shift = total[n0 + n1] - part[n0] - part[n1]
        if work[i] > limit + np.float64(shift - best_known) * scale:
            continue
        if too_near(rule, y, z) or (x >= 0 and too_near(rule, x, z)):
            continue
        least = exact_cost(cells, n_cells, i, total, part) - shift - rounding
        if least + best_known > worst:
            continue
        if n_states == 2:
            others = alternating[i]
        else:
            enough = worst - least + 1
            best, others = of_margins(cells, order, i, part, shift, enough)
            if best >= enough:
                continue
        if not permitted(rule, cells, n_cells, i, x, y, z):
            continue
        for c in range(2):
            for k in range(n_cells):
                counts[c, k] = cells[c, k, i]
        needed = least_of(worst, bits)
        n0, n1 = counts[0].sum(), counts[1].sum()
        if n0 > 0.0 and n1 > 0.0:
            bound_2 = np.float64(-least - others) * 2.0**-bits + product_excess(counts, order)
            if bound_2 < needed - (n0 + n1) * 2.0**-46:
                continue
        value = half_statistic(counts, order, needed)
        if value < needed:
            continue
        cost = fixed_cost(value, bits)
        if cost <= worst:
            if x < 0:
                offer(heap, state, cost, combination_key(rank, y, z, -1), y, z, -1)
            else:
                offer(heap, state, cost, combination_key(rank, x, y, z), x, y, z)
            worst = min(state[1], worst)
            limit = (np.float64(worst) + np.float64(rounding)) * scale + slack
