"""Exhaustive scan of pairs by residuals on CPUs (statistic and bound: `epistasis.residual_cpu`).

    sum[s, t, z] = sum_b 2^b popcount(x's state s & slice b of the levels & z's state t)

As `epistasis_kernels`: the sites z of a block are lanes of vectors. For x, its planes are joined
with the bit slices of the levels once, so that counts and sums are nine streams of AND and
popcount. The cells follow from margins, of counts and of sums alike, since both add up. The bound
is computed in float32; what may enter is computed by `host.phenotype` from integers.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from ..engine import bitgemm_cpu
from . import cells_cpu, hits_cpu, interaction_cpu, residual_cpu
from .cells_cpu import count_row_of_state, fill_cells
from .hits_cpu import (
    KEPT,
    Heaps,
    Kept,
    combination_key,
    offer,
    partner_rule,
    permitted,
    ranks_of_sites,
    too_near,
)
from .interaction_cpu import UNIT_BITS, fixed_cost, least_of
from .residual_cpu import MAX_SAMPLES, half_residual_statistic, level_planes
from .scan_data import LEVEL_BITS, ZERO_LEVEL, Hits, ResidualData
from .scan_kernels_cpu import BLOCK, TILE, padded_width, word_major

#: The streams of a state: its plane, and the plane and each slice of the levels.
STREAMS = 1 + LEVEL_BITS
#: Largest error of a sum of squares in float32, relative to it: 16 roundings, twice.
FLOAT_ERROR = 2.0**-19


@numba.njit(nogil=True)
def _join(words, slices, x, depth, out):
    """out[(stream * n_states + s) * depth + w, 0] = words of x's state s in a stream."""
    n_states, n_words = words.shape[1], words.shape[2]
    for s in range(n_states):
        for w in range(n_words):
            word = words[x, s, w]
            out[s * depth + w, 0] = word
            for b in range(LEVEL_BITS):
                out[((1 + b) * n_states + s) * depth + w, 0] = word & slices[b, w]


@numba.njit(nogil=True)
def _count(joined, planes, n_states, x_states, z_states, z0, found, counts, sums):
    """counts, sums: int32 (n_states, n_states, BLOCK) of the stored states of x and of a block."""
    depth = planes.shape[0] // n_states
    counts[:] = 0
    sums[:] = 0
    found[:] = 0
    for s in range(x_states):
        for stream in range(STREAMS):
            i = (stream * n_states + s) * depth
            count_row_of_state(joined, i, 0, planes, 0, depth, z0, BLOCK, z_states, found, s)
            for t in range(z_states):
                for z in range(BLOCK):
                    if stream == 0:
                        counts[s, t, z] = found[s, t, z]
                    else:
                        sums[s, t, z] += found[s, t, z] << np.int32(stream - 1)


@numba.njit(nogil=True)
def _squares(cells, first, step, third, i):
    """S^2 / n of the cells first, first + step, first + 2 step together, in lane i; float32."""
    n = cells[0, first, i] + cells[0, first + step, i] + cells[0, third, i]
    s = cells[1, first, i] + cells[1, first + step, i] + cells[1, third, i] - ZERO_LEVEL * n
    return np.float32(s) * np.float32(s) / np.float32(max(n, 1))


@numba.njit(nogil=True)
def _bounds(cells, n_states, known_x, known, z0, out, whole):
    """out[i] = SS(xz) - max(SS(x), SS(z)) of the table in lane i, whole[i] = SS(xz): float32."""
    for i in range(BLOCK):
        whole[i] = np.float32(0)
    for k in range(9):
        for i in range(BLOCK):
            n = cells[0, k, i]
            s = np.float32(cells[1, k, i] - ZERO_LEVEL * n)
            whole[i] += s * s / np.float32(max(n, 1))
    for i in range(BLOCK):
        if n_states == 2:
            best = max(known_x, known[z0 + i])
        else:
            of_x = of_z = np.float32(0)
            for a in range(3):
                of_x += _squares(cells, 3 * a, 1, 3 * a + 2, i)
                of_z += _squares(cells, a, 3, a + 6, i)
            best = max(of_x, of_z)
        out[i] = whole[i] - best


