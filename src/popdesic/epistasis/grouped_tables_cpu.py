"""Likelihood ratios of tables whose people differ in more than their genotypes.

People of a table (`epistasis.interaction_cpu`) are divided into groups of equal known log-odds
`offset`, the part of covariates, components and strata. A group is a combination of genotypes and
a class of the offset: group g = combination * n_offsets + offset, with n_g people and y_g cases.

    smaller model    logit P(case | g) = offset_g + terms of the combination
    saturated model  logit P(case | g) = offset_g + a term of each combination

LR = 2 (l_saturated - l_smaller), l the log-likelihoods at their maxima. With the terms of fewer
than k sites (`interaction_terms`) it tests the interaction, and with one offset of 0 it is the
statistic of `epistasis.interaction_cpu`; with a constant (`association_terms`) it tests the
association of the whole table. The smaller model is fitted by Newton's method, as there; every step
bounds LR from above, so a fit stops once LR is known to be below `least`.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from .interaction_cpu import (
    MOST_STEP,
    PAIR_TERMS,
    QUAD_TERMS,
    STEPS,
    TOLERANCE,
    TRIPLE_TERMS,
    likelihood,
    newton_step,
    tasks_of,
)

#: Most halvings of a Newton step; the likelihood is concave, so a short enough step is better.
HALVINGS = 30
#: Largest term of a combination, on the scale of log-odds: a combination of one class alone.
MOST_TERM = 40.0


@numba.njit(nogil=True)
def _saturated(counts, offsets):
    """Log-likelihood of the saturated model of one table."""
    n_offsets = len(offsets)
    total = 0.0
    for k in range(counts.shape[1] // n_offsets):
        first = k * n_offsets
        cases, people, centre = 0.0, 0.0, 0.0
        for b in range(n_offsets):
            n = counts[0, first + b] + counts[1, first + b]
            cases += counts[1, first + b]
            people += n
            centre += n * offsets[b]
        if cases == 0.0 or cases == people:
            continue  # certain
        term = np.log(cases / (people - cases)) - centre / people
        if n_offsets > 1:
            low, high = -MOST_TERM, MOST_TERM
            for _ in range(100):
                fitted, weight = 0.0, 0.0
                for b in range(n_offsets):
                    n = counts[0, first + b] + counts[1, first + b]
                    p = 1.0 / (1.0 + np.exp(-offsets[b] - term))
                    fitted += n * p
                    weight += n * p * (1.0 - p)
                if fitted > cases:
                    high = term
                else:
                    low = term
                better = term + (cases - fitted) / weight if weight > 0.0 else low
                if not low < better < high:
                    better = 0.5 * (low + high)
                if abs(better - term) < 1e-10:
                    break
                term = better
        for b in range(n_offsets):
            value = offsets[b] + term
            n = counts[0, first + b] + counts[1, first + b]
            small = np.log1p(np.exp(-abs(value)))
            total += counts[1, first + b] * value - n * (max(value, 0.0) + small)
    return total


@numba.njit(nogil=True)
def half_statistic_of_groups(counts, offsets, terms, least, eta):
    """LR / 2 of one table in nats; below `least`, some number from LR / 2 to `least`.

    counts: float64 (2, n_groups), controls and cases. eta: float64 (n_groups,), log-odds of some
    member of the smaller model, replaced by its fit.
    """
    n_offsets, n_groups = len(offsets), len(eta)
    n_parameters = terms.max() + 1
    n_cells = n_groups // n_offsets
    residual, weight = np.empty(n_groups), np.empty(n_groups)
    gradient, curvature, step = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells)
    tried = np.empty(n_groups)
    saturated = _saturated(counts, offsets)
    value = saturated - likelihood(counts, n_groups, eta, residual, weight)
    for _ in range(STEPS):
        if value < least:
            break
        for k in range(n_cells):  # groups of one combination have the same terms
            gradient[k] = curvature[k] = 0.0
            for g in range(k * n_offsets, (k + 1) * n_offsets):
                gradient[k] += residual[g]
                curvature[k] += weight[g]
        decrement = newton_step(terms, n_parameters, gradient, curvature, step)
        if decrement <= TOLERANCE:
            break
        length, better = min(1.0, MOST_STEP / np.abs(step).max()), False
        for _ in range(HALVINGS):
            for g in range(n_groups):
                tried[g] = eta[g] + length * step[g // n_offsets]
            now = saturated - likelihood(counts, n_groups, tried, residual, weight)
            if now <= value:
                better = True
                break
            length *= 0.5
        if not better:
            break
        eta[:] = tried
        value = now
    return max(value, 0.0)


def interaction_terms(n_cells: int) -> np.ndarray:
    """Numbers of the terms of fewer than k sites in each of 9 (27, 81) combinations, -1: none."""
    return {9: PAIR_TERMS, 27: TRIPLE_TERMS, 81: QUAD_TERMS}[n_cells]


def association_terms(n_cells: int) -> np.ndarray:
    """One constant: int64 (n_cells, 1)."""
    return np.zeros((n_cells, 1), np.int64)


def indicators(terms: np.ndarray) -> np.ndarray:
    """Terms as columns of 0 and 1: float64 (n_cells, n_terms)."""
    design = np.zeros((len(terms), int(terms.max()) + 1))
    for cell, row in enumerate(terms):
        design[cell, row[row >= 0]] = 1.0
    return design


def _statistics(tables, offsets, terms, least, start, first, last, out):
    counts, eta = np.empty(tables.shape[1:]), np.empty(len(start))
    for t in range(first, last):
        counts[:] = tables[t]
        eta[:] = start
        out[t] = half_statistic_of_groups(counts, offsets, terms, least, eta)


_N, _F = types.int64, types.float64


@functools.cache
def grouped_kernels():
    real = types.Array(_F, 1, "C")
    tables = types.Array(_N, 3, "C")
    numbers = types.Array(_N, 2, "C")
    signature = types.void(tables, real, numbers, _F, real, _N, _N, real)
    return numba.njit([signature], nogil=True, cache=True)(_statistics)


def half_statistics(
    tables: np.ndarray,
    offsets: np.ndarray,
    start: np.ndarray,
    terms: np.ndarray,
    *,
    least: float = -np.inf,
    threads: int = 1,
) -> np.ndarray:
    """LR / 2 of tables in nats, float64 (n,); see `half_statistic_of_groups`.

    Parameters
    ----------
    tables : int array, (n, 2, n_groups)
        Controls, then cases; the last site's genotype varies faster than that of the others, the
        offset fastest.
    offsets : float64 array, (n_offsets,)
        n_groups = n_cells * n_offsets.
    start : float64 array, (n_groups,)
        Log-odds of a member of the smaller model: where each fit starts.
    terms : int64 array, (n_cells, n)
        `interaction_terms` or `association_terms`.
    least : float
        Of a table below, some number from its value to `least` is enough.
    """
    tables = np.ascontiguousarray(tables, np.int64)
    offsets = np.ascontiguousarray(offsets, np.float64)
    start, out = np.ascontiguousarray(start, np.float64), np.empty(len(tables))
    kernel = grouped_kernels()

    def work(first: int, last: int) -> None:
        kernel(tables, offsets, terms, least, start, first, last, out)

    run_tasks(work, tasks_of(len(tables)), threads)
    return out
