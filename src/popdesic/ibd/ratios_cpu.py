"""Log10 ratios of the genotypes of two people along a segment of one shared allele.

A segment is found by its opposite homozygotes alone (`ibd_segments`). Here the ratios of all
genotype pairs (`ibd.model.log_ratios`) say where they speak against a shared allele: at an end,
which is cut off (`trimmed`), or inside, where the segment is split (`next_part`). Sums are
integers, looked at every 16 sites first; few segments have to be gone through site by site.

Without phase a segment goes on to the next opposite homozygote, behind its true end. How likely a
site is to be the last one follows from the ratios of all sites behind it (`likely_end`).
"""

from __future__ import annotations

import numba
import numpy as np

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Weights of ends are listed by sums of ratios in steps of 2 ** STEP_BITS, from -BELOW steps on.
STEP_BITS, BELOW = 6, 256
#: Weight of an end behind which ratios add up to 0. Sums of weights x 1e-6 cM stay below 2 ** 63.
WHOLE = 1 << 16


def by_bits(ratios: np.ndarray) -> np.ndarray:
    """Columns of `ibd.model.log_ratios` by the planes' bits instead of genotypes.

    The column is 4 x bits + other bits, where bits are first plane + 2 x second plane, and 2 (no
    called genotype has it) if missing.
    """
    code = np.array([0, 1, 3, 2])  # genotype of bits
    return np.ascontiguousarray(ratios.reshape(-1, 4, 4)[:, code][:, :, code].reshape(-1, 16))


def end_weights(share: float, scale: int) -> np.ndarray:
    """Weights of a last site by the sum of ratios between it and where the search ended.

    The likelihood that these sites are not shared, 10 ** -(share x sum / scale), as whole numbers:
    sums of them are the same in any order.

    Parameters
    ----------
    share : float
        Part of a ratio that counts, since neighbours in linkage disequilibrium say the same.
    scale : int
        Ratios are in units of 1 / scale.

    Returns
    -------
    int64 array
        Number k is that of the sums from (k - BELOW) x 2 ** STEP_BITS on; the last one is 0.
    """
    steps = np.arange(-BELOW, np.log10(4 * WHOLE) / share * scale / (1 << STEP_BITS))
    weights = np.rint(WHOLE * 10.0 ** (-share * steps * (1 << STEP_BITS) / scale))
    return weights.astype(np.int64)


@numba.njit(nogil=True, inline="always")
def called_sites(a, b, word):
    """Sites of a word at which both are called. a, b: uint64 (2 or 3, n_words)."""
    called = _ALL
    if a.shape[0] > 2:
        called &= a[2, word]
    if b.shape[0] > 2:
        called &= b[2, word]
    return called


@numba.njit(nogil=True, inline="always")
def bit_range(first, end):
    """Bits first ... end - 1 of a word; 0 <= first < end <= 64."""
    return (_ALL >> np.uint64(64 - (end - first))) << np.uint64(first)


@numba.njit(nogil=True, inline="always")
def _spread(word, shift):
    """16 bits of a word from bit `shift` on, each the lowest of a group of four."""
    x = (word >> np.uint64(shift)) & np.uint64(0xFFFF)
    x = (x | (x << np.uint64(24))) & np.uint64(0x000000FF000000FF)
    x = (x | (x << np.uint64(12))) & np.uint64(0x000F000F000F000F)
    x = (x | (x << np.uint64(6))) & np.uint64(0x0303030303030303)
    return (x | (x << np.uint64(3))) & np.uint64(0x1111111111111111)


@numba.njit(nogil=True, inline="always")
def _codes(a, b, word, valid, shift):
    """Columns of the ratios of 16 sites of a word from bit `shift` on, four bits a site."""
    one, two = a[0, word] & valid, a[1, word] | ~valid
    three, four = b[0, word] & valid, b[1, word] | ~valid
    codes = (_spread(one, shift) << np.uint64(2)) | (_spread(two, shift) << np.uint64(3))
    return codes | _spread(three, shift) | (_spread(four, shift) << np.uint64(1))


@numba.njit(nogil=True, cache=True)
def sum_ratios(a, b, ratios, first, last):
    """Sum of the ratios of first ... last, and what of its running sum is seen before sites 16 k.

    These are its lowest, its highest, and its deepest fall below what was its highest before.
    """
    total, lowest, highest, fall = 0, 0, 0, 0
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = called_sites(a, b, word) & bit_range(low - base, high - base)
        for shift in range(0, 64, 16):
            begin, end = max(low, base + shift), min(high, base + shift + 16)
            if begin >= end:
                continue
            codes = _codes(a, b, word, valid, shift) >> np.uint64(4 * (begin - base - shift))
            for site in range(begin, end):
                total += ratios[site, np.int64(codes & np.uint64(15))]
                codes >>= np.uint64(4)
            if total < lowest:
                lowest = total
            elif total > highest:
                highest = total
            fall = min(fall, total - highest)
    return total, lowest, highest, fall


