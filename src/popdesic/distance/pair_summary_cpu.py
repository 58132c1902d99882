"""Sums and histograms over all pairs of a matrix, a block of rows at a time, in one pass.

Shapes: block (m, n) of the rows first ... first + m - 1; cell and group (n,); cells (c, c).
Loops: rows, then columns, so that every sum is made in the order of the samples.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def add_pair_rows(block, first, cell, group, edges, total, count, within, between):
    n, bars = block.shape[1], len(edges) - 1
    sums, counts = np.empty(len(total)), np.empty(len(total))
    low, high = edges[0], edges[bars]
    scale = bars / (high - low) if high > low else 0.0
    for i in range(block.shape[0]):
        own = first + i
        sums[:] = 0.0
        counts[:] = 0.0
        for j in range(n):
            value = block[i, j]
            if j == own or not np.isfinite(value):
                continue
            sums[cell[j]] += value
            counts[cell[j]] += 1.0
            if j < own:
                continue
            value = min(max(value, low), high)
            bar = min(int((value - low) * scale), bars - 1)
            # rounding may have put it one bar too low or too high
            while bar > 0 and value < edges[bar]:
                bar -= 1
            while bar < bars - 1 and value >= edges[bar + 1]:
                bar += 1
            if group[j] == group[own]:
                within[bar] += 1.0
            else:
                between[bar] += 1.0
        row = cell[own]
        for other in range(len(total)):
            total[row, other] += sums[other]
            count[row, other] += counts[other]


def add_rows(
    block: np.ndarray,
    first: int,
    cell: np.ndarray,
    group: np.ndarray,
    edges: np.ndarray,
    total: np.ndarray,
    count: np.ndarray,
    within: np.ndarray,
    between: np.ndarray,
) -> None:
    """Add some rows to sums of cells and to histograms of pairs; no sample is its own pair.

    Parameters
    ----------
    block : float64 array, (m, n)
        Values that are not finite do not count.
    first : int
        Number of the first row.
    cell, group : int64 arrays, (n,)
        Row and column of a sample's cell, and its group.
    edges : float64 array, (bars + 1,)
        Rising. The last bar holds its upper edge; values beyond the edges count in the bars at the
        ends.
    total, count : float64 arrays, (c, c)
        Sums of the values of pairs, both orders of a pair, and their numbers.
    within, between : float64 arrays, (bars,)
        Pairs of one group and of two, each once.
    """
    add_pair_rows(block, first, cell, group, edges, total, count, within, between)
