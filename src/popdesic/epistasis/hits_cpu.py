"""The best hits of a scan on a CPU: exact costs, partners, one heap per worker, order of hits."""

from __future__ import annotations

from queue import SimpleQueue
from typing import NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import ArrayLike

from .scan_data import MOST_QUAD_SITES, MOST_SITES, Hits, Partners

#: Bits of one site's rank in the key that breaks ties.
RANK_BITS = MOST_SITES.bit_length()
#: The same of quads; bits of the second site beside the first in a column of their heaps.
QUAD_RANK_BITS, SITE_BITS = MOST_QUAD_SITES.bit_length(), 32
_PLACES = types.Array(types.int32, 1, "C", readonly=True)
#: The type of what `partner_rule` returns.
RULE = types.Tuple(
    (_PLACES, _PLACES, types.Array(types.int8, 1, "C", readonly=True), types.int64, types.float64)
)


class Kept(NamedTuple):
    """Where a task offers its hits, and what may be one.

    Attributes
    ----------
    rank : int32 array, (n_sites,)
        Of `ranks_of_sites`, which break ties.
    rule
        Of `partner_rule`.
    heap, state : int64 arrays
        One of `Heaps`.
    """

    rank: np.ndarray
    rule: tuple
    heap: np.ndarray
    state: np.ndarray


#: The type of `Kept`.
KEPT = types.NamedTuple(
    (_PLACES, RULE, types.Array(types.int64, 2, "C"), types.Array(types.int64, 1, "C")), Kept
)


def read_only(values: ArrayLike, kind: type) -> np.ndarray:
    """An array as fields of `KEPT` and `Costs` are typed: numba converts none of a NamedTuple."""
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view


def ranks_of_sites(rank: np.ndarray) -> np.ndarray:
    """Panel order of the scanned sites as numbers from 0 on, which fit RANK_BITS: int32 (n_sites,).

    rank: rows of the panel, which may have more sites than are scanned.
    """
    return read_only(np.unique(rank, return_inverse=True)[1], np.int32)


def partner_rule(partners: Partners | None) -> tuple:
    """`Partners` as the tuple that kernels take; no sites in it: all are permitted."""
    if partners is None:
        columns = (read_only([], kind) for kind in (np.int32, np.int32, np.int8))
        return *columns, 0, 1.0
    kinds = ((partners.chrom, np.int32), (partners.pos, np.int32), (partners.middle, np.int8))
    columns = (read_only(column, kind) for column, kind in kinds)
    return *columns, int(partners.min_distance_bp), float(partners.max_r2)


class Heaps:
    """One heap of `top` entries for each thread; `free` lends them to tasks."""

    def __init__(self, top: int, cutoff: int | None, threads: int):
        self.top, self.heaps = top, []
        self.free: SimpleQueue = SimpleQueue()
        limit = np.iinfo(np.int64).max if cutoff is None else cutoff
        for _ in range(max(1, threads)):
            self.heaps.append((np.empty((top, 5), np.int64), np.array([0, limit], np.int64)))
            self.free.put(self.heaps[-1])

    def hits(self, order: int) -> Hits:
        """The best `top` entries of the heaps of all workers."""
        found = np.concatenate([heap[: state[0]] for heap, state in self.heaps])
        found = found[np.lexsort((found[:, 1], found[:, 0]))][: self.top]
        sites = found[:, 2:]
        if order == 4:  # the first two are in one column (`SITE_BITS`)
            two = np.stack([sites[:, 0] >> SITE_BITS, sites[:, 0] & ((1 << SITE_BITS) - 1)], axis=1)
            sites = np.concatenate([two, sites[:, 1:]], axis=1)
        return Hits(found[:, 0].copy(), sites[:, :order].astype(np.int32))


@numba.njit(nogil=True)
def too_near(rule, i, j):
    """Whether sites i and j are too close to be partners (rule 1)."""
    chrom, pos, _, least, _ = rule
    if least <= 0 or chrom.shape[0] == 0 or chrom[i] != chrom[j]:
        return False
    return abs(np.int64(pos[i]) - np.int64(pos[j])) < least


