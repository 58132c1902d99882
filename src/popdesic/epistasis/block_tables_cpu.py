"""Tables of blocks of sites, for CPU scans of any order: kernels of one vector of sites each."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from ..engine.extract_cpu import extract_bits
from ..engine.popcount_cpu import popcount
from .cells_cpu import count_states, fill_cells

#: Sites z of one block.
BLOCK = 64


class Costs(NamedTuple):
    """What a combination costs.

    Attributes
    ----------
    total, part : int64 arrays
        As of `ScanData`.
    shift : int
        The entry of the one cell of all samples.
    bound : float64 array, (4,)
        `CostBound`.
    bits : int
        `ScanData.lr_bits`; -1 if the cost is the sum of the entries.
    """

    total: np.ndarray
    part: np.ndarray
    shift: int
    bound: np.ndarray
    bits: int


@numba.njit(nogil=True)
def compact_under(words, carriers, first, out, row0, depth):
    """out[row0 + s * depth + w, z] = bits of site z, state s, under `carriers`; z >= first.

    words: uint64 (n_sites, n_states, n_words); carriers: uint64 (n_words,).
    """
    n_sites, n_states, n_words = words.shape
    for z in range(first, n_sites):
        for s in range(n_states):
            row, filled, pending = row0 + s * depth, 0, np.uint64(0)
            for w in range(n_words):
                mask = carriers[w]
                if mask == np.uint64(0):
                    continue
                bits = extract_bits(words[z, s, w], mask)
                pending |= bits << np.uint64(filled)
                size = popcount(mask)
                if filled + size >= 64:
                    out[row, z] = pending
                    row += 1
                    used = 64 - filled
                    pending = np.uint64(0) if used == 64 else bits >> np.uint64(used)
                    filled = size - used
                else:
                    filled += size
            if filled > 0:
                out[row, z] = pending


@numba.njit(nogil=True)
def block_states(states_of, n_states, z0):
    """Stored states that occur in a block of sites."""
    if n_states == 2:
        return 2
    found = 2
    for z in range(z0, min(z0 + BLOCK, states_of.shape[0])):
        found = max(found, states_of[z])
    return found


@numba.njit(nogil=True)
def pair_cells(tables, sizes, margins, n_states, y, z0, cells, first):
    """cells[first + c, :9] = the tables of (y, z); tables: those of y's `_row_tables`.

    cells: int32 (at least first + 2, 27, BLOCK); the rest of it is overwritten.
    """
    for c in range(2):
        of_y = margins[c, 0, y], margins[c, 1, y], margins[c, n_states - 1, y]
        there = cells, first + c
        fill_cells(
            tables[c, :, :, z0 : z0 + BLOCK], n_states, of_y, margins[c], z0, sizes[c],
            (*there, 18), (*there, 0), BLOCK,
        )  # fmt: skip


@numba.njit(nogil=True)
def triple_cells(of_x, chunk, i, x, y, z0, scan, pairs, first, counts, cells):
    """cells[c, :27] = the tables of (x, y, z), x's third state last; with x missing: from row 27.

    of_x: pair tables of x. chunk: compacted planes, where those of its sites start and how many
    words deep they are; x is number i. scan: n_states, margins, states of sites, states of a block.
    pairs[first + c]: tables of (y, z). counts: int32 (n_states, n_states, BLOCK).
    """
    (compacted, offsets, depths), (n_states, margins, states_of, z_states) = chunk, scan
    last = n_states - 1
    for c in range(2):
        for g in range(states_of[x]):
            count_states(
                compacted, offsets[i, c, g], depths[i, c, g], n_states, y, states_of[y], z0, BLOCK,
                z_states, counts,
            )  # fmt: skip
            # The third state of x: the table of (y, z) minus the stored states.
            of_y = of_x[c, g, 0, y], of_x[c, g, 1, y], of_x[c, g, last, y]
            rest = (pairs, first + c, 0) if g == 0 else (cells, c, 18)
            fill_cells(
                counts, n_states, of_y, of_x[c, g], z0, margins[c, g, x], rest,
                (cells, c, 9 * g if g < 2 else 27), BLOCK,
            )  # fmt: skip
