"""The statistic that scans for interactions rank by, fitted in one place for every device.

A table has the counts n of k sites' genotypes g (k = 2 to 4) in two classes c. The statistic is

    LR = 2 sum n ln(n / m),

m the maximum-likelihood fit of the log-linear model with all terms except the one of all k sites
and the class: pairs keep ij, ic, jc; triples keep ijk, ijc, ikc, jkc; quads likewise. LR is G2 of
the saturated against this model, 0 where the sites' effects on the log-odds of being a case add up
(for triples: add up with those of their pairs). Costs are -LR / 2 in nats, the unit of the mutual
information.

Bounds. m maximises the likelihood, so that every other member q of the model, of the same total,
has LR / 2 <= sum n ln(n / q). Two members cost little:

1. Conditional independence. Given the sites S of one margin, class and genotypes are independent:
   q = n_g n_{S,c} / n_S, a function of g times one of (S, c). Its sum is

       LR / 2 <= I(g; c) - I(S; c),

   I = N times the mutual information in nats. The best S gives the first filter: pairs
   I(ij; c) - max(I(i; c), I(j; c)), triples I(ijk; c) - max over pairs of sites I(ab; c). It needs
   sums of n ln n alone, which are exact in fixed point. Without missing genotypes I(i; c) belongs
   to a site and I(ij; c) to a pair: a scan by mutual information with an offset per site (per
   pair). With missing genotypes they are those of the people who are called at all sites.
2. Kirkwood's product of the margins (BOOST, Wan et al. 2010, Am J Hum Genet 87:325), normalised in
   each combination of genotypes: log-odds

       pairs    l_i + l_j - l,    triples    l_ij + l_ik + l_jk - l_i - l_j - l_k + l,
       quads    the sum over triples, less pairs, plus sites, less l,

   l_S the log-odds of being a case in a cell of the margin S. They are sums of functions of fewer
   than k sites, and n_g is kept, so q is a member of the model, whatever the functions. (They are
   shrunk by one person towards l, so that they are finite.) BOOST divides by one normaliser for all
   combinations; one for each is the step of iterative scaling to the margin n_g, which never makes
   a bound worse.

Fit. With n_g kept, the model is a logistic regression of the class on 5 (19, 65) indicators of the
genotypes of fewer than k sites. It is fitted by Newton's method from bound 2, with halved steps
where the likelihood would fall, and by iterative scaling to the margins where that does not help.
Every step is a member of the model, so the fit stops as soon as its bound falls below what the
caller needs. It ends when Newton's decrement, gradient times step, is at most `TOLERANCE` nats: the
likelihood is then about as far from its maximum, also where the maximum lies at infinite
parameters. Iterative scaling alone approaches that only as 1 / steps. Directions without
information (genotypes that nobody carries) are left out.

Order. -LR / 2 is rounded to `UNIT` nats, in the fixed point of the scan. Rounding errors of the
fit are below N 2**-46 nats for N people. Every device hands tables to this code, the first site's
state varying slowest, so that equal tables give equal costs, and the list of hits is the same.
"""

from __future__ import annotations

import functools
from itertools import combinations

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from .margins_cpu import MARGIN_CELLS, MARGIN_SIGNS, margins_of_quad

#: Bits after the point of a cost in nats; UNIT = 2**-UNIT_BITS.
UNIT_BITS = 20
UNIT = 2.0**-UNIT_BITS
#: Newton's decrement, in nats, at which a fit has converged.
TOLERANCE = 2.0**-30
#: Most steps of a fit, and most halvings of a step before the margins are scaled instead.
STEPS, HALVINGS = 200, 5
#: Most change of a log-odds in one step of Newton, of a logarithm in one step of scaling.
MOST_STEP = 4.0
#: A pivot of this size, relative to its diagonal element, holds no information.
NO_PIVOT = 1e-14
#: A gradient, in people, along a direction without information: the fit is far from its end.
LEAST_GRADIENT = 1e-6
#: Tables of one task.
TABLES_A_TASK = 128


