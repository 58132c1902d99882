"""The statistic that scans of residuals rank by, computed in one place for every device.

People have residuals of a null model (`epistasis.null_model`), rounded to `levels`, uint8, of which
128 stands for zero. A table of two sites has in each combination of genotypes k = 3 a + b a count
n_k of people and a sum S_k of their levels less 128: integers, exact on every device. The statistic
of interaction is

    T = [ sum_k S_k^2 / n_k - (the same of the additive fit) ] / variance,

the sum of squares between cells less that of the least-squares fit a_a + b_b (genotypic main
effects of both sites, cells weighted by n_k), over the variance of the levels. It is the score test
of all interactions of two sites under a null with main effects, chi-square with as many degrees of
freedom as there are cells less parameters: 4 if all cells occur (Cordell 2009, Nat Rev Genet
10:392). Costs are -T / 2, the unit of `epistasis.interaction_cpu`: for cases and controls without
covariates T is close to LR.

Bound. A fit of one site alone is an additive fit, so that

    T <= [ SS(ij) - max(SS(i), SS(j)) ] / variance,    SS(.) = sum S^2 / n over the cells.

Without missing genotypes SS(i) belongs to a site. This is what a device filters by.

Additive fit. The best a_a given b_b are means of what is left in the rows, so that three b_b
remain. Their normal equations have the matrix of a graph of three nodes, the genotypes of the
second site, with edges w_bc = sum_a n_ab n_ac / n_a and right-hand sides q_b = sum_a (S_ab - n_ab
S_a / n_a) that sum to zero. The fit adds q' W^- q to SS(i); by the matrix-tree theorem that is

    (w_12 q_0^2 + w_02 q_1^2 + w_01 q_2^2) / (w_01 w_02 + w_01 w_12 + w_02 w_12),

or q_b^2 / w_bc where one edge is left. All terms of the weights are positive: nothing cancels, and
whether an edge exists is decided without rounding.

Order. T / 2 is rounded to `UNIT` nats. The first site's state varies slowest in every table.
"""

from __future__ import annotations

import functools

import numba
import numpy as np
from numba import types

from ..core.threads import run_tasks
from .interaction_cpu import UNIT_BITS, fixed_cost, least_of, tasks_of
from .scan_data import LEVEL_BITS

#: Most samples: the sum of their levels is an int32.
MAX_SAMPLES = (2**31 - 1) // 255


def level_planes(levels: np.ndarray) -> np.ndarray:
    """Bit slices of levels, uint64 (LEVEL_BITS, n_words): bit s of slice b is bit b of level s.

    The samples' order and the words are those of `scan_data.OneHot`.
    """
    slices = np.zeros((LEVEL_BITS, -(-len(levels) // 64) * 8), np.uint8)
    for b in range(LEVEL_BITS):
        bits = np.packbits((levels >> b) & 1, bitorder="little")
        slices[b, : len(bits)] = bits
    return slices.view(np.uint64)


@numba.njit(nogil=True)
def half_residual_statistic(counts, sums, variance):
    """T / 2 of one table; counts, sums: nine numbers each, the first site's state slowest."""
    rest = q0 = q1 = q2 = w01 = w02 = w12 = 0.0
    for a in range(3):
        n0, n1, n2 = float(counts[3 * a]), float(counts[3 * a + 1]), float(counts[3 * a + 2])
        s0, s1, s2 = float(sums[3 * a]), float(sums[3 * a + 1]), float(sums[3 * a + 2])
        n = n0 + n1 + n2
        if n == 0.0:
            continue
        mean = (s0 + s1 + s2) / n
        d0, d1, d2 = s0 - n0 * mean, s1 - n1 * mean, s2 - n2 * mean
        if n0 > 0.0:
            rest += d0 * d0 / n0
        if n1 > 0.0:
            rest += d1 * d1 / n1
        if n2 > 0.0:
            rest += d2 * d2 / n2
        q0, q1, q2 = q0 + d0, q1 + d1, q2 + d2
        w01, w02, w12 = w01 + n0 * n1 / n, w02 + n0 * n2 / n, w12 + n1 * n2 / n
    trees = w01 * w02 + w01 * w12 + w02 * w12
    if trees > 0.0:
        rest -= (w12 * q0 * q0 + w02 * q1 * q1 + w01 * q2 * q2) / trees
    elif w01 > 0.0:
        rest -= q0 * q0 / w01
    elif w02 > 0.0:
        rest -= q2 * q2 / w02
    elif w12 > 0.0:
        rest -= q1 * q1 / w12
    return max(0.5 * rest / variance, 0.0)


def _costs(counts, sums, variance, cutoff, first, last, out):
    least = least_of(cutoff, UNIT_BITS)
    for t in range(first, last):
        value = half_residual_statistic(counts[t], sums[t], variance)
        out[t] = np.iinfo(np.int64).max if value < least else fixed_cost(value, UNIT_BITS)


_N = types.int64
_CELLS = types.Array(_N, 2, "C")


@functools.cache
def residual_kernels():
    signature = _CELLS, _CELLS, types.float64, _N, _N, _N, types.Array(_N, 1, "C")
    return numba.njit([types.void(*signature)], nogil=True, cache=True)(_costs)


def residual_costs(
    counts: np.ndarray,
    sums: np.ndarray,
    variance: float,
    cutoff: int | None = None,
    *,
    threads: int = 1,
) -> np.ndarray:
    """Costs of tables, int64 (n,): -T / 2 in multiples of `interaction.UNIT` (2**-20).

    Parameters
    ----------
    counts, sums : int array, (n, 9)
        People of each combination of genotypes, and the sum of their levels less ZERO_LEVEL; the
        first site's state varies slowest. An empty cell has the sum 0.
    variance : float
        Of the levels, in squared levels (`ResidualData.variance`).
    cutoff : int, optional
        Tables that cost more may get the largest int64 instead.
    """
    counts = np.ascontiguousarray(counts, np.int64).reshape(-1, 9)
    sums = np.ascontiguousarray(sums, np.int64).reshape(-1, 9)
    out = np.empty(len(counts), np.int64)
    limit = np.iinfo(np.int64).max if cutoff is None else cutoff
    kernel = residual_kernels()

    def work(first: int, last: int) -> None:
        kernel(counts, sums, float(variance), limit, first, last, out)

    run_tasks(work, tasks_of(len(counts)), threads)
    return out