@numba.njit(nogil=True, cache=True)
def _turns(a, b, ratios, first, last):
    """Lowest running sum, the last site before which it is so low; highest, and the first site."""
    total, lowest, highest, begin_at, end_at = 0, 0, 0, first, first
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = called_sites(a, b, word) & bit_range(low - base, high - base)
        for shift in range(0, 64, 16):
            begin, end = max(low, base + shift), min(high, base + shift + 16)
            if begin >= end:
                continue
            codes = _codes(a, b, word, valid, shift) >> np.uint64(4 * (begin - base - shift))
            for site in range(begin, end):
                total += ratios[site, np.int64(codes & np.uint64(15))]
                codes >>= np.uint64(4)
                if total > highest:
                    highest, end_at = total, site + 1
                elif total <= lowest:
                    lowest, begin_at = total, site + 1
    return lowest, begin_at, highest, end_at


@numba.njit(nogil=True, cache=True)
def trimmed(a, b, ratios, first, last, trim):
    """First and last site of a segment of one shared allele without its false ends.

    An end is false if the ratios of its sites add up to -trim or less: it is so much likelier
    without sharing. This is asked at every 16th site. Then so much is cut off that the rest is
    likeliest, and of equals the shortest. Nothing is left if last is below first. Also returned:
    the sum of ratios, and the deepest fall of the running sum over the whole segment
    (`sum_ratios`).
    """
    total, lowest, highest, fall = sum_ratios(a, b, ratios, first, last)
    left, right = lowest <= -trim, total - highest <= -trim
    if left or right:
        whole = total
        lowest, begin_at, highest, end_at = _turns(a, b, ratios, first, last)
        if left:
            first, total = begin_at, total - lowest
        if right:
            last, total = end_at - 1, total - (whole - highest)
    return first, last, total, fall


@numba.njit(nogil=True, cache=True)
def next_part(a, b, ratios, first, last, split, new):
    """First part of first ... last: its ends, its sum of ratios, and the site behind what is done.

    A part ends where the running sum is highest before it has fallen by `split` or more: the sites
    of the fall are so much likelier without sharing. Behind it the sum begins anew (new: it has),
    and again wherever it is not above 0, so that the rest of the fall is in no part. The last part
    ends at `last`.
    """
    total, highest, end_at = 0, 0, first
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = called_sites(a, b, word) & bit_range(low - base, high - base)
        for shift in range(0, 64, 16):
            begin, end = max(low, base + shift), min(high, base + shift + 16)
            if begin >= end:
                continue
            codes = _codes(a, b, word, valid, shift) >> np.uint64(4 * (begin - base - shift))
            for site in range(begin, end):
                total += ratios[site, np.int64(codes & np.uint64(15))]
                codes >>= np.uint64(4)
                if total > highest:
                    highest, end_at = total, site + 1
                elif total - highest <= -split:
                    return first, end_at - 1, highest, site + 1
                elif new and total <= 0:
                    first, end_at, total, highest = site + 1, site + 1, 0, 0
    return first, last, total, last + 1


@numba.njit(nogil=True, cache=True)
def _outer_weights(a, b, ratios, places, weights, site, step, most, behind, limit):
    """Sum of the weights of the outermost sites until it is `limit` or more: sum, site, ratios.

    The site is the one that reached the limit, the ratios those of all sites farther out.
    """
    whole, fall, edge, shift, codes = 0, 0, places[behind], -1, np.uint64(0)
    for _ in range(most):
        weight = weights[min(max((fall >> STEP_BITS) + BELOW, 0), len(weights) - 1)]
        whole += weight * abs(edge - places[site])
        if weight == 0 or whole >= limit:
            return whole, site, fall
        edge = places[site]
        if shift != site & 48:
            shift = site & 48
            codes = _codes(a, b, site >> 6, called_sites(a, b, site >> 6), shift)
        fall += ratios[site, np.int64((codes >> np.uint64(4 * (site & 15))) & np.uint64(15))]
        site += step
    return whole, site - step, fall


@numba.njit(nogil=True, cache=True)
def likely_end(a, b, ratios, places, weights, site, step, most, behind):
    """Where a segment ends that goes on to a contradiction: its last site, and the ratios cut off.

    site: the last one before the contradiction, at site `behind`. step: -1 for the end on the
    right, 1 for that on the left. places: int64 (n_sites,), 1e-6 cM. weights: `end_weights`.

    The end lies between a site and its neighbour farther out, at most `most` sites in, with a
    chance in proportion to their distance and to the weight of the ratios farther out. It is put at
    the median: as probably the segment ends before as behind it.
    """
    given = a, b, ratios, places, weights, site, step, most, behind
    whole = _outer_weights(*given, np.int64(1) << 62)[0]
    return _outer_weights(*given, (whole + 1) >> 1)[1:]
