"""Kernels of scans of several phenotypes on CPUs (`epistasis_shared.py` shares them among threads).

The loops of `epistasis_kernels`, with a list of groups of people in place of two classes. A vector
of tables is counted group by group. The table of a phenotype's controls is the base group's, or a
sum or difference of groups; its cases are a group. It is then bounded, fitted and kept as in a scan
of its own.

    cells[0], cells[1]   controls and cases of the phenotype that is scored
    cells[2], cells[3]   base group and `rest`, where controls are not the base group as it is
"""

from __future__ import annotations

import functools
import hashlib

import numba
import numpy as np
from numba.core import types

from ..host.interaction import UNIT_BITS
from . import epistasis_kernels, epistasis_shared_cells
from .epistasis_cells import count_states, fill_cells
from .epistasis_hits import too_near
from .epistasis_interaction import collect_interactions
from .epistasis_kernels import BLOCK, _block_states, _collect, source_text
from .epistasis_shared_cells import add_logs, logs_of_controls

#: Rows of `cells`: see `epistasis_kernels._triple_task`.
ROWS = 36


@numba.njit(nogil=True)
def _group_tables(planes, starts, depths, n_states, states_of, x, first, out):
    """out[g, s, t, z]: pair tables of site x with every site of the block of `first` or later.

    planes: uint64 (rows, width), those of group g from row starts[g] on, depths[g] words a state.
    """
    for z0 in range(first // BLOCK * BLOCK, states_of.shape[0], BLOCK):
        z_states = _block_states(states_of, n_states, z0)
        for g in range(starts.shape[0]):
            count_states(
                planes, starts[g], depths[g], n_states, x, states_of[x], z0, BLOCK, z_states,
                out[g, :, :, z0 : z0 + BLOCK],
            )  # fmt: skip


@numba.njit(nogil=True)
def _pair_cells(tables, margins, size, n_states, y, z0, cells, c):
    """cells[c, :9] = the tables of (y, z) of one group; its rows from 18 on are overwritten."""
    fill_cells(
        tables[:, :, z0 : z0 + BLOCK], n_states, margins[0, y], margins[1, y],
        margins[n_states - 1, y], margins, z0, size, cells, c, 18, cells, c, 0, BLOCK,
    )  # fmt: skip


@numba.njit(nogil=True)
def _controls(cells, n_cells, has_rest, subtract):
    """cells[0] = the controls: base group and rest, or base group less cases and rest."""
    for k in range(n_cells):
        for z in range(BLOCK):
            count = cells[2, k, z]
            rest = cells[3, k, z] if has_rest else np.int32(0)
            cells[0, k, z] = count - rest - cells[1, k, z] if subtract else count + rest


@numba.njit(nogil=True)
def _score(
    cells, n_cells, n_states, x, y, z0, low, high, t, ready, known, i, j, known_x, known_y, total,
    part, shift, bound, rank, rule, bits, place, labels, logs, sums, work, best, alternating, heap,
    state,
):  # fmt: skip
    """Bound and offer the tables of phenotype t; returns what `logs` holds: a beta of controls.

    ready: the beta for which logs and sums[0] hold those of cells[0], -1 for none. known_x[t, i],
    known_y[t, j]: what the pairs of x and of y say about the class. x < 0: pairs.

    Rows of arrays are taken only of what passes the first filter, which is repeated there.
    """
    beta_part = bound[t, 1]
    if ready != beta_part:
        logs_of_controls(cells, n_cells, np.float32(beta_part), sums, logs, BLOCK)
    beta_total = np.float32(bound[t, 0])
    add_logs(cells, n_cells, beta_total, np.float32(beta_part), logs, sums, work, BLOCK)
    scale, worst = bound[t, 2], state[t, 1]
    if bits[t] >= 0:
        rounding = np.int64(2) << np.int64(bits[t] - UNIT_BITS)
        worst = min(worst, np.int64(0)) + rounding
    limit, reached = np.float64(worst) * scale + bound[t, 3], 0
    if n_states == 2 and bits[t] >= 0:
        of_xy = known_x[t, i, y] if x >= 0 else np.int64(0)
        of_sites = known[t, y] + (known[t, x] if x >= 0 else np.int64(0))
        for k in range(BLOCK):
            z = z0 + k
            of_z = known[t, z]
            if x < 0:
                best[k] = max(of_sites, of_z)
                alternating[k] = of_sites + of_z
            else:
                of_xz, of_yz = known_x[t, i, z], known_y[t, j, z]
                best[k] = max(of_xy, of_xz, of_yz)
                alternating[k] = of_xy + of_xz + of_yz - of_sites - of_z
            reached += work[k] <= limit + np.float64(shift[t] - best[k]) * scale
    elif n_states == 2:
        threshold = limit + np.float64(shift[t]) * scale
        for k in range(BLOCK):
            reached += work[k] <= threshold
    else:
        for z in range(low, high):
            n0, n1 = sums[0, z - z0], sums[1, z - z0]
            whole = total[t, n0 + n1] - part[t, n0] - part[t, n1]
            reached += work[z - z0] <= limit + np.float64(whole) * scale
    if reached == 0:
        return beta_part
    own = (rule[0][t], rule[1], rule[2], rule[3], rule[4])
    if bits[t] < 0:
        _collect(
            cells, n_cells, n_states, x, y, z0, low, high, total[t], part[t], shift[t], bound[t],
            rank[t], own, work, sums, heap[t], state[t],
        )  # fmt: skip
    else:
        collect_interactions(
            cells, n_cells, n_states, x, y, z0, low, high, total[t], part[t], shift[t], bound[t],
            rank[t], own, work, sums, heap[t], state[t], bits[t], best, alternating, place[t],
            labels[t],
        )  # fmt: skip
    return beta_part


@numba.njit(nogil=True)
def _pair_task(
    tables, sizes, margins, n_states, x, traits, subtract, known, total, part, shift, bound, rank,
    rule, bits, place, labels, heap, state,
):  # fmt: skip
    """All pairs (x, y) of one x. tables: (groups, n_states, n_states, width) of `_group_tables`.

    traits: int64 (n_traits, 2), the groups of cases and of the rest, see `engine.base.SharedTrait`;
    what follows `subtract` has a row for each phenotype. rule: `epistasis_hits.partner_rule` with
    a row of chromosomes for each phenotype, -1: not a site of it, and one of all sites.
    """
    n_sites, direct = rank.shape[1], not subtract and traits[:, 1].max() < 0
    cells = np.empty((4, ROWS, BLOCK), np.int32)
    best, alternating = np.zeros(BLOCK, np.int64), np.zeros(BLOCK, np.int64)
    logs, work = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    sums, base = np.empty((2, BLOCK), np.int32), 0 if direct else 2
    nothing = np.zeros((0, 0, 0), np.int64)
    for z0 in range((x + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        low, high = max(z0, x + 1), min(z0 + BLOCK, n_sites)
        _pair_cells(tables[0], margins[0], sizes[0], n_states, x, z0, cells, base)
        ready = -1.0
        for t in range(traits.shape[0]):
            for g, c in ((traits[t, 0], 1), (traits[t, 1], 3)):
                if g >= 0:
                    _pair_cells(tables[g], margins[g], sizes[g], n_states, x, z0, cells, c)
            if not direct:
                _controls(cells, 9, traits[t, 1] >= 0, subtract)
                ready = -1.0
            ready = _score(
                cells, 9, n_states, -1, x, z0, low, high, t, ready, known, 0, 0, nothing, nothing,
                total, part, shift, bound, rank, rule, bits, place, labels, logs, sums, work, best,
                alternating, heap, state,
            )  # fmt: skip


@numba.njit(nogil=True)
def _triple_task(
    tables_y, tables_x, compacted, offsets, depths, sizes, margins, states_of, n_states, first, y0,
    y1, known_x, known_y, traits, subtract, known, total, part, shift, bound, rank, rule, bits,
    place, labels, heap, state,
):  # fmt: skip
    """All triples (x, y, z) of the chunk of x that starts at `first` and y in [y0, y1).

    tables_y, tables_x: (sites, groups, n_states, n_states, width). compacted: uint64 (rows, width);
    offsets, depths: (x, groups, n_states). known_x, known_y: int64 (n_traits, sites, width). Others
    as in `_pair_task` and `epistasis_kernels._triple_task`.
    """
    n_groups, n_sites = sizes.shape[0], rank.shape[1]
    direct = not subtract and traits[:, 1].max() < 0
    best, alternating = np.zeros(BLOCK, np.int64), np.zeros(BLOCK, np.int64)
    counts = np.empty((n_states, n_states, BLOCK), np.int32)
    cells = np.empty((4, ROWS, BLOCK), np.int32)
    pairs = np.empty((n_groups * (y1 - y0), 27, BLOCK), np.int32)
    logs, work = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    sums, base = np.empty((2, BLOCK), np.int32), 0 if direct else 2
    of_all = (rule[0][traits.shape[0]], rule[1], rule[2], rule[3], rule[4])
    for z0 in range((y0 + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        z_states = _block_states(states_of, n_states, z0)
        for y in range(y0, y1):
            for g in range(n_groups):
                row = n_groups * (y - y0) + g
                of_y = tables_y[y - y0, g]
                _pair_cells(of_y, margins[g], sizes[g], n_states, y, z0, pairs, row)
        for i in range(tables_x.shape[0]):
            x = first + i
            for y in range(max(x + 1, y0), y1):
                low, high = max(z0, y + 1), min(z0 + BLOCK, n_sites)
                if low >= high or too_near(of_all, x, y):
                    continue
                ready = -1.0
                for t in range(-1, traits.shape[0]):
                    for k in range(2):
                        # the base group once; then of each phenotype its cases and the rest
                        g, c = (0, base) if t < 0 else (traits[t, k], 1 + 2 * k)
                        if g < 0 or (t < 0 and k > 0):
                            continue
                        for s in range(states_of[x]):
                            count_states(
                                compacted, offsets[i, g, s], depths[i, g, s], n_states, y,
                                states_of[y], z0, BLOCK, z_states, counts,
                            )  # fmt: skip
                            of_x = tables_x[i, g, s]
                            row = n_groups * (y - y0) + g
                            rest, r, q = (pairs, row, 0) if s == 0 else (cells, c, 18)
                            fill_cells(
                                counts, n_states, of_x[0, y], of_x[1, y], of_x[n_states - 1, y],
                                of_x, z0, margins[g, s, x], rest, r, q, cells, c,
                                9 * s if s < 2 else 27, BLOCK,
                            )  # fmt: skip
                    if t < 0:
                        continue
                    if not direct:
                        _controls(cells, 27, traits[t, 1] >= 0, subtract)
                        ready = -1.0
                    ready = _score(
                        cells, 27, n_states, x, y, z0, low, high, t, ready, known, i, y - y0,
                        known_x, known_y, total, part, shift, bound, rank, rule, bits, place,
                        labels, logs, sums, work, best, alternating, heap, state,
                    )  # fmt: skip


_U2 = types.Array(types.uint64, 2, "C")
_I1, _I2, _I3 = (types.Array(types.int64, n, "C") for n in (1, 2, 3))
_P1, _P2 = (types.Array(types.int32, n, "C") for n in (1, 2))
_S1, _S3 = types.Array(types.int8, 1, "C"), types.Array(types.int8, 3, "C")
_T3, _T4, _T5 = (types.Array(types.int32, n, "C") for n in (3, 4, 5))
_N, _B = types.int64, types.boolean
_RULE = types.Tuple((_P2, _P1, _S1, types.int64, types.float64))
#: Of all phenotypes: groups of their cases and rest, subtract, and a row for each.
_TRAITS = (_I2, _B, _I2, _I2, _I2, _I1, types.Array(types.float64, 2, "C"), _P2, _RULE, _I1)
_TRAITS += (_P2, _S3, _I3, _I2)


def _stamped(stamp: str):
    """The kernels as functions of one tuple that hold `stamp`, as in `epistasis_kernels`."""

    def group_tables(arguments):
        if stamp:
            _group_tables(*arguments)

    def pairs(arguments):
        if stamp:
            _pair_task(*arguments)

    def triples(arguments):
        if stamp:
            _triple_task(*arguments)

    return group_tables, pairs, triples


@functools.cache
def shared_kernels():
    """The compiled kernels: tables of groups, pairs, triples."""
    text = source_text(epistasis_kernels, epistasis_shared_cells)
    signatures = (
        (_U2, _I1, _I1, _N, _I1, _N, _N, _T4),
        (_T4, _I1, _T3, _N, _N, *_TRAITS),
        (_T5, _T5, _U2, _I3, _I3, _I1, _T3, _I1, _N, _N, _N, _N, _I3, _I3, *_TRAITS),
    )
    functions = _stamped(hashlib.blake2b(text, digest_size=8).hexdigest())

    def compiled(function, signature):
        kernel = numba.njit([types.void(types.Tuple(signature))], nogil=True, cache=True)(function)
        return lambda *arguments: kernel(arguments)

    return tuple(map(compiled, functions, signatures))