def _indicators(order: int) -> np.ndarray:
    """Parameters of each combination of genotypes, int64 (3**order, m), -1: none.

    Indicators of states 0 and 1 of no site, of one, for triples of two, for quads of three.
    """
    groups = [group for size in range(order) for group in combinations(range(order), size)]
    number: dict[tuple, int] = {}
    rows = []
    for cell in np.ndindex(*(3,) * order):
        names = [(group, *(cell[site] for site in group)) for group in groups]
        active = [name for name in names if 2 not in name[1:]]
        rows.append(sorted(number.setdefault(name, len(number)) for name in active))
    width = max(map(len, rows))
    return np.array([row + [-1] * (width - len(row)) for row in rows], np.int64)


PAIR_TERMS, TRIPLE_TERMS, QUAD_TERMS = (_indicators(order) for order in (2, 3, 4))
_N_PARAMETERS = tuple(int(table.max()) + 1 for table in (PAIR_TERMS, TRIPLE_TERMS, QUAD_TERMS))


@numba.njit(nogil=True)
def _times_log(n):
    return n * np.log(n) if n > 0.0 else 0.0


@numba.njit(nogil=True)
def margins_of(counts, order):
    """Cells of the margins, float64 (6, 9, 2): sites 0, 1, 2 (3 cells), pairs 01, 02, 12."""
    margin = np.zeros((6, 9, 2))
    for class_ in range(2):
        for a in range(3):
            for b in range(3):
                if order == 2:
                    n = counts[class_, 3 * a + b]
                    margin[0, a, class_] += n
                    margin[1, b, class_] += n
                    continue
                whole = 0.0
                for c in range(3):
                    n = counts[class_, 9 * a + 3 * b + c]
                    whole += n
                    margin[4, 3 * a + c, class_] += n
                    margin[5, 3 * b + c, class_] += n
                    margin[2, c, class_] += n
                margin[3, 3 * a + b, class_] = whole
                margin[0, a, class_] += whole
                margin[1, b, class_] += whole
    return margin


