"""Margins of tables of four sites, and what they say together about the class.

With I(S) = N times the mutual information of the sites S and the class, Kirkwood's product of all
margins (bound 2 of `epistasis.interaction_cpu`) gives

    LR / 2 <= I(4 sites) - sum I(triples) + sum I(pairs) - sum I(sites) + N ln(sum q / N),

as BOOST's form for pairs. Here the filter by the best triple alone rules out little: 54 degrees of
freedom lie between a table of four sites and one of three, and 16 of them are of the interaction.
"""

from __future__ import annotations

from itertools import combinations

import numba
import numpy as np

#: Margins: of no site, of single sites, of pairs, of triples; the sign with which each counts in
#: the sum above, and in Kirkwood's product of shares.
_GROUPS = tuple(group for size in range(4) for group in combinations(range(4), size))
MARGIN_SIGNS = np.array([1.0 if len(group) % 2 else -1.0 for group in _GROUPS])


def _cells() -> np.ndarray:
    """Cell of each margin that a cell of the table adds to: int64 (15, 81)."""
    states = np.indices((3,) * 4).reshape(4, -1)
    return np.array(
        [sum((3**k * states[site] for k, site in enumerate(group[::-1])), np.zeros(81, np.int64))
         for group in _GROUPS]
    )  # fmt: skip


def _ways() -> tuple[np.ndarray, np.ndarray]:
    """How each margin is summed from a larger one.

    int64 (15,): which one, 15 for the table. int64 (15, 81): cells of the margin.
    """
    parents, cells = np.full(15, 15), np.zeros((15, 81), np.int64)
    for m, group in enumerate(_GROUPS):
        larger = group
        if len(group) < 3:
            extra = next(site for site in range(4) if site not in group)
            larger = tuple(sorted((*group, extra)))
            parents[m] = _GROUPS.index(larger)
            states = np.indices((3,) * len(larger)).reshape(len(larger), -1)
            of_group = [larger.index(site) for site in group]
        else:
            states, of_group = np.indices((3,) * 4).reshape(4, -1), list(group)
        number = np.zeros(states.shape[1], np.int64)
        for place in of_group:
            number = 3 * number + states[place]
        cells[m, : len(number)] = number
    return parents, cells


MARGIN_CELLS = _cells()
_PARENTS, _PARENT_CELLS = _ways()
_SIZES = np.array([3 ** len(group) for group in _GROUPS])


@numba.njit(nogil=True)
def margins_of_quad(counts):
    """Cells of all margins, float64 (15, 27, 2): controls and cases.

    counts: float64 (2, at least 81), the first site's state varying slowest.
    """
    margin = np.zeros((15, 27, 2))
    for i in range(15):
        m = 14 - i  # triples first
        if _PARENTS[m] == 15:
            for k in range(81):
                margin[m, _PARENT_CELLS[m, k], 0] += counts[0, k]
                margin[m, _PARENT_CELLS[m, k], 1] += counts[1, k]
        else:
            for k in range(_SIZES[_PARENTS[m]]):
                margin[m, _PARENT_CELLS[m, k], 0] += margin[_PARENTS[m], k, 0]
                margin[m, _PARENT_CELLS[m, k], 1] += margin[_PARENTS[m], k, 1]
    return margin


@numba.njit(nogil=True)
def alternating_information(margin, part, cost):
    """I of the table, less that of triples, plus pairs, less sites: an integer, as `part`.

    margin: of `margins_of_quad`. part: int64 (n_samples + 1,), n ln n in fixed point. cost: of all
    cells of the table, without that of the one cell of all samples.
    """
    total = -cost
    for m in range(15):
        there = np.int64(0)
        for k in range(_SIZES[m]):
            n0, n1 = np.int64(margin[m, k, 0]), np.int64(margin[m, k, 1])
            there += part[n0 + n1] - part[n0] - part[n1]
        if MARGIN_SIGNS[m] > 0.0:
            total += there
        else:
            total -= there
    return total


@numba.njit(nogil=True)
def quad_excess(counts, margin):
    """N ln(sum q / N), q Kirkwood's product of the margins: in nats.

    margin: of `margins_of_quad`, both classes present; shares of the classes take its place.
    """
    n = margin[0, 0, 0] + margin[0, 0, 1]
    for m in range(15):
        for k in range(_SIZES[m]):
            size = margin[m, k, 0] + margin[m, k, 1]
            for c in range(2):
                if margin[m, k, c] > 0.0:
                    share = margin[m, k, c] / size
                    margin[m, k, c] = share if MARGIN_SIGNS[m] > 0.0 else 1.0 / share
    total = 0.0
    for k in range(81):
        size = counts[0, k] + counts[1, k]
        if size == 0.0:
            continue
        q0, q1 = size, size
        for m in range(15):
            q0 *= margin[m, MARGIN_CELLS[m, k], 0]
            q1 *= margin[m, MARGIN_CELLS[m, k], 1]
        total += q0 + q1
    return n * np.log(total / n)
