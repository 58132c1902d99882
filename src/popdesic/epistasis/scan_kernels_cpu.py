"""Kernels of the pair and triple scans on CPUs (`epistasis.py` shares them among threads).

    count[c, g, s, t, z] = popcount(compacted(x, g, c)[y, s] & compacted(x, g, c)[z, t])

For x, class c and each stored state g of x, the carriers' bits of every later site are compacted
(PEXT), so that the depth of a product is the number of carriers. Planes are word-major with the
sites contiguous: a word of y is ANDed with a vector of z; no sum crosses lanes. Stored counts give
the 27 cells of a block of z by subtraction from pair tables. A lower bound of each cost, proved in
`epistasis_cells`, is compared with the worst hit kept; only what may enter is looked up exactly.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import numba
import numpy as np
from numba import types

from ..engine import bitgemm_cpu, extract_cpu
from . import (
    block_tables_cpu,
    cells_cpu,
    hits_cpu,
    interaction_cpu,
    margins_cpu,
    products_cpu,
    scan_interaction_cpu,
)
from .block_tables_cpu import BLOCK, Costs, block_states, compact_under, pair_cells, triple_cells
from .cells_cpu import GROUP, count_states, sum_logs
from .hits_cpu import (
    KEPT,
    cell_cost,
    combination_key,
    exact_cost,
    offer,
    permitted,
    too_near,
)
from .scan_data import MOST_SITES
from .scan_interaction_cpu import collect_interactions

#: Sites y of one tile.
TILE = 8
#: Padding of the rows of planes, in sites (one cache line): rows whose bytes are a power of two map
#: to the same cache sets.
SKEW = 8


@numba.njit(nogil=True)
def _row_tables(planes0, planes1, n_states, states_of, x, first, out):
    """out[c, s, t, z]: pair tables of site x with every site of the block of `first` or later."""
    for z0 in range(first // BLOCK * BLOCK, states_of.shape[0], BLOCK):
        z_states = block_states(states_of, n_states, z0)
        for c in range(2):
            planes = planes0 if c == 0 else planes1
            depth = planes.shape[0] // n_states
            count_states(
                planes, 0, depth, n_states, x, states_of[x], z0, BLOCK, z_states,
                out[c, :, :, z0 : z0 + BLOCK],
            )  # fmt: skip


@numba.njit(nogil=True)
def _collect(cells, n_cells, n_states, x, y, z0, low, high, costs, logs, kept):
    """Offer the triples (x, y, z), z in [low, high), to the heap; x < 0: the pairs (y, z).

    Costs are sums less `shift`, the entry of the one cell of all called samples, which differs
    from table to table where genotypes are missing. logs: from `sum_logs`.
    """
    (total, part, shift, bound, _), (sums, work) = costs, logs
    rank, rule, heap, state = kept
    scale, slack = bound[2], bound[3]
    limit = np.float64(state[1]) * scale + slack
    threshold = limit + np.float64(shift) * scale
    if n_states == 2:
        reached = 0
        for z in range(work.shape[0]):
            reached += work[z] <= threshold
        if reached == 0:
            return
    for z in range(low, high):
        i = z - z0
        if n_states == 3:
            n0, n1 = sums[0, i], sums[1, i]
            shift = cell_cost(n0, n1, total, part)
            threshold = limit + np.float64(shift) * scale
        if work[i] > threshold:
            continue
        cost = exact_cost(cells, n_cells, i, total, part) - shift
        if cost <= state[1] and permitted(rule, cells, n_cells, i, x, y, z):
            if x < 0:
                offer(heap, state, cost, combination_key(rank, y, z, -1), y, z, -1)
            else:
                offer(heap, state, cost, combination_key(rank, x, y, z), x, y, z)


@numba.njit(nogil=True)
def _pair_task(tables, sizes, margins, n_states, x, known, costs, kept):
    """All pairs (x, y) of one x. tables: (2, n_states, n_states, width) of `_row_tables`.

    known: int64 (width,), with `costs.bits` what each site says about the class, if nothing is
    missing.
    """
    n_sites, bound = kept.rank.shape[0], costs.bound
    best, alternating = np.zeros(BLOCK, np.int64), np.zeros(BLOCK, np.int64)
    cells = np.empty((2, 27, BLOCK), np.int32)
    logs = np.empty((2, BLOCK), np.int32), np.empty(BLOCK, np.float32)
    for z0 in range((x + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        pair_cells(tables, sizes, margins, n_states, x, z0, cells, 0)
        low, high = max(z0, x + 1), min(z0 + BLOCK, n_sites)
        sum_logs(cells, 9, np.float32(bound[0]), np.float32(bound[1]), *logs, BLOCK)
        if costs.bits < 0:
            _collect(cells, 9, n_states, -1, x, z0, low, high, costs, logs, kept)
            continue
        if n_states == 2:
            for i in range(BLOCK):
                best[i] = max(known[x], known[z0 + i])
                alternating[i] = known[x] + known[z0 + i]
        collect_interactions(
            cells, 9, n_states, -1, x, z0, low, high, costs, logs, kept, (best, alternating)
        )


@numba.njit(nogil=True)
def _row_information(tables, sizes, margins, n_states, x, first, total, part, shift, out):
    """out[z] = I(xz; class) of site x and every site of the block of `first` or later.

    For sites without missing genotypes; tables: those of x's `_row_tables`.
    """
    cells = np.empty((2, 27, BLOCK), np.int32)
    for z0 in range(first // BLOCK * BLOCK, out.shape[0] - BLOCK + 1, BLOCK):
        pair_cells(tables, sizes, margins, n_states, x, z0, cells, 0)
        for i in range(BLOCK):
            out[z0 + i] = shift - exact_cost(cells, 9, i, total, part)


@numba.njit(nogil=True)
def _triple_task(
    tables_y, tables_x, planes, sizes, margins, states_of, first, y0, y1, known, costs, kept
):
    """All triples (x, y, z) of the chunk of x that starts at `first` and y in [y0, y1).

    tables_y, tables_x: (sites, 2, n_states, n_states, width) pair tables of these y and x.
    planes: uint64 (rows, width), compacted, then (x, 2, n_states) each, where a state's planes
    start and how many words deep they are. known: as in `_pair_task`, then those of `tables_x` and
    `tables_y`, int64 (sites, width), see `_row_information`.
    """
    known, known_x, known_y = known
    n_states, rule, bound = tables_x.shape[2], kept.rule, costs.bound
    best, alternating = np.zeros(BLOCK, np.int64), np.zeros(BLOCK, np.int64)
    n_sites = kept.rank.shape[0]
    counts = np.empty((n_states, n_states, BLOCK), np.int32)
    # Rows 0 to 26: the table, x's third state last; then the part with x missing.
    cells = np.empty((2, 36, BLOCK), np.int32)
    pairs = np.empty((2 * (y1 - y0), 27, BLOCK), np.int32)
    logs = np.empty((2, BLOCK), np.int32), np.empty(BLOCK, np.float32)
    for z0 in range((y0 + 1) // BLOCK * BLOCK, n_sites, BLOCK):
        z_states = block_states(states_of, n_states, z0)
        for y in range(y0, y1):
            pair_cells(tables_y[y - y0], sizes, margins, n_states, y, z0, pairs, 2 * (y - y0))
        for i in range(tables_x.shape[0]):
            x = first + i
            for y in range(max(x + 1, y0), y1):
                low, high = max(z0, y + 1), min(z0 + BLOCK, n_sites)
                if low >= high or too_near(rule, x, y):
                    continue
                triple_cells(
                    tables_x[i], planes, i, x, y, z0, (n_states, margins, states_of, z_states),
                    pairs, 2 * (y - y0), counts, cells,
                )  # fmt: skip
                sum_logs(cells, 27, np.float32(bound[0]), np.float32(bound[1]), *logs, BLOCK)
                if costs.bits < 0:
                    _collect(cells, 27, n_states, x, y, z0, low, high, costs, logs, kept)
                    continue
                if n_states == 2:
                    of_xy, of_x_and_y = known_x[i, y], known[x] + known[y]
                    for k in range(BLOCK):
                        of_xz, of_yz = known_x[i, z0 + k], known_y[y - y0, z0 + k]
                        best[k] = max(of_xy, of_xz, of_yz)
                        alternating[k] = of_xy + of_xz + of_yz - of_x_and_y - known[z0 + k]
                collect_interactions(
                    cells, 27, n_states, x, y, z0, low, high, costs, logs, kept,
                    (best, alternating),
                )  # fmt: skip


_U2, _U3 = types.Array(types.uint64, 2, "C"), types.Array(types.uint64, 3, "C", readonly=True)
_R1 = types.Array(types.int64, 1, "C", readonly=True)
_I1, _I2, _I3 = (types.Array(types.int64, n, "C") for n in (1, 2, 3))
_T3, _T4, _T5 = (types.Array(types.int32, n, "C") for n in (3, 4, 5))
_N = types.int64
_COSTS = types.NamedTuple((_R1, _R1, _N, types.Array(types.float64, 1, "C"), _N), Costs)


def _stamped(stamp: str):
    """The kernels as functions of one tuple that hold `stamp`, in the order of `kernels`.

    numba keeps compiled code as long as the function's own file is the same; what is held by a
    function is part of the key as well, so that a change of the modules below is noticed.
    """

    def compact(arguments):
        if stamp:
            words, x, state, first, out, row0, depth = arguments
            compact_under(words, words[x, state], first, out, row0, depth)

    def row_tables(arguments):
        if stamp:
            _row_tables(*arguments)

    def pairs(arguments):
        if stamp:
            _pair_task(*arguments)

    def triples(arguments):
        if stamp:
            _triple_task(*arguments)

    def row_information(arguments):
        if stamp:
            _row_information(*arguments)

    return compact, row_tables, pairs, triples, row_information


def _source_text() -> bytes:
    """Source of the modules that the kernels are made of."""
    sources = (
        *(bitgemm_cpu, extract_cpu, cells_cpu, hits_cpu, scan_interaction_cpu),
        *(products_cpu, interaction_cpu, margins_cpu, block_tables_cpu),
    )
    return b"".join(Path(module.__file__).read_bytes() for module in sources)


@functools.cache
def kernels():
    """The compiled kernels: compact, row tables, pairs, triples, row information."""
    text = _source_text()
    signatures = (
        (_U3, _N, _N, _N, _U2, _N, _N),
        (_U2, _U2, _N, _I1, _N, _N, _T4),
        (_T4, _I1, _T3, _N, _N, _I1, _COSTS, KEPT),
        (
            *(_T5, _T5, types.Tuple((_U2, _I3, _I3)), _I1, _T3, _I1, _N, _N, _N),
            *(types.Tuple((_I1, _I2, _I2)), _COSTS, KEPT),
        ),
        (_T4, _I1, _T3, _N, _N, _N, _R1, _R1, _N, _I1),
    )
    functions = _stamped(hashlib.blake2b(text, digest_size=8).hexdigest())

    def compiled(function, signature):
        kernel = numba.njit([types.void(types.Tuple(signature))], nogil=True, cache=True)(function)
        return lambda *arguments: kernel(arguments)

    return tuple(map(compiled, functions, signatures))


def padded_width(n_sites: int) -> int:
    """Columns of arrays with one column per site."""
    if n_sites > MOST_SITES:
        raise ValueError(f"{n_sites} sites: at most {MOST_SITES} can be scanned")
    return -(-n_sites // BLOCK) * BLOCK + SKEW


def word_major(words: np.ndarray, width: int) -> np.ndarray:
    """Planes with sites contiguous, whole groups of words: uint64 (n_states * depth, width)."""
    n_sites, n_states, n_words = words.shape
    out = np.zeros((n_states, whole_groups(n_words), width), np.uint64)
    out[:, :n_words, :n_sites] = np.moveaxis(words, 0, 2)
    return out.reshape(-1, width)


def whole_groups(n_words):
    """Words of a plane with those of zeros that fill its last group."""
    return -(-n_words // GROUP) * GROUP
