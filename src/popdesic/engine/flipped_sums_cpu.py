"""What a pass over flipped genotypes does beside its two sums (`genotype_sums`), compiled.

A block of one stretch has few sites, so that numpy's calls would take longer than the sums, and
hold the interpreter's lock. The operations on each element and their order are those of
`engine.genotype_products`, which is the reference, so the bytes are the same.

Shapes: COLUMNS = 8 columns of vectors, signs and sums; `values` int32 (n_items, 4, 8), of the codes
of `sum_codes`; K `known` components.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

#: As in `genotype_sums`. Repeated, because numba's cache notices changes in this file alone.
COLUMNS = 8
#: Codes of two ALT alleles, one and none.
TWO, ONE, NONE = 0, 2, 3
#: Numbers of SplitMix64 (`embedding.lots.mix`).
STEP, FIRST, SECOND = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
ONCE, LATER, LAST, LOWEST = map(np.uint64, (30, 27, 31, 1))


@numba.njit(nogil=True, cache=True)
def draw_signs(lots, first, last, out):
    """Signs of stretches `first` to `last`, as `embedding.lots.signs_of` draws them.

    Parameters
    ----------
    lots : uint64 array, (n, k)
    out : int8 array, (n_stretches, n, k)
    """
    for stretch in range(first, last):
        step = np.uint64(stretch) + STEP
        for i in range(lots.shape[0]):
            for j in range(lots.shape[1]):
                z = lots[i, j] + step
                z = (z ^ (z >> ONCE)) * FIRST
                z = (z ^ (z >> LATER)) * SECOND
                z = z ^ (z >> LAST)
                out[stretch, i, j] = np.int8(2 * np.int64(z & LOWEST) - 1)


@numba.njit(nogil=True, cache=True)
def apply_signs(numbers, signs, whole, values, turned, total, shares):
    """Numbers times the signs of a stretch, as values of codes, and what they sum up to.

    Parameters
    ----------
    numbers : float64 array, (n_places, 8)
        Whole numbers.
    signs : int8 array, (n_places, 8)
    whole : int64 array, (n_places, K)
        Known components, rounded.
    values, turned, total, shares : arrays to fill
        int32 (n_places, 4, 8), zero at first; int32 (n_places, 8); float64 (8,), the sums of all
        places; int64 (K, 8), zero at first: the products with `whole`.
    """
    sums = np.zeros(COLUMNS, np.int64)
    for i in range(numbers.shape[0]):
        for j in range(COLUMNS):
            number = np.int32(numbers[i, j]) * np.int32(signs[i, j])
            turned[i, j] = number
            values[i, TWO, j] = 2 * number
            values[i, ONE, j] = number
            sums[j] += number
        for k in range(whole.shape[1]):
            for j in range(COLUMNS):
                shares[k, j] += whole[i, k] * np.int64(turned[i, j])
    for j in range(COLUMNS):
        total[j] = np.float64(sums[j])


class SiteScale(NamedTuple):
    """How genotypes of sites are standardised.

    Attributes
    ----------
    mean, inverse : float64 arrays, (n_sites,)
        Of the genotypes, and one over their standard deviation.
    along : float64 array, (n_sites, K)
        Known components at each site.
    """

    mean: np.ndarray
    inverse: np.ndarray
    along: np.ndarray


class SiteValues(NamedTuple):
    """Values of codes for the way back to people.

    Attributes
    ----------
    values, powers : int32 arrays, (n_items, 4, 8), (8,)
        Zero at first, n_items >= n_sites; the powers of two.
    shares, share_powers : int64 and int32 arrays, (K, 8)
        Zero at first: what the known components take of it, and the powers of two.
    """

    values: np.ndarray
    powers: np.ndarray
    shares: np.ndarray
    share_powers: np.ndarray


@numba.njit(nogil=True, cache=True)
def standardise(
    sums,
    absent,
    total,
    sites,
    scale,
    parts,
    out,
    bits,
    site_bits,
    few_bits,
):
    """Sums of each site to values of codes for the way back to people.

    Parameters
    ----------
    sums, absent : int64 arrays, (n_sites, 8)
        Genotypes times numbers, and numbers of who is missing; no rows of `absent` if nobody is.
    total : float64 array, (8,)
        Sum of all numbers.
    sites : SiteScale
    scale : float64 array, (8,)
        The power of two that a number stands for.
    parts : float64 array, (K, 8)
        Shares of the known components of the numbers.
    out : SiteValues
        To be filled.
    bits, site_bits, few_bits : int
        BITS, SITE_BITS and FEW_BITS of `engine.genotype_products`.
    """
    mean, inverse, along = sites
    values, powers, shares, share_powers = out
    n_sites, few = along.shape
    found = np.empty((n_sites, COLUMNS))
    largest, largest_back = np.zeros(COLUMNS), np.zeros(COLUMNS)
    for i in range(n_sites):
        for j in range(COLUMNS):
            people = total[j] - np.float64(absent[i, j]) if absent.shape[0] else total[j]
            one = (np.float64(sums[i, j]) - mean[i] * people) * inverse[i] * scale[j]
            for k in range(few):
                one = one - along[i, k] * parts[k, j]
            found[i, j] = one
            largest[j] = max(largest[j], abs(one))
            largest_back[j] = max(largest_back[j], abs(one * inverse[i]))
    own = np.empty(COLUMNS, np.int32)
    for j in range(COLUMNS):
        own[j] = math.frexp(largest[j])[1] - bits
        powers[j] = math.frexp(largest_back[j])[1] - site_bits
    for i in range(n_sites):
        for j in range(COLUMNS):
            times = np.rint(math.ldexp(found[i, j] * inverse[i], -powers[j]))
            less = np.int32(np.rint(mean[i] * times))
            values[i, TWO, j] = 2 * np.int32(times) - less
            values[i, ONE, j] = np.int32(times) - less
            values[i, NONE, j] = -less
    for k in range(few):
        most = 0.0
        for i in range(n_sites):
            most = max(most, abs(along[i, k]))
        power = math.frexp(most)[1] - few_bits
        for j in range(COLUMNS):
            share_powers[k, j] = power + own[j]
        for i in range(n_sites):
            left = np.int64(np.rint(math.ldexp(along[i, k], -power)))
            for j in range(COLUMNS):
                shares[k, j] += left * np.int64(np.rint(math.ldexp(found[i, j], -own[j])))


@numba.njit(nogil=True, cache=True)
def turn_back(sums, scale, known, parts, signs, out):
    """Sums of each person without what is known, times the signs: fills `out` (n_places, k).

    Parameters
    ----------
    sums : int64 array, (n_places, 8)
    scale : float64 array, (8,)
        The power of two that a sum stands for.
    known, parts : float64 arrays, (n_places, K), (K, 8)
    signs : int8 array, (n_places, 8)
    """
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            one = np.float64(sums[i, j]) * scale[j]
            for k in range(known.shape[1]):
                one = one - known[i, k] * parts[k, j]
            out[i, j] = one * np.float64(signs[i, j])


@numba.njit(nogil=True, cache=True)
def list_missing_of_words(words, starts, items):
    """Who is missing at each site, site after site.

    Parameters
    ----------
    words : uint32 array, (n_words, n_sites)
        16 people a word (`genotype_sums.by_site`).
    starts, items : arrays to fill
        int64 (n_sites + 1,), where the people of each site begin; int32 (n,), the people, by number
        within a site. Without room for all, `items` stays as it is.
    """
    starts[:] = 0
    ones = np.uint32(0x55555555)
    for w in range(words.shape[0]):
        for site in range(words.shape[1]):
            missing = words[w, site] & ~(words[w, site] >> np.uint32(1)) & ones
            while missing:
                starts[site + 1] += 1
                missing &= missing - np.uint32(1)
    for site in range(words.shape[1]):
        starts[site + 1] += starts[site]
    if starts[words.shape[1]] > items.shape[0]:
        return
    at = starts[:-1].copy()
    for w in range(words.shape[0]):
        for site in range(words.shape[1]):
            missing = words[w, site] & ~(words[w, site] >> np.uint32(1)) & ones
            place = 16 * w
            while missing:
                if missing & np.uint32(1):
                    items[at[site]] = place
                    at[site] += 1
                missing >>= np.uint32(2)
                place += 1


@numba.njit(nogil=True, cache=True)
def sum_listed(starts, items, first, end, numbers, out):
    """Sums of the numbers of listed people, `first` to `end`, of each site: fills `out`.

    Parameters
    ----------
    starts, items : arrays
        From `list_missing_of_words`.
    numbers : int32 array, (end - first, 8)
    out : int64 array, (n_sites, 8)
    """
    sums = np.empty(COLUMNS, np.int64)
    for site in range(out.shape[0]):
        sums[:] = 0
        for at in range(starts[site], starts[site + 1]):
            item = items[at]
            if item >= end:
                break
            if item >= first:
                for j in range(COLUMNS):
                    sums[j] += numbers[item - first, j]
        for j in range(COLUMNS):
            out[site, j] = sums[j]
