"""What K2 is on average where the phenotype has nothing to do with the genotypes.

A combination of genotypes that n people carry, k of them cases, costs ln C(n, k) in K2, up to a
function of n. If cases are drawn at random from all people, N of whom N1 are cases, k is
hypergeometric, and

    E ln C(n, K) = n H - excess(n),    H = -r ln r - (1 - r) ln(1 - r),    r = N1 / N.

H is the entropy of the phenotype and E K = n r, so that excess(n) is minus the mean of

    phi(k) = ln C(n, k) + k ln r + (n - k) ln(1 - r).

The cells of a table hold the same people as the table, so n H cancels between both. With the cost
ln C(n, k) + excess(n) of a cell, the cost of a table less that of its one cell of all people is
therefore 0 on average, whatever the frequencies of its genotypes and whichever people lack one.

Computation. From the mode m of K outwards, the logarithms of the ratios of successive
probabilities and the differences of phi are summed up; both hold few people, so nothing cancels.
The window of `DEVIATIONS` standard deviations and `FURTHER` people on both sides leaves out less
than 1e-15 of the probability. Up to `DENSE` people that is done for every n. Beyond, excess is a
smooth function of ln n (about (ln(2 pi n r (1 - r)) + 1 - n / N) / 2, and a sum of powers of n / N
where cases are few): it is computed on a grid of step `STEP` in ln n and interpolated by cubic
splines, with an error below 1e-8 (tests/unit/epistasis/test_k2.py).
"""

from __future__ import annotations

import functools

import numpy as np

DEVIATIONS, FURTHER = 12, 40
#: Sizes of cells up to which excess is computed one by one, and the step of ln n beyond.
DENSE, STEP = 2048, 0.015
#: Entries of the windows that are in memory at once.
ENTRIES = 1 << 22
#: Excess is rounded to 2**-ROUND_BITS nats, so that machines whose logarithms differ in the last
#: bit have the same tables.
ROUND_BITS = 20


@functools.lru_cache(maxsize=4)
def excess_of_cells(n_controls: int, n_cases: int) -> np.ndarray:
    """excess(n) in nats of cells of n = 0, 1, ..., n_controls + n_cases people: float64, read-only.

    Rounded to 2**-20 nats. 0 if a class is empty.
    """
    from scipy.interpolate import CubicSpline

    n_people = n_controls + n_cases
    out = np.zeros(n_people + 1)
    if n_controls and n_cases:
        dense = np.arange(min(n_people, DENSE) + 1)
        out[: len(dense)] = exact_excess(dense, n_controls, n_cases)
        if n_people > DENSE:
            steps = int(np.ceil(np.log(n_people / DENSE) / STEP)) + 1
            # it starts within the dense part, as the ends of a spline are its least exact part
            first = DENSE * np.exp(-8 * STEP)
            grid = np.unique(np.rint(np.geomspace(first, n_people, steps + 8)).astype(np.int64))
            spline = CubicSpline(np.log(grid), exact_excess(grid, n_controls, n_cases))
            n = np.arange(DENSE + 1, n_people + 1, dtype=np.float64)
            out[DENSE + 1 :] = spline(np.log(n))
    out = np.rint(np.maximum(out, 0.0) * 2.0**ROUND_BITS) / 2.0**ROUND_BITS
    out.setflags(write=False)
    return out


def exact_excess(n: np.ndarray, n_controls: int, n_cases: int) -> np.ndarray:
    """excess(n) in nats, float64; n: int array, ascending. Both classes have people."""
    out, start = np.empty(len(n)), 0
    r = n_cases / (n_controls + n_cases)
    spread = np.sqrt(n * r * (1 - r) * (1 - n / (n_controls + n_cases)))
    reach = np.ceil(DEVIATIONS * spread).astype(np.int64) + FURTHER
    while start < len(n):
        widest = np.maximum.accumulate(reach[start:])
        rows = int(np.searchsorted(widest * np.arange(1, len(widest) + 1), ENTRIES, "right"))
        stop = start + max(1, rows)
        width = int(reach[start:stop].max())
        out[start:stop] = _of_window(n[start:stop, None], width, n_controls, n_cases)
        start = stop
    return out


def _of_window(n: np.ndarray, width: int, n_controls: int, n_cases: int) -> np.ndarray:
    """`exact_excess` of n, int (rows, 1), by `width` values of K on both sides of the mode."""
    from scipy.special import gammaln, xlog1py, xlogy

    n_people = n_controls + n_cases
    mode = (n + 1) * (n_cases + 1) // (n_people + 2)
    slope = np.log(n_controls / n_cases)  # of the linear terms of phi
    weight, total = np.ones(len(n)), np.zeros(len(n))
    for up in (True, False):
        # the step from k to k + 1, upwards, or from k + 1 to k
        k = mode + np.arange(width) if up else mode - 1 - np.arange(width)
        there = (k >= np.maximum(0, n - n_controls)) & (k + 1 <= np.minimum(n, n_cases))
        k = np.where(there, k, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = np.log((n - k) / (k + 1.0))
            chance = ways + np.log((n_cases - k) / (n_controls - n + k + 1.0))
        sign = 1.0 if up else -1.0
        chance = np.cumsum(np.where(there, sign * chance, -np.inf), axis=1)
        phi = np.cumsum(np.where(there, sign * (ways - slope), 0.0), axis=1)
        weights = np.exp(chance)
        weight += weights.sum(axis=1)
        total += (weights * phi).sum(axis=1)
    n, mode, r = n[:, 0].astype(np.float64), mode[:, 0].astype(np.float64), n_cases / n_people
    of_mode = gammaln(n + 1) - gammaln(mode + 1) - gammaln(n - mode + 1)
    of_mode += xlogy(mode, r) + xlog1py(n - mode, -r)
    return -(of_mode + total / weight)