@numba.njit(nogil=True)
def _start(counts, order, eta):
    """eta[k] = Kirkwood's log-odds of combination k (bound 2); returns the sum of a saturated fit.

    counts: float64 (2, at least 3**order), both classes present.
    """
    n_cells = 9 if order == 2 else 27
    margin = margins_of(counts, order)
    saturated, whole0, whole1 = 0.0, 0.0, 0.0
    for k in range(n_cells):
        n0, n1 = counts[0, k], counts[1, k]
        whole0 += n0
        whole1 += n1
        saturated += _times_log(n0) + _times_log(n1) - _times_log(n0 + n1)
    share = whole1 / (whole0 + whole1)
    odds = np.zeros((6, 9))
    for i in range(2 if order == 2 else 6):
        for cell in range(3 if i < 3 else 9):
            n0, n1 = margin[i, cell, 0], margin[i, cell, 1]
            odds[i, cell] = np.log((n1 + share) / (n0 + 1.0 - share))
    whole = np.log(whole1 / whole0)
    for k in range(n_cells):
        if order == 2:
            eta[k] = odds[0, k // 3] + odds[1, k % 3] - whole
        else:
            a, b, c = k // 9, k // 3 % 3, k % 3
            pairs = odds[3, 3 * a + b] + odds[4, 3 * a + c] + odds[5, 3 * b + c]
            eta[k] = pairs - odds[0, a] - odds[1, b] - odds[2, c] + whole
    return saturated


@numba.njit(nogil=True)
def _start_quad(counts, eta):
    """`_start` of a table of four sites."""
    margin = margins_of_quad(counts)
    whole0, whole1 = margin[0, 0]
    share = whole1 / (whole0 + whole1)
    saturated = 0.0
    for k in range(81):
        n0, n1 = counts[0, k], counts[1, k]
        saturated += _times_log(n0) + _times_log(n1) - _times_log(n0 + n1)
        eta[k] = -np.log(whole1 / whole0)
    for m in range(1, len(MARGIN_SIGNS)):
        for cell in range(27):
            n0, n1 = margin[m, cell]
            margin[m, cell, 0] = np.log((n1 + share) / (n0 + 1.0 - share))
        for k in range(81):
            eta[k] += MARGIN_SIGNS[m] * margin[m, MARGIN_CELLS[m, k], 0]
    return saturated


@numba.njit(nogil=True)
def likelihood(counts, n_cells, eta, residual, weight):
    """Log-likelihood of log-odds eta; per combination: cases less fitted cases, their variance."""
    total = 0.0
    for k in range(n_cells):
        n1 = counts[1, k]
        n = counts[0, k] + n1
        if n == 0.0:
            residual[k] = weight[k] = 0.0
            continue
        small = np.exp(-abs(eta[k]))
        total += n1 * eta[k] - n * (max(eta[k], 0.0) + np.log1p(small))
        p = (1.0 if eta[k] >= 0.0 else small) / (1.0 + small)
        residual[k] = n1 - n * p
        weight[k] = n * small / (1.0 + small) ** 2
    return total


@numba.njit(nogil=True)
def newton_step(design, n_parameters, residual, weight, step):
    """step[k] = Newton's change of the log-odds of combination k; returns the decrement.

    Infinite if the likelihood rises in a direction in which its curvature has vanished.
    """
    n_cells, most = design.shape
    gradient = np.zeros(n_parameters)
    lower = np.zeros((n_parameters, n_parameters))
    for k in range(n_cells):
        for a in range(most):
            i = design[k, a]
            if i < 0:
                break
            gradient[i] += residual[k]
            for b in range(a + 1):  # ascending in a row
                lower[i, design[k, b]] += weight[k]
    # Cholesky; a row without information of its own gets the pivot 0 and no step
    for i in range(n_parameters):
        whole = lower[i, i]
        for j in range(i + 1):
            value = lower[i, j]
            for m in range(j):
                value -= lower[i, m] * lower[j, m]
            if j < i:
                lower[i, j] = value / lower[j, j] if lower[j, j] > 0.0 else 0.0
            else:
                lower[i, i] = np.sqrt(value) if value > NO_PIVOT * whole else 0.0
    decrement = 0.0
    for i in range(n_parameters):
        value = gradient[i]
        for m in range(i):
            value -= lower[i, m] * gradient[m]
        if lower[i, i] == 0.0 and abs(value) > LEAST_GRADIENT:
            decrement = np.inf
        gradient[i] = value / lower[i, i] if lower[i, i] > 0.0 else 0.0
        decrement += gradient[i] ** 2
    for i in range(n_parameters - 1, -1, -1):
        value = gradient[i]
        for m in range(i + 1, n_parameters):
            value -= lower[m, i] * gradient[m]
        gradient[i] = value / lower[i, i] if lower[i, i] > 0.0 else 0.0
    for k in range(n_cells):
        step[k] = 0.0
        for a in range(most):
            if design[k, a] >= 0:
                step[k] += gradient[design[k, a]]
    return decrement


@numba.njit(nogil=True)
def _scale_margins(counts, order, eta):
    """Iterative scaling of the fit to each margin with the class, then to n_g: never worse.

    Also with factors that are cut off: the likelihood is concave in each of them.
    """
    n_cells = 3**order
    most = n_cells // 3
    sums = np.empty((27, 4))  # of each cell of a margin: controls, cases, both fitted
    for left_out in range(order):
        inner = 3 ** (order - 1 - left_out)
        sums[:] = 0.0
        for k in range(n_cells):
            at = k // (3 * inner) * inner + k % inner
            n = counts[0, k] + counts[1, k]
            p = 1.0 / (1.0 + np.exp(-eta[k]))
            sums[at, 0] += counts[0, k]
            sums[at, 1] += counts[1, k]
            sums[at, 2] += n / (1.0 + np.exp(eta[k]))
            sums[at, 3] += n * p
        for at in range(most):
            for c in range(2):
                seen, fitted = sums[at, c], sums[at, 2 + c]
                if seen == 0.0:
                    sums[at, c] = -MOST_STEP if fitted > 0.0 else 0.0
                elif fitted > 0.0:
                    sums[at, c] = min(max(np.log(seen / fitted), -MOST_STEP), MOST_STEP)
                else:
                    sums[at, c] = MOST_STEP
        for k in range(n_cells):
            at = k // (3 * inner) * inner + k % inner
            eta[k] += sums[at, 1] - sums[at, 0]


@numba.njit(nogil=True)
def half_statistic(counts, order, least):
    """LR / 2 of a table in nats; below `least`, some number from LR / 2 to `least`.

    counts: float64 (2, at least 3**order), the first site's state varying slowest.
    """
    n_cells = 3**order
    whole0, whole1 = counts[0, :n_cells].sum(), counts[1, :n_cells].sum()
    if whole0 == 0.0 or whole1 == 0.0:
        return 0.0
    eta = np.empty(n_cells)
    residual, weight = np.empty(n_cells), np.empty(n_cells)
    saturated = _start_quad(counts, eta) if order == 4 else _start(counts, order, eta)
    value = saturated - likelihood(counts, n_cells, eta, residual, weight)
    if value < least:
        return value
    design = PAIR_TERMS if order == 2 else TRIPLE_TERMS if order == 3 else QUAD_TERMS
    n_parameters = _N_PARAMETERS[order - 2]
    step, tried = np.empty(n_cells), np.empty(n_cells)
    for _ in range(STEPS):
        decrement = newton_step(design, n_parameters, residual, weight, step)
        if decrement <= TOLERANCE:
            break
        longest = np.abs(step).max()
        length, better = min(1.0, MOST_STEP / longest) if longest > 0.0 else 1.0, False
        for _ in range(HALVINGS if decrement < np.inf else 0):
            for k in range(n_cells):
                tried[k] = eta[k] + length * step[k]
            now = saturated - likelihood(counts, n_cells, tried, residual, weight)
            if now <= value:
                better = True
                break
            length *= 0.5
        if not better:  # far from the maximum, or all but there
            tried[:] = eta
            _scale_margins(counts, order, tried)
            now = saturated - likelihood(counts, n_cells, tried, residual, weight)
            if now >= value:
                break
        eta[:] = tried
        value = now
        if value < least:
            break
    return max(value, 0.0)


@numba.njit(nogil=True)
def fixed_cost(value, bits):
    """The cost of LR / 2 = `value` nats: a multiple of UNIT, with `bits` bits after the point."""
    return -(np.int64(np.rint(value / UNIT)) << np.int64(bits - UNIT_BITS))


@numba.njit(nogil=True)
def least_of(cutoff, bits):
    """What LR / 2 must reach, in nats, for a cost that can be at most `cutoff`."""
    return -np.float64(cutoff) * 2.0**-bits - UNIT


def _costs(tables, order, bits, cutoff, first, last, out):
    counts = np.empty((2, tables.shape[2]))
    least = least_of(cutoff, bits)
    for t in range(first, last):
        for c in range(2):
            for k in range(tables.shape[2]):
                counts[c, k] = tables[t, c, k]
        value = half_statistic(counts, order, least)
        out[t] = np.iinfo(np.int64).max if value < least else fixed_cost(value, bits)


_N = types.int64
_TABLES = types.Array(_N, 3, "C")


@functools.cache
def interaction_kernels():
    signature = _TABLES, _N, _N, _N, _N, _N, types.Array(_N, 1, "C")
    return numba.njit([types.void(*signature)], nogil=True, cache=True)(_costs)


def tasks_of(n: int) -> list[tuple[int, int]]:
    """Ranges of n tables, one for each task."""
    return [(first, min(n, first + TABLES_A_TASK)) for first in range(0, n, TABLES_A_TASK)]


def _as_tables(tables: np.ndarray) -> tuple[np.ndarray, int]:
    tables = np.ascontiguousarray(tables, np.int64).reshape(len(tables), 2, -1)
    return tables, {9: 2, 27: 3, 81: 4}[tables.shape[2]]


def interaction_costs(
    tables: np.ndarray, bits: int, cutoff: int | None = None, *, threads: int = 1
) -> np.ndarray:
    """Costs of tables, int64 (n,): -LR / 2 in nats, a multiple of UNIT in fixed point.

    Parameters
    ----------
    tables : int array, (n, 2, 9), (n, 2, 27) or (n, 2, 81)
        Controls, then cases; the first site's state varies slowest.
    bits : int
        Bits after the point of a cost (`ScanData.lr_bits`).
    cutoff : int, optional
        Tables that cost more may get the largest int64 instead.
    """
    tables, order = _as_tables(tables)
    out = np.empty(len(tables), np.int64)
    limit = np.iinfo(np.int64).max if cutoff is None else cutoff
    kernel = interaction_kernels()

    def work(first: int, last: int) -> None:
        kernel(tables, order, bits, limit, first, last, out)

    run_tasks(work, tasks_of(len(tables)), threads)
    return out