@numba.njit(nogil=True)
def _too_correlated(middle_i, middle_j, max_r2, cells, n_cells, z, step_i, step_j):
    """Rule 2 for two sites of the table in lane z, whose states vary in steps of step_i, step_j."""
    n, s_i, s_j, s_ii, s_jj, s_ij = 0, 0, 0, 0, 0, 0
    for k in range(n_cells):
        people = np.int64(cells[0, k, z]) + np.int64(cells[1, k, z])
        i, j = (k // step_i - middle_i) % 3, (k // step_j - middle_j) % 3
        i, j = i - 3 * (i == 2), j - 3 * (j == 2)  # 0, 1, -1: the middle state and the others
        n += people
        s_i += people * i
        s_j += people * j
        s_ii += people * i * i
        s_jj += people * j * j
        s_ij += people * i * j
    covariance = np.float64(n * s_ij - s_i * s_j)
    variances = np.float64(n * s_ii - s_i * s_i) * np.float64(n * s_jj - s_j * s_j)
    return covariance * covariance > max_r2 * variances


@numba.njit(nogil=True)
def permitted(rule, cells, n_cells, lane, x, y, z):
    """Whether the sites of the table in a lane may be combined; x < 0: the pair (y, z).

    cells: int32 (2, at least n_cells, lanes); the first site's state varies slowest.
    """
    chrom, _, middle, _, max_r2 = rule
    if chrom.shape[0] == 0:
        return True
    if too_near(rule, y, z) or (x >= 0 and (too_near(rule, x, y) or too_near(rule, x, z))):
        return False
    if max_r2 >= 1.0:
        return True
    if _too_correlated(middle[y], middle[z], max_r2, cells, n_cells, lane, 3, 1):
        return False
    if x < 0:
        return True
    return not (
        _too_correlated(middle[x], middle[y], max_r2, cells, n_cells, lane, 9, 3)
        or _too_correlated(middle[x], middle[z], max_r2, cells, n_cells, lane, 9, 1)
    )


@numba.njit(nogil=True)
def permitted_quad(rule, cells, lane, w, x, y, z):
    """`permitted` of four sites, with cells int32 (2, at least 81, lanes)."""
    chrom, _, middle, _, max_r2 = rule
    if chrom.shape[0] == 0:
        return True
    sites, steps = (w, x, y, z), (27, 9, 3, 1)
    for a in range(4):
        for b in range(a + 1, 4):
            if too_near(rule, sites[a], sites[b]):
                return False
    if max_r2 >= 1.0:
        return True
    for a in range(4):
        for b in range(a + 1, 4):
            i, j = middle[sites[a]], middle[sites[b]]
            if _too_correlated(i, j, max_r2, cells, 81, lane, steps[a], steps[b]):
                return False
    return True


@numba.njit(nogil=True)
def cell_cost(n0, n1, total, part):
    """`scan_data.cell_cost` of one cell."""
    if part.shape[0] > 0:
        return total[n0 + n1] - part[n0] - part[n1]
    share = np.float64(n0) * np.float64(n1) / np.float64(max(n0 + n1, 1))
    return np.int64(np.rint(share * np.float64(total[0])))


@numba.njit(nogil=True)
def exact_cost(cells, n_cells, z, total, part):
    """Cost of all cells of lane z; cells: int32 (2, at least n_cells, lanes)."""
    cost = np.int64(0)
    for k in range(n_cells):
        cost += cell_cost(cells[0, k, z], cells[1, k, z], total, part)
    return cost


@numba.njit(nogil=True)
def combination_key(ranks, x, y, z):
    """The ranks in ascending order as one number; z < 0 stands for none."""
    a, b = min(ranks[x], ranks[y]), max(ranks[x], ranks[y])
    if z < 0:
        return (np.int64(a) << RANK_BITS) | np.int64(b)
    c = np.int64(ranks[z])
    low, high = min(np.int64(a), c), max(np.int64(b), c)
    middle = np.int64(a) + np.int64(b) + c - low - high
    return (((low << RANK_BITS) | middle) << RANK_BITS) | high


@numba.njit(nogil=True)
def quad_key(ranks, w, x, y, z):
    """The ranks of four sites in ascending order as one number."""
    four = np.sort(np.array([ranks[w], ranks[x], ranks[y], ranks[z]], np.int64))
    key = four[0]
    for i in range(1, 4):
        key = (key << QUAD_RANK_BITS) | four[i]
    return key


@numba.njit(nogil=True)
def offer_quad(kept, cost, w, x, y, z):
    """`offer` for four sites."""
    rank, _, heap, state = kept
    two = (np.int64(w) << SITE_BITS) | np.int64(x)
    offer(heap, state, cost, quad_key(rank, w, x, y, z), two, y, z)


@numba.njit(nogil=True)
def _after(heap, i, j):
    """True if entry i comes after entry j in the order of hits."""
    return heap[i, 0] > heap[j, 0] or (heap[i, 0] == heap[j, 0] and heap[i, 1] > heap[j, 1])


@numba.njit(nogil=True)
def _swap(heap, i, j):
    for k in range(heap.shape[1]):
        heap[i, k], heap[j, k] = heap[j, k], heap[i, k]


@numba.njit(nogil=True)
def offer(heap, state, cost, key, x, y, z):
    """Push a hit onto the heap (worst on top) of state[0] entries; state[1]: what may enter."""
    size, top = state[0], heap.shape[0]
    if size == top:
        if cost > heap[0, 0] or (cost == heap[0, 0] and key > heap[0, 1]):
            return
        i = 0
    else:
        i = size
        state[0] = size = size + 1
    heap[i, 0], heap[i, 1], heap[i, 2], heap[i, 3], heap[i, 4] = cost, key, x, y, z
    while i > 0 and _after(heap, i, (i - 1) // 2):
        _swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _after(heap, child + 1, child):
            child += 1
        if not _after(heap, child, i):
            break
        _swap(heap, i, child)
        i = child
    if size == top:
        state[1] = min(state[1], heap[0, 0])
