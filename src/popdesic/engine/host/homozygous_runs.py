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

#: What PLINK adds before it rounds a threshold: 2**-30.
EPSILON = 2.0**-30


@numba.njit(nogil=True, cache=True)
def find_runs(het, missing, first, last, pos, counts, limits, hits, out):
    """Append runs of one sample to `out`; their number.

    het, missing: uint64 (n_words,), one bit a site; missing may have no words. first, last: sites
    of the chromosome, half open. pos: int64 (n_sites,). counts: int64 (window, window_hets,
    window_missing, min_sites, max_hets, min_bp, max_gap); max_hets -1: any number. limits: float64
    (threshold, most base pairs a site). hits: uint8 (n_sites,), room. out: int64 (k, 4), first and
    last site of a run, its heterozygous and its missing genotypes.
    """
    window, window_hets, window_missing, min_sites = counts[0], counts[1], counts[2], counts[3]
    max_hets, min_bp, max_gap = counts[4], counts[5], counts[6]
    n = last - first
    found = 0
    if n < window:
        return found
    one = np.uint64(1)
    any_missing = len(missing) > 0
    # Windows, by their first site.
    n_het, n_missing = 0, 0
    for i in range(n):
        site = first + i
        word, shift = site >> 6, np.uint64(site & 63)
        n_het += np.int64((het[word] >> shift) & one)
        if any_missing:
            n_missing += np.int64((missing[word] >> shift) & one)
        start = i - window + 1
        if start >= 0:
            hits[start] = n_het <= window_hets and n_missing <= window_missing
            site = first + start
            word, shift = site >> 6, np.uint64(site & 63)
            n_het -= np.int64((het[word] >> shift) & one)
            if any_missing:
                n_missing -= np.int64((missing[word] >> shift) & one)
    n_windows = n - window + 1
    over, begun, hets, absent = 0, -1, 0, 0
    for i in range(n + 1):
        is_het, is_missing, candidate, gap = False, False, False, False
        if i < n:
            if i < n_windows:
                over += hits[i]
            if i >= window:
                over -= hits[i - window]
            covering = min(window, i + 1) if i < n_windows else n - i
            candidate = over >= np.int64(covering * limits[0] + 1.0 - EPSILON)
            site = first + i
            word, shift = site >> 6, np.uint64(site & 63)
            is_het = (het[word] >> shift) & one != 0
            if any_missing:
                is_missing = (missing[word] >> shift) & one != 0
            gap = i > 0 and pos[site] - pos[site - 1] > max_gap
        if begun >= 0 and (not candidate or gap or (is_het and hets == max_hets)):
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
                if max_hets == 0 and is_het:
                    continue
                begun, hets, absent = i, 0, 0
            hets += is_het
            absent += is_missing
    return found