@numba.njit(nogil=True)
def _task(
    words, slices, planes, states_of, margins, sizes, known, start, stop, variance, kept
):  # fmt: skip
    """All pairs (x, z), start <= x < stop.

    margins: int32 (2, n_states, width), people and levels of each stored state; sizes: both of all
    samples; known: float32 (width,), SS of each site, read if nothing is missing.
    """
    rank, rule, heap, state = kept
    n_sites, n_states = words.shape[0], words.shape[1]
    depth, last = planes.shape[0] // n_states, n_states - 1
    joined = np.zeros((STREAMS * n_states * depth, 1), np.uint64)
    shape = (n_states, n_states, BLOCK)
    found, tables = np.zeros(shape, np.int32), np.zeros((2, *shape), np.int32)
    cells = np.zeros((2, 27, BLOCK), np.int32)
    bounds, whole = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    counts, sums = np.empty(9, np.int64), np.empty(9, np.int64)
    people = np.zeros((2, 9, 1), np.int32)  # as one class
    for x in range(start, stop):
        if x + 1 >= n_sites:
            break
        _join(words, slices, x, depth, joined)
        for z0 in range((x + 1) // BLOCK * BLOCK, n_sites, BLOCK):
            low, high = max(z0, x + 1), min(z0 + BLOCK, n_sites)
            z_states = 2
            for z in range(low, high):
                z_states = max(z_states, states_of[z])
            _count(
                joined, planes, n_states, states_of[x], z_states, z0, found, tables[0], tables[1]
            )
            for c in range(2):
                of_x = margins[c, 0, x], margins[c, 1, x], margins[c, last, x]
                fill_cells(
                    tables[c], n_states, of_x, margins[c], z0, sizes[c], (cells, c, 18),
                    (cells, c, 0), BLOCK,
                )  # fmt: skip
            _bounds(cells, n_states, known[x], known, z0, bounds, whole)
            needed = least_of(min(state[1], np.int64(0)), UNIT_BITS)
            for z in range(low, high):
                i = z - z0
                error = FLOAT_ERROR * np.float64(whole[i])
                if np.float64(bounds[i]) + error < 2.0 * needed * variance:
                    continue
                if too_near(rule, x, z):
                    continue
                for k in range(9):
                    counts[k] = cells[0, k, i]
                    people[0, k, 0] = cells[0, k, i]
                    sums[k] = np.int64(cells[1, k, i]) - ZERO_LEVEL * counts[k]
                value = half_residual_statistic(counts, sums, variance)
                cost = fixed_cost(value, UNIT_BITS)
                if cost <= min(state[1], np.int64(0)) and permitted(rule, people, 9, 0, -1, x, z):
                    offer(heap, state, cost, combination_key(rank, x, z, -1), x, z, -1)
                    needed = least_of(min(state[1], np.int64(0)), UNIT_BITS)


_N = types.int64
_SIGNATURE = (
    types.Array(types.uint64, 3, "C", readonly=True),
    types.Array(types.uint64, 2, "C"),
    types.Array(types.uint64, 2, "C"),
    types.Array(_N, 1, "C"),
    types.Array(types.int32, 3, "C"),
    types.Array(_N, 1, "C"),
    types.Array(types.float32, 1, "C"),
    *(_N, _N, types.float64, KEPT),
)


def _stamped(stamp: str):
    """The task as a function of one tuple that holds `stamp` (see `epistasis_kernels`)."""

    def pairs(arguments):
        if stamp:
            _task(*arguments)

    return pairs


@functools.cache
def residual_scan_kernel():
    sources = (bitgemm_cpu, cells_cpu, hits_cpu, interaction_cpu, residual_cpu)
    text = b"".join(Path(module.__file__).read_bytes() for module in sources)
    function = _stamped(hashlib.blake2b(text, digest_size=8).hexdigest())
    signature = types.void(types.Tuple(_SIGNATURE))
    return numba.njit([signature], nogil=True, cache=True)(function)


def scan_residual_pairs(
    data: ResidualData, first: range, top: int, cutoff: int | None = None, *, threads: int = 1
) -> Hits:
    """See `scan_residual_pairs`."""
    if data.n_samples > MAX_SAMPLES:
        raise ValueError(f"{data.n_samples} samples: at most {MAX_SAMPLES} can be scanned")
    width = padded_width(data.n_sites)
    words = np.ascontiguousarray(data.planes.words, np.uint64)
    slices = np.zeros((LEVEL_BITS, words.shape[2]), np.uint64)
    made = level_planes(data.levels)
    slices[:, : made.shape[1]] = made
    margins = _margins(words, slices, width)
    sizes = np.array([data.n_samples, int(data.levels.sum(dtype=np.int64))], np.int64)
    states_of = np.full(data.n_sites, 2, np.int64)
    if words.shape[1] == 3:
        states_of[margins[0, 2, : data.n_sites] > 0] = 3
    known = _known(margins, sizes) if words.shape[1] == 2 else np.zeros(width, np.float32)
    rule, planes = partner_rule(data.partners), word_major(words, width)
    rank = ranks_of_sites(data.rank)
    heaps, kernel = Heaps(top, cutoff, threads), residual_scan_kernel()

    def work(start: int, stop: int) -> None:
        heap, state = heaps.free.get()
        kernel((
            words, slices, planes, states_of, margins, sizes, known, start, stop,
            float(data.variance), Kept(rank, rule, heap, state),
        ))  # fmt: skip
        heaps.free.put((heap, state))

    last = min(first.stop, data.n_sites)
    starts = range(first.start, last, TILE)
    run_tasks(work, [(x, min(x + TILE, last)) for x in starts], threads)
    return heaps.hits(2)


def _margins(words: np.ndarray, slices: np.ndarray, width: int) -> np.ndarray:
    """People and sum of levels of each stored state of each site: int32 (2, n_states, width)."""
    n_sites, n_states, _ = words.shape
    out = np.zeros((2, n_states, width), np.int32)
    for state in range(n_states):
        plane = words[:, state]
        out[0, state, :n_sites] = np.bitwise_count(plane).sum(axis=1, dtype=np.int32)
        for b, bits in enumerate(slices):
            found = np.bitwise_count(plane & bits).sum(axis=1, dtype=np.int32)
            out[1, state, :n_sites] += found << b
    return out


def _known(margins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """SS of each site if nothing is missing, float32 (width,)."""
    third = sizes[:, None] - margins.sum(axis=1)
    n, levels = np.concatenate([margins, third[:, None]], axis=1).astype(np.float64)
    return ((levels - ZERO_LEVEL * n) ** 2 / np.maximum(n, 1)).sum(axis=0).astype(np.float32)
