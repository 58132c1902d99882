"""Sites at which Hardy-Weinberg proportions look unlikely, and how many of them chance gives.

The exact test has few outcomes where alleles are rare, so that under random mating fewer than 5 %
of sites have a mid-p below 0.05. How many do follows from the counts: it is the chance of all
outcomes with such a mid-p, summed over sites.
"""

from __future__ import annotations

import numba
import numpy as np

from ..cohort.hardy_weinberg_cpu import TIES

#: Mid-p below which a site counts.
LEVEL = 0.05
#: Outcomes less likely than this share of the likeliest one are rejected unseen.
NEGLIGIBLE = 1e-16


def low_sites(genotypes: np.ndarray) -> np.ndarray:
    """Sites with a mid-p below LEVEL: float64 (n_populations, 3).

    Last axis: sites with both alleles among diploid people, those of them whose exact test has such
    a mid-p (`cohort.hardy_weinberg_cpu.hwe_exact`), and their number expected by chance.

    Parameters
    ----------
    genotypes : int32 array, (n_sites, n_populations, 3)
        Diploid people with 0, 1, 2 ALT alleles.
    """
    out = np.zeros((genotypes.shape[1], 3))
    for k in range(len(out)):
        ref, het, alt = (genotypes[:, k, state].astype(np.int64) for state in range(3))
        minor = het + 2 * np.minimum(ref, alt)
        here = np.flatnonzero(minor)
        if not len(here):
            continue
        people, minor, het = (ref + het + alt)[here], minor[here], het[here]
        least, width = people.min(), minor.max() + 1
        code = (people - least) * width + minor
        size = int(people.max() - least + 1) * int(width)
        if size <= 32 * len(code):  # faster than sorting
            times = np.bincount(code)
            kinds = np.flatnonzero(times)
            place = np.zeros(len(times), np.int64)
            place[kinds] = np.arange(len(kinds))
            kind, times = place[code], times[kinds]
        else:
            kinds, kind, times = np.unique(code, return_inverse=True, return_counts=True)
        low, high, chance = rejected(kinds // width + least, kinds % width, LEVEL)
        unlikely = (het <= low[kind]) | (het >= high[kind])
        out[k] = len(here), np.count_nonzero(unlikely), chance @ times
    return out


def rejected(
    people: np.ndarray, minor: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of heterozygotes whose mid-p is below a level.

    Parameters
    ----------
    people, minor : int64 arrays, (n,)
        People called, and copies of the rarer allele among them, at least one.

    Returns
    -------
    low, high : int64 arrays, (n,)
        At most, and at least, so many heterozygotes.
    chance : float64 array, (n,)
        Of any of them under random mating.
    """
    low, high = np.empty(len(people), np.int64), np.empty(len(people), np.int64)
    chance = np.empty(len(people))
    rejected_loop(people, minor, level, low, high, chance)
    return low, high, chance


@numba.njit(nogil=True, cache=True)
def rejected_loop(people, minor, level, low, high, chance):
    for k in range(len(people)):
        n, rare = people[k], minor[k]
        middle = rare * (2 * n - rare) // (2 * n)
        middle += (middle ^ rare) & 1
        middle = min(middle, rare)
        first, last = middle, middle  # numbers of heterozygotes that are looked at
        below, above = 1.0, 1.0
        likely = np.empty(rare // 2 + 1)  # by (rare - heterozygotes) / 2
        likely[(rare - middle) // 2] = 1.0
        total = 1.0
        while first > 1:
            homs = (rare - first) // 2
            below *= first * (first - 1.0) / (4.0 * (homs + 1.0) * (n - first - homs + 1.0))
            if below < NEGLIGIBLE:
                break
            first -= 2
            likely[homs + 1] = below
            total += below
        while last < rare:
            homs = (rare - last) // 2
            above *= 4.0 * homs * (n - last - homs) / ((last + 2.0) * (last + 1.0))
            if above < NEGLIGIBLE:
                break
            last += 2
            likely[homs - 1] = above
            total += above
        found = 0.0
        while first <= last:
            a, b = likely[(rare - first) // 2], likely[(rare - last) // 2]
            left, right = a <= b * (1 + TIES), b <= a * (1 + TIES)
            both = left and right and first < last
            share = a + b if both else min(a, b)
            if found + 0.5 * share >= level * total:
                break
            found += share
            if left:
                first += 2
            if right and (both or not left):
                last -= 2
        low[k], high[k], chance[k] = first - 2, last + 2, found / total
