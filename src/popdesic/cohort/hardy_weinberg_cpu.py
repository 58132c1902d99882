"""Exact test of Hardy-Weinberg proportions, one site after the other."""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks

#: Outcomes whose probabilities differ by less tie: far above rounding, far below true differences.
TIES = 1e-7
#: Terms below this share of the observed outcome's probability change no sum.
SMALL = 1e-18
#: Sites of one task.
SITES_A_TASK = 4096


def hwe_exact(
    n_ref: np.ndarray,
    n_het: np.ndarray,
    n_alt: np.ndarray,
    midp: bool = True,
    threads: int = 1,
    *,
    excess: bool = False,
) -> np.ndarray:
    """Exact test of Hardy-Weinberg proportions at biallelic sites.

    The number of heterozygotes given the allele counts has probability
    ``2^h n! / (n_ref! h! n_alt!) * n_a! n_b! / (2n)!``; the p-value sums the probabilities of all
    outcomes as unlikely as the observed one or less (Wigginton et al. 2005), counting the ties
    at half weight for the mid-p (Graffelman and Moreno 2013).

    Parameters
    ----------
    n_ref, n_het, n_alt : int arrays, (n_sites,)
        Called samples by genotype.
    excess : bool
        One-sided: the probability of more heterozygotes than observed, counting the observed number
        at half weight for the mid-p.

    Returns
    -------
    float64 array, (n_sites,)
        1.0 where nothing is called or the site is monomorphic (its mid-p would be 0.5, but such a
        site carries no evidence against the proportions).
    """
    counts = np.stack([n_ref, n_het, n_alt], axis=1).astype(np.int64)
    out = np.empty(len(counts))

    def work(first: int) -> None:
        last = first + SITES_A_TASK
        equilibrium_loop(counts[first:last], 0.5 if midp else 1.0, excess, out[first:last])

    run_tasks(work, [(first,) for first in range(0, len(counts), SITES_A_TASK)], threads)
    return out


@numba.njit(nogil=True, cache=True)
def equilibrium_loop(counts, weight, excess, out):
    for site in range(len(out)):
        n_ref, n_het, n_alt = counts[site]
        n = n_ref + n_het + n_alt
        minor = 2 * min(n_ref, n_alt) + n_het
        out[site] = 1.0 if minor == 0 else min(_p_value(n, minor, n_het, weight, excess), 1.0)


@numba.njit(nogil=True, cache=True)
def _p_value(n, minor, n_het, weight, excess):
    """Probabilities are relative to that of the expected number of heterozygotes."""
    middle = minor * (2 * n - minor) // (2 * n)
    middle += (middle ^ minor) & 1
    middle = min(middle, minor)
    observed = 1.0
    for h in range(middle, n_het, 2):
        observed *= _up(n, minor, h)
    for h in range(middle, n_het, -2):
        observed *= _down(n, minor, h)
    total, below, ties = 1.0, 0.0, 0.0
    if excess or observed >= 1 - TIES:
        below, ties = _add(1.0, observed, middle - n_het, excess, below, ties)
    probability = 1.0
    for h in range(middle, minor, 2):
        probability *= _up(n, minor, h)
        total += probability
        below, ties = _add(probability, observed, h + 2 - n_het, excess, below, ties)
        if probability < SMALL * observed:
            break
    probability = 1.0
    for h in range(middle, 1, -2):
        probability *= _down(n, minor, h)
        total += probability
        below, ties = _add(probability, observed, h - 2 - n_het, excess, below, ties)
        if probability < SMALL * observed:
            break
    return (below + weight * ties) / total


@numba.njit(nogil=True, cache=True, inline="always")
def _up(n, minor, h):
    """Probability of h + 2 heterozygotes over that of h."""
    rare = (minor - h) // 2
    return 4.0 * rare * (n - h - rare) / ((h + 2.0) * (h + 1.0))


@numba.njit(nogil=True, cache=True, inline="always")
def _down(n, minor, h):
    """Probability of h - 2 heterozygotes over that of h."""
    rare = (minor - h) // 2
    return h * (h - 1.0) / (4.0 * (rare + 1.0) * (n - h - rare + 1.0))


@numba.njit(nogil=True, cache=True, inline="always")
def _add(probability, observed, more, excess, below, ties):
    """Sums with one more outcome, which has `more` heterozygotes than the observed one."""
    if excess:
        if more > 0:
            return below + probability, ties
        return below, ties + probability if more == 0 else ties
    if probability < observed * (1 - TIES):
        return below + probability, ties
    if probability <= observed * (1 + TIES):
        return below, ties + probability
    return below, ties
