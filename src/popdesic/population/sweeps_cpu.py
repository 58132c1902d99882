"""Shared haplotypes on one side of each site, for iHS, nSL and XP-EHH, on the CPU.

Haplotypes are kept sorted by their alleles read backwards from a site, with the site at which each
begins to equal the one before it (positional Burrows-Wheeler transform, Durbin 2014). Two of them
are equal from the largest of these starts between them. So one look along the order counts the
pairs by where they begin to be equal, without a visit to each pair.
"""

from __future__ import annotations

import numba
import numpy as np

#: Homozygosity of haplotypes at which the integral ends (Sabeti et al. 2007).
LEAST_EHH = 0.05


@numba.njit(nogil=True)
def _count_starts(starts, n, counts, stack, lefts):
    """Add the pairs of `n` haplotypes in order to `counts`, by where they begin to be equal.

    Returns the sum of these starts.
    """
    total, depth = 0, 0
    for k in range(1, n + 1):
        # A start is the largest of the pairs across it that reach neither a larger one on the left
        # nor an equal or larger one on the right.
        while depth and (k == n or starts[stack[depth - 1]] <= starts[k]):
            top = stack[depth - 1]
            depth -= 1
            pairs = lefts[top] * (k - top)
            counts[starts[top]] += pairs
            total += pairs * starts[top]
        if k < n:
            lefts[k] = k - (stack[depth - 1] if depth else 0)
            stack[depth] = k
            depth += 1
    return total


@numba.njit(nogil=True)
def _integral(counts, pairs, site, steps):
    """Area under EHH from `site` down to where it reaches `LEAST_EHH`; NaN if it does not."""
    left = pairs - counts[site + 1]
    before = left / pairs
    if before <= LEAST_EHH:
        return 0.0
    area = 0.0
    for p in range(site - 1, -1, -1):
        left -= counts[p + 1]
        now = left / pairs
        area += steps[p] * (before + now) / 2
        if now <= LEAST_EHH or np.isnan(area):
            return area
        before = now
    return np.nan


@numba.njit(nogil=True, cache=True)
def shared_loop(alleles, steps, wanted):
    """What haplotypes share on the lower side of each site.

    Parameters
    ----------
    alleles : uint8 array, (n_sites, n)
    steps : float64 array, (n_sites - 1,)
        Distance of each site to the next; NaN where too much lies between them.
    wanted : bool array, (n_sites,)
        Sites whose results are needed.

    Returns
    -------
    float64 array, (n_sites, 5)
        Area under EHH of haplotypes with allele 0, of those with 1, of all; mean number of equal
        sites of pairs with 0, of pairs with 1, the site itself among them. NaN without pairs.
    """
    n_sites, n = alleles.shape
    found = np.full((n_sites, 5), np.nan)
    order, starts = np.arange(n), np.zeros(n, np.int64)
    new_order, new_starts = np.empty(n, np.int64), np.empty(n, np.int64)
    counts = np.zeros(n_sites + 2, np.int64)
    stack, lefts = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    for m in range(n_sites):
        zeros = 0
        for k in range(n):
            zeros += 1 - alleles[m, k]
        places = np.array([0, zeros])
        latest = np.array([m + 1, m + 1])  # the first of a class equals none before it
        for k in range(n):
            for one in range(2):
                latest[one] = max(latest[one], starts[k])
            allele = alleles[m, order[k]]
            new_order[places[allele]] = order[k]
            new_starts[places[allele]] = latest[allele]
            places[allele] += 1
            latest[allele] = 0
        order, new_order = new_order, order
        starts, new_starts = new_starts, starts
        if not wanted[m]:
            continue
        for kind in range(3):
            first, last = ((0, zeros), (zeros, n), (0, n))[kind]
            size = last - first
            if size < 2:
                continue
            pairs = size * (size - 1) // 2
            part = starts[first:last]
            total = _count_starts(part, size, counts, stack, lefts)
            found[m, kind] = _integral(counts, pairs, m, steps)
            if kind < 2:
                found[m, 3 + kind] = m + 1 - total / pairs
            for k in range(1, size):
                counts[part[k]] = 0
    return found
