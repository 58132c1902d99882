"""Runs of homozygosity of one sample on one chromosome, by sliding windows.

The rule is that of `plink1.9 --homozyg` (Purcell et al. 2007; plink_homozyg.c). A window of
`window` sites is homozygous if it has at most `window_hets` heterozygous and `window_missing`
missing genotypes. A site is a candidate if at least a share `threshold` of the windows over it are
homozygous. A run is a stretch of candidates; it ends before a gap of more than `max_gap` base pairs
and before the heterozygote after `max_hets` of them. Runs with enough sites, length and density
count. A chromosome with fewer sites than a window has none.
"""

from __future__ import annotations

import numba
import numpy as np

from ..engine.popcount_cpu import popcount

#: What PLINK adds before it rounds a threshold: 2**-30.
EPSILON = 2.0**-30


@numba.njit(nogil=True, cache=True)
def find_runs(het, missing, first, last, pos, counts, limits, hits, out):
    """Write the runs of one sample to `out`; their number.

    Only homozygous windows are looked at: those between heterozygous site k and site
    k + window_hets + 1, wherever more than a window of sites lies between them.

    het, missing: uint64 (n_words,), one bit a site; missing may have no words. first, last: sites
    of the chromosome, half open. pos: int64 (n_sites,). counts: int64 (window, window_hets,
    window_missing, min_sites, max_hets, min_bp, max_gap); max_hets -1: any number. limits: float64
    (threshold, most base pairs a site). hits: uint8 (n_sites,), room, zeros. out: int64 (k, 4),
    first and last site of a run, its heterozygous and its missing genotypes.
    """
    window, window_hets, window_missing = counts[0], counts[1], counts[2]
    n = last - first
    if n < window:
        return 0
    # Heterozygous sites, between one before the first window and one behind the last.
    places = np.empty(n + window_hets + 2, np.int64)
    places[0] = -1
    n_places = 1
    for word in range(first >> 6, (last + 63) >> 6):
        left = het[word]
        while left:
            bit = left & (~left + np.uint64(1))
            site = 64 * word + popcount(bit - np.uint64(1)) - first
            if 0 <= site < n:
                places[n_places] = site
                n_places += 1
            left &= left - np.uint64(1)
    for k in range(window_hets + 1):
        places[n_places + k] = n
    found, low, high = 0, 0, -1
    for k in range(n_places):
        begin, end = places[k] + 1, places[k + window_hets + 1] - window
        if begin > end:
            continue
        if high >= low and begin > high + window:
            found = _scan(het, missing, first, n, low, high, pos, counts, limits, hits, out, found)
            high = low - 1
        if high < low:
            low = begin
        _mark(missing, first, begin, end, window, window_missing, hits)
        high = max(high, end)
    if high >= low:
        found = _scan(het, missing, first, n, low, high, pos, counts, limits, hits, out, found)
    return found


@numba.njit(nogil=True, cache=True)
def _bit(words, site):
    return np.int64((words[site >> 6] >> np.uint64(site & 63)) & np.uint64(1))


@numba.njit(nogil=True, cache=True)
def _mark(missing, first, begin, end, window, most, hits):
    """Windows that begin at sites `begin` to `end` are homozygous unless too much is missing."""
    if len(missing) == 0:
        hits[begin : end + 1] = 1
        return
    absent = 0
    for site in range(first + begin, first + begin + window):
        absent += _bit(missing, site)
    for start in range(begin, end + 1):
        hits[start] = absent <= most
        if start < end:
            absent += _bit(missing, first + start + window) - _bit(missing, first + start)


@numba.njit(nogil=True, cache=True)
def _scan(het, missing, first, n, low, high, pos, counts, limits, hits, out, found):
    """Runs over the sites of the windows that begin at `low` to `high`, which are cleared."""
    window, min_sites, max_hets = counts[0], counts[3], counts[4]
    min_bp, max_gap = counts[5], counts[6]
    n_windows = n - window + 1
    over, begun, hets, absent = 0, -1, 0, 0
    for i in range(low, min(high + window, n) + 1):
        is_het, is_missing, candidate, gap = 0, 0, False, False
        if i < n:
            if i <= high:
                over += hits[i]
            if i - window >= low:
                over -= hits[i - window]
            covering = min(window, i + 1) if i < n_windows else n - i
            candidate = over >= np.int64(covering * limits[0] + 1.0 - EPSILON)
            site = first + i
            is_het = _bit(het, site)
            if len(missing) > 0:
                is_missing = _bit(missing, site)
            gap = i > 0 and pos[site] - pos[site - 1] > max_gap
        if begun >= 0 and (not candidate or gap or (is_het == 1 and hets == max_hets)):
            length = pos[first + i - 1] + 1 - pos[first + begun]
            if i - begun >= min_sites and length >= min_bp and (i - begun) * limits[1] >= length:
                out[found, 0] = first + begun
                out[found, 1] = first + i - 1
                out[found, 2] = hets
                out[found, 3] = absent
                found += 1
            begun = -1
        if candidate:
            if begun < 0:
                if max_hets == 0 and is_het == 1:
                    continue
                begun, hets, absent = i, 0, 0
            hets += is_het
            absent += is_missing
    hits[low : high + 1] = 0
    return found
