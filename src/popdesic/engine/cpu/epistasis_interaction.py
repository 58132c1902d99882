"""Hits of scans by interaction: the filter by mutual information, and the fit of what passes.

A table passes where I(g; c) - I(S; c) reaches the worst hit kept, S the best margin of one site
fewer (bound 1 of `engine.host.interaction`): first by float32 logarithms, as for other scores,
then exactly. Without missing genotypes I(S; c) is looked up, once per site or pair of sites; with
them it is computed from the table's own cells. What passes is fitted at once, so that the worst
hit kept is up to date.
"""

from __future__ import annotations

import numba
import numpy as np

from ..host.interaction import UNIT_BITS, fixed_cost, half_statistic, least_of
from .epistasis_cells import sum_logs
from .epistasis_hits import exact_cost, offer, permitted, rank_key


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
def best_margin(cells, order, z, part, whole, enough):
    """The largest I of a margin of one site fewer, or the first that is at least `enough`.

    cells: int32 (2, at least 3**order, lanes), of lane z; `whole`: as `shift` below.
    """
    best = np.int64(0)
    if order == 2:
        best = max(best, _of_margin(cells, z, 0, 3, 1, part, whole))
        return max(best, _of_margin(cells, z, 0, 1, 3, part, whole))
    best = max(best, _of_margin(cells, z, 9, 3, 1, part, whole))
    if best < enough:
        best = max(best, _of_margin(cells, z, 9, 1, 3, part, whole))
    if best < enough:
        best = max(best, _of_margin(cells, z, 3, 1, 9, part, whole))
    return best


@numba.njit(nogil=True)
def collect_interactions(
    cells, n_cells, n_states, x, y, z0, low, high, total, part, shift, bound, rank, allowed,
    work, sums, heap, state, bits, known,
):  # fmt: skip
    """Offer the triples (x, y, z), z in [low, high), to the heap; x < 0: the pairs (y, z).

    As `epistasis_kernels._collect`. known: int64 (lanes,), the best I(S; c) of each table without
    missing genotypes; not read with three stored states.
    """
    order = 2 if n_cells == 9 else 3
    beta_total, beta_part, scale, slack = bound[0], bound[1], bound[2], bound[3]
    n_lanes = work.shape[0]
    sum_logs(cells, n_cells, np.float32(beta_total), np.float32(beta_part), sums, work, n_lanes)
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
    counts = np.empty((2, n_cells))
    for z in range(low, high):
        i = z - z0
        information = np.int64(0)
        if n_states == 2:
            information = known[i]
        else:
            n0, n1 = sums[0, i], sums[1, i]
            shift = total[n0 + n1] - part[n0] - part[n1]
        if work[i] > limit + np.float64(shift - information) * scale:
            continue
        if not permitted(allowed, y, z) or (x >= 0 and not permitted(allowed, x, z)):
            continue
        least = exact_cost(cells, n_cells, i, total, part) - shift - rounding
        if least + information > worst:
            continue
        if n_states == 3:
            enough = worst - least + 1
            if best_margin(cells, order, i, part, shift, enough) >= enough:
                continue
        for c in range(2):
            for k in range(n_cells):
                counts[c, k] = cells[c, k, i]
        needed = least_of(worst, bits)
        value = half_statistic(counts, order, needed)
        if value < needed:
            continue
        cost = fixed_cost(value, bits)
        if cost <= worst:
            if x < 0:
                offer(heap, state, cost, rank_key(rank, y, z, -1), y, z, -1)
            else:
                offer(heap, state, cost, rank_key(rank, x, y, z), x, y, z)
            worst = min(state[1], worst)
            limit = (np.float64(worst) + np.float64(rounding)) * scale + slack
