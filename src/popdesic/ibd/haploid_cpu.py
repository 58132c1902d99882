"""Fit the hidden Markov model of two haploid samples, and the best path of its states.

State 0 is identity by descent (IBD), state 1 is none. Sums run from the first to the last site, so
bytes depend neither on threads nor on which pairs are computed together. `ibd.haploid` has the
model and its source.
"""

from __future__ import annotations

import math

import numba
import numpy as np

#: What the fit stops at: a change of the share of IBD, and of generations, or of their relative.
SHARE_STEP, STEP, RELATIVE_STEP = 1e-3, 1e-2, 1e-3
#: Least share of IBD and of no IBD that a fit goes on from, and least generations.
LEAST = 1e-5
#: Least probability of a state: where nothing recombines over many sites, it would become 0.
TINY = 1e-300
#: A product of likelihoods is turned into a logarithm beyond this.
LARGE = 1e100


@numba.njit(nogil=True, cache=True)
def fit_block(genotypes, row, first, ratios, steps, limits, fits, paths):
    """Fit sample `row` with len(fits) samples from `first` on.

    genotypes: int8 (n_samples, n_sites), 0, 1 or -1. ratios: float64 (n_sites, 3), likelihood of
    two alleles under IBD over that under none: both REF, they differ, both ALT. steps: float64
    (n_sites,), Morgans from the site before, infinity at the first of a contig. limits: float64
    (2,), most generations and most iterations. fits: float64 (m, 5), share of sites in IBD,
    generations, log10 likelihood ratio, iterations, expected changes of state; a row that begins
    with NaN is left as it is, with no IBD in its path. paths: uint8 (m, n_sites), 1 where the best
    path is in IBD.
    """
    n = len(steps)
    ratio, filtered = np.empty(n), np.empty((n, 2))
    change, back = np.empty(n), np.empty(n, np.uint8)
    for k in range(len(fits)):
        if math.isnan(fits[k, 0]):
            paths[k] = 0
            continue
        for site in range(n):
            one, two = genotypes[row, site], genotypes[first + k, site]
            ratio[site] = ratios[site, one + two] if one >= 0 and two >= 0 else 1.0
        share, age = _fit(ratio, steps, limits, filtered, change, fits[k])
        _best_path(ratio, steps, share, age, back, paths[k])


@numba.njit(nogil=True, cache=True)
def _fit(ratio, steps, limits, filtered, change, fit):
    """Expectation-maximisation; the share of IBD and the generations that `fit` results from."""
    share, age, ends = 0.5, 1.0, False
    most, iterations = limits[0], int(limits[1])
    for iteration in range(iterations):
        lod = _forward(ratio, steps, share, age, filtered, change)
        found, seen, expected = _backward(steps, share, filtered, change)
        if ends or iteration == iterations - 1:
            fit[0], fit[1], fit[2], fit[3], fit[4] = found, age, lod, iteration + 1, seen
            break
        new = min(max(found, LEAST), 1 - LEAST)
        older = max(min(age * seen / expected, most), LEAST) if expected > 0 else age
        moved = abs(older - age)
        near = moved < STEP or moved < RELATIVE_STEP * older
        ends = near and abs(new - share) < SHARE_STEP
        share, age = new, older
    return share, age


@numba.njit(nogil=True, cache=True)
def _forward(ratio, steps, share, age, filtered, change):
    """Probabilities of states given alleles up to each site; log10 likelihood over no IBD."""
    ibd, none, lod, product = share, 1.0 - share, 0.0, 1.0
    for site in range(len(steps)):
        change[site] = -math.expm1(-age * steps[site])
        leave, enter = (1.0 - share) * change[site], share * change[site]
        before = ibd
        ibd = (before * (1.0 - leave) + none * enter) * ratio[site]
        none = before * leave + none * (1.0 - enter)
        total = ibd + none
        ibd, none = max(ibd / total, TINY), max(none / total, TINY)
        filtered[site, 0], filtered[site, 1] = ibd, none
        product *= total
        if product > LARGE or product < 1 / LARGE:
            lod += math.log10(product)
            product = 1.0
    return lod + math.log10(product)


@numba.njit(nogil=True, cache=True)
def _backward(steps, share, filtered, change):
    """Share of sites in IBD given all alleles; changes of state, and what they are of a rate 1."""
    n = len(steps)
    ibd, none = filtered[n - 1, 0], filtered[n - 1, 1]
    sites, seen, expected = ibd, 0.0, 0.0
    for site in range(n - 1, 0, -1):
        leave, enter = (1.0 - share) * change[site], share * change[site]
        one, two = filtered[site - 1, 0], filtered[site - 1, 1]
        to_ibd = ibd / (one * (1.0 - leave) + two * enter)
        to_none = none / (one * leave + two * (1.0 - enter))
        ends, begins = one * leave * to_none, two * enter * to_ibd
        ibd = one * (1.0 - leave) * to_ibd + ends
        none = begins + two * (1.0 - enter) * to_none
        sites += ibd
        if steps[site] < np.inf:
            seen += ends + begins
            expected += ibd * leave + none * enter
    return sites / n, seen, expected


@numba.njit(nogil=True, cache=True)
def _best_path(ratio, steps, share, age, back, path):
    """The most likely states (Viterbi), of two equally likely IBD. back: uint8 (n_sites,)."""
    n = len(steps)
    ibd, none = 0.0, 0.0
    for site in range(n):
        changed = -math.expm1(-age * steps[site])
        leave, enter = (1.0 - share) * changed, share * changed
        stays, begins = ibd + np.log(1.0 - leave), none + np.log(enter)
        ends, waits = ibd + np.log(leave), none + np.log(1.0 - enter)
        back[site] = (1 if begins > stays else 0) + (2 if waits > ends else 0)
        ibd, none = max(stays, begins) + np.log(ratio[site]), max(ends, waits)
    state = 1 if none > ibd else 0
    for site in range(n - 1, -1, -1):
        path[site] = 1 - state
        state = (back[site] >> state) & 1
