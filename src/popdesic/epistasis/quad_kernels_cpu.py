"""Kernels of the scan of quads on CPUs (`scan_cpu.scan_quads` shares them among threads).

    count[c, g, h, s, t, z] = popcount of the samples of class c with w in g, x in h, y in s, z in t

For w, x and each pair of their stored genotypes, the carriers' bits of every later site are
compacted, as for the carriers of x in a scan of triples. So 16 of the 81 cells of a class are
counted. The others follow by subtraction: with w in g, from the table of (w, y, z); w's third
genotype is the table of (x, y, z) less the other two. Both are made once for many quads.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import numba
import numpy as np
from numba import types

from ..engine import bitgemm_cpu, extract_cpu
from ..engine.popcount_cpu import popcount
from . import block_tables_cpu, cells_cpu, hits_cpu, interaction_cpu, margins_cpu
from .block_tables_cpu import (
    BLOCK,
    Costs,
    block_states,
    compact_under,
    pair_cells,
    triple_cells,
)
from .cells_cpu import count_states, fill_cells, sum_logs
from .hits_cpu import KEPT, cell_cost, exact_cost, offer_quad, permitted_quad, too_near
from .interaction_cpu import UNIT_BITS, fixed_cost, half_statistic, least_of
from .margins_cpu import alternating_information, margins_of_quad, quad_excess


@numba.njit(nogil=True)
def _compact_pair(words, carriers, first, out, row0, depth, sizes):
    """As `compact_under`; also sizes[s, z], the carriers with site z in state s."""
    compact_under(words, carriers, first, out, row0, depth)
    for s in range(words.shape[1]):
        for k in range(depth):
            for z in range(first, words.shape[0]):
                sizes[s, z] += popcount(out[row0 + s * depth + k, z])


@numba.njit(nogil=True)
def _information(cells, low, high, z0, costs, out):
    """out[z - z0] = I(three sites; class) of tables without missing genotypes."""
    for i in range(low - z0, high - z0):
        out[i] = costs.shift - exact_cost(cells, 27, i, costs.total, costs.part)


@numba.njit(nogil=True)
def _pair_information(tables_x, of_w, chunk, i, w, x, scan, sizes, costs, out):
    """out[z] = I(w, x, z; class) of all later sites z. tables_x, of_w: pair tables of x and w."""
    n_states, margins, states_of = scan
    n_sites = states_of.shape[0]
    pairs, cells = np.empty((2, 27, BLOCK), np.int32), np.empty((2, 36, BLOCK), np.int32)
    counts = np.empty((n_states, n_states, BLOCK), np.int32)
    for z0 in range((x + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        z_states = block_states(states_of, n_states, z0)
        pair_cells(tables_x, sizes, margins, n_states, x, z0, pairs, 0)
        of_block = n_states, margins, states_of, z_states
        triple_cells(of_w, chunk, i, w, x, z0, of_block, pairs, 0, counts, cells)
        low, high = max(z0, x + 1), min(z0 + BLOCK, n_sites)
        _information(cells, low, high, z0, costs, out[z0 : z0 + BLOCK])


@numba.njit(nogil=True)
def _collect_quads(cells, n_states, w, x, y, z0, low, high, costs, logs, kept):
    """Offer the quads (w, x, y, z), z in [low, high), by a score of association."""
    (total, part, shift, bound, _), (sums, work), state = costs, logs, kept.state
    scale, slack = bound[2], bound[3]
    for z in range(low, high):
        i = z - z0
        if n_states == 3:
            shift = cell_cost(sums[0, i], sums[1, i], total, part)
        if work[i] > (np.float64(state[1]) + np.float64(shift)) * scale + slack:
            continue
        cost = exact_cost(cells, 81, i, total, part) - shift
        if cost <= state[1] and permitted_quad(kept.rule, cells, i, w, x, y, z):
            offer_quad(kept, cost, w, x, y, z)


@numba.njit(nogil=True)
def _collect_interacting(cells, n_states, w, x, y, z0, low, high, costs, logs, kept, known):
    """Offer them by interaction; the filters are those of `scan_interaction_cpu`.

    known: int64 (BLOCK,), the largest I of three of the sites, read without missing genotypes.
    """
    (total, part, shift, bound, bits), (sums, work) = costs, logs
    scale, slack, rule, state = bound[2], bound[3], kept.rule, kept.state
    rounding = np.int64(2) << np.int64(bits - UNIT_BITS)
    counts = np.empty((2, 81))
    for z in range(low, high):
        i = z - z0
        worst, best = min(state[1], np.int64(0)), np.int64(0)
        limit = (np.float64(worst) + np.float64(rounding)) * scale + slack
        if n_states == 2:
            best = known[i]
        else:
            shift = cell_cost(sums[0, i], sums[1, i], total, part)
        if work[i] > limit + np.float64(shift - best) * scale:
            continue
        if too_near(rule, y, z) or too_near(rule, x, z) or too_near(rule, w, z):
            continue
        whole = exact_cost(cells, 81, i, total, part)
        if whole - shift - rounding + best > worst:
            continue
        for c in range(2):
            for k in range(81):
                counts[c, k] = cells[c, k, i]
        needed = least_of(worst, bits)
        margin = margins_of_quad(counts)
        n0, n1 = margin[0, 0]
        if n0 > 0.0 and n1 > 0.0:
            parts = alternating_information(margin, part, whole) + rounding
            bound_2 = np.float64(parts) * 2.0**-bits + quad_excess(counts, margin)
            if bound_2 < needed - (n0 + n1) * 2.0**-46:
                continue
        if not permitted_quad(rule, cells, i, w, x, y, z):
            continue
        value = half_statistic(counts, 4, needed)
        if value < needed:
            continue
        cost = fixed_cost(value, bits)
        if cost <= worst:
            offer_quad(kept, cost, w, x, y, z)


@numba.njit(nogil=True)
def _quad_cells(group, of_w, chunk, depths, y, z0, scan, cells_w, cells_x, counts, inner, cells):
    """cells[c, :81] = the tables of (w, x, y, z), the third state of each last.

    group: w, x and where planes start, int64 (2, n_states, n_states) each. of_w: counts of the
    genotypes of w and x, int32 (2, n_states, n_states); chunk: compacted planes and the sizes of
    `_compact_pair`, int32 (2, n_states, n_states, n_states, width). cells_w: `triple_cells` of
    (w, y, z), cells_x those of (x, y, z).
    """
    (w, x, offsets), (compacted, sizes) = group, chunk
    n_states, states_of, z_states = scan
    last = n_states - 1
    for c in range(2):
        for g in range(states_of[w]):
            for h in range(states_of[x]):
                count_states(
                    compacted, offsets[c, g, h], depths[c, g, h], n_states, y, states_of[y], z0,
                    BLOCK, z_states, counts,
                )  # fmt: skip
                here = sizes[c, g, h]
                of_y = here[0, y], here[1, y], here[last, y]
                rest = (cells_w, c, 9 * g if g < 2 else 27) if h == 0 else (inner, c, 18)
                fill_cells(
                    counts, n_states, of_y, here, z0, of_w[c, g, h], rest,
                    (inner, c, 9 * h if h < 2 else 27), BLOCK,
                )  # fmt: skip
            for k in range(27):
                for i in range(BLOCK):
                    before = cells_x[c, k, i] if g == 0 else cells[c, 54 + k, i]
                    if g < 2:
                        cells[c, 27 * g + k, i] = inner[c, k, i]
                    cells[c, 54 + k, i] = before - inner[c, k, i]


@numba.njit(nogil=True)
def _quad_task(tables_y, chunk_w, chunk_x, pairs, sizes, margins, states_of, place, costs, kept):
    """All quads (w, x, y, z) of a chunk of w, one of x and y in [y0, y1).

    tables_y: (sites, 2, n_states, n_states, width) pair tables of these y. chunk_w, chunk_x: the
    same of w and x, then compacted planes, (sites, 2, n_states) each, where a state's planes start
    and how many words deep they are. pairs: compacted planes of pairs of stored genotypes, where
    they start, how deep they are (w, x, 2, n_states, n_states), the counts of `_compact_pair`, and
    what w, x and each later site say about the class. place: first w, first x, y0, y1.
    """
    tables_w, planes_w, tables_x, planes_x = chunk_w[0], chunk_w[1:], chunk_x[0], chunk_x[1:]
    w0, x0, y0, y1 = place
    compacted, offsets, depths, carriers, known_wx = pairs
    n_states, n_sites = tables_w.shape[2], kept.rank.shape[0]
    n_w, n_x, bound = tables_w.shape[0], tables_x.shape[0], costs.bound
    counts = np.empty((n_states, n_states, BLOCK), np.int32)
    of_yz, inner = np.empty((2, 27, BLOCK), np.int32), np.empty((2, 36, BLOCK), np.int32)
    cells_w = np.empty((n_w, 2, 36, BLOCK), np.int32)
    cells_x = np.empty((n_x, 2, 36, BLOCK), np.int32)
    cells = np.empty((2, 81, BLOCK), np.int32)
    logs = np.empty((2, BLOCK), np.int32), np.empty(BLOCK, np.float32)
    look_up = costs.bits >= 0 and n_states == 2
    known = np.zeros(BLOCK, np.int64)
    known_w, known_x = np.zeros((n_w, BLOCK), np.int64), np.zeros((n_x, BLOCK), np.int64)
    for z0 in range((y0 + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        z_states = block_states(states_of, n_states, z0)
        scan = n_states, margins, states_of, z_states
        for y in range(y0, y1):
            low, high = max(z0, y + 1), min(z0 + BLOCK, n_sites)
            if low >= high:
                continue
            pair_cells(tables_y[y - y0], sizes, margins, n_states, y, z0, of_yz, 0)
            for i in range(min(n_w, y - w0)):
                triple_cells(
                    tables_w[i], planes_w, i, w0 + i, y, z0, scan, of_yz, 0, counts, cells_w[i]
                )
                if look_up:
                    _information(cells_w[i], low, high, z0, costs, known_w[i])
            for j in range(min(n_x, y - x0)):
                x = x0 + j
                triple_cells(tables_x[j], planes_x, j, x, y, z0, scan, of_yz, 0, counts, cells_x[j])
                if look_up:
                    _information(cells_x[j], low, high, z0, costs, known_x[j])
                for i in range(min(n_w, x - w0)):
                    w = w0 + i
                    rule = kept.rule
                    if too_near(rule, w, x) or too_near(rule, w, y) or too_near(rule, x, y):
                        continue
                    _quad_cells(
                        (w, x, offsets[i, j]), tables_w[i, :, :, :, x],
                        (compacted, carriers[i, j]), depths[i, j], y, z0,
                        (n_states, states_of, z_states), cells_w[i], cells_x[j], counts, inner,
                        cells,
                    )  # fmt: skip
                    sum_logs(cells, 81, np.float32(bound[0]), np.float32(bound[1]), *logs, BLOCK)
                    if costs.bits < 0:
                        _collect_quads(cells, n_states, w, x, y, z0, low, high, costs, logs, kept)
                        continue
                    if look_up:
                        for k in range(low - z0, high - z0):
                            of_wx = max(known_wx[i, j, y], known_wx[i, j, z0 + k])
                            known[k] = max(of_wx, known_w[i, k], known_x[j, k])
                    _collect_interacting(
                        cells, n_states, w, x, y, z0, low, high, costs, logs, kept, known
                    )


_N = types.int64
_U1 = types.Array(types.uint64, 1, "C")
_U2, _U3 = types.Array(types.uint64, 2, "C"), types.Array(types.uint64, 3, "C", readonly=True)
_I1, _I3, _I5 = (types.Array(types.int64, n, "C") for n in (1, 3, 5))
_T2, _T3, _T4, _T5, _T7 = (types.Array(types.int32, n, "C") for n in (2, 3, 4, 5, 7))
_R1 = types.Array(types.int64, 1, "C", readonly=True)
_COSTS = types.NamedTuple((_R1, _R1, _N, types.Array(types.float64, 1, "C"), _N), Costs)
_PLANES = types.Tuple((_U2, _I3, _I3))
_CHUNK = types.Tuple((_T5, _U2, _I3, _I3))


def _stamped(stamp: str):
    """As that of `scan_kernels_cpu`."""

    def compact_pair(arguments):
        if stamp:
            _compact_pair(*arguments)

    def pair_information(arguments):
        if stamp:
            _pair_information(*arguments)

    def quads(arguments):
        if stamp:
            _quad_task(*arguments)

    return compact_pair, pair_information, quads


@functools.cache
def quad_kernels():
    """The compiled kernels: carriers of two genotypes, what pairs say with a third site, quads."""
    sources = (
        *(bitgemm_cpu, extract_cpu, block_tables_cpu, cells_cpu, hits_cpu),
        *(interaction_cpu, margins_cpu),
    )
    text = b"".join(Path(module.__file__).read_bytes() for module in sources)
    signatures = (
        (_U3, _U1, _N, _U2, _N, _N, _T2),
        (_T4, _T4, _PLANES, _N, _N, _N, types.Tuple((_N, _T3, _I1)), _I1, _COSTS, _I1),
        (
            *(_T5, _CHUNK, _CHUNK, types.Tuple((_U2, _I5, _I5, _T7, _I3)), _I1, _T3, _I1),
            *(types.UniTuple(_N, 4), _COSTS, KEPT),
        ),
    )
    functions = _stamped(hashlib.blake2b(text, digest_size=8).hexdigest())

    def compiled(function, signature):
        kernel = numba.njit([types.void(types.Tuple(signature))], nogil=True, cache=True)(function)
        return lambda *arguments: kernel(arguments)

    return tuple(map(compiled, functions, signatures))
