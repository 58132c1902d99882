"""Segments of IBD of two people: ends and log10 ratios, site by site.

A stretch of sites has a score, the sum of whole numbers by site (`ibd.model.end_scores`): a gain
where nothing contradicts a segment, a loss where something does. A segment starts where the running
sum last was at its lowest and ends where it is at its highest; it is closed when the sum has fallen
by more than `drop` below that (Altschul et al. 1990), and the next one may start behind. Its log10
ratio is the sum by genotype pairs (`ibd.model.log_ratios`) from its start to its end. Sums are
integers: the same from any number of threads.

A candidate is a stretch of sites that surely belongs to a segment if there is one. The search goes
down from its first site as far as the score rises, then up from there until a segment is closed
behind the candidate's last site.
"""

from __future__ import annotations

import numba
import numpy as np

#: Columns of a found segment.
FIELDS = ("pair", "first", "last", "score", "called", "errors", "shared")


@numba.njit(nogil=True, cache=True)
def _code(planes, site):
    """ALT alleles of a sample at a site; 3 if missing. planes: uint64 (2 or 3, n_words)."""
    word, bit = site >> 6, np.uint64(site & 63)
    one = np.uint64(1)
    if planes.shape[0] > 2 and (planes[2, word] >> bit) & one == 0:
        return 3
    return np.int64(((planes[0, word] >> bit) & one) + ((planes[1, word] >> bit) & one))


@numba.njit(nogil=True, cache=True)
def _down(a, b, ends, start, bound, drop):
    """First site of the best stretch that ends before site `start`, not below `bound`."""
    score, best, first = 0, 0, start
    for site in range(start - 1, bound - 1, -1):
        one, two = _code(a, site), _code(b, site)
        if one < 3 and two < 3:
            score += ends[site, np.int64(abs(one - two) > 1)]
        if score > best:
            best, first = score, site
        elif best - score > drop:
            break
    return first


@numba.njit(nogil=True, cache=True)
def _up(a, b, ends, ratios, start, until, bound, drop, least, shared, out, n):
    """Write segments from site `start` on to `out`; their number, and where the search ended.

    Sites from `until` on belong to a segment that began before, or to none. bound: end of sites.
    """
    score, best, first, last = 0, 0, start, start
    ratio, ratio_best, called, called_best, errors, errors_best = 0, 0, 0, 0, 0, 0
    site = start
    while site <= bound:
        closing = site == bound
        if not closing:
            one, two = _code(a, site), _code(b, site)
            if one < 3 and two < 3:
                against = np.int64(abs(one - two) > 2 - shared)
                score += ends[site, against]
                ratio += ratios[site, 4 * one + two]
                called += 1
                errors += against
            if score > best:
                best, last, ratio_best = score, site, ratio
                called_best, errors_best = called, errors
            closing = best - score > drop or score < 0
        site += 1
        if closing:
            if best > 0 and ratio_best >= least:
                if n < len(out):
                    out[n, 1], out[n, 2], out[n, 3] = first, last, ratio_best
                    out[n, 4], out[n, 5], out[n, 6] = called_best, errors_best, shared
                n += 1
            score, best, first, ratio, called, errors = 0, 0, site, 0, 0, 0
            if site >= until:
                break
    return n, min(site, bound)


@numba.njit(nogil=True, cache=True)
def find_segments(a, b, candidates, ends1, ratios1, ends2, ratios2, limits, cm, least_cm, out):
    """Segments of the candidates of some pairs; their number, which may exceed the room in `out`.

    a, b: uint64 (n, 2 or 3, n_words), planes of two blocks of samples. candidates: int64 (k, 7):
    number of the pair, its rows of a and b, first and end site of the candidate and of its contig;
    ordered by pair and first site. ends1, ends2: int32 (n_sites, 2), `ibd.model.end_scores` of one
    and two alleles. ratios1, ratios2: int32 (n_sites, 16), `log_ratios`. limits: int64 (drop, least
    ratio of one shared allele, least of two). cm: float64 (n_sites,), genetic positions. least_cm:
    float64 (2,), shortest segment with one and with two alleles. out: int64 (m, 7), FIELDS; errors:
    opposite homozygotes where one allele is shared, differing genotypes where two are.
    """
    drop, n = limits[0], 0
    reached, pair_before, room = 0, -1, np.empty((64, 7), np.int64)
    for k in range(len(candidates)):
        pair, i, j, begin, end = candidates[k, :5]
        lowest, bound = candidates[k, 5], candidates[k, 6]
        if pair == pair_before and reached > lowest:
            lowest = reached
            if end <= reached:
                continue
            begin = max(begin, reached)
        pair_before = pair
        one, two = a[i], b[j]
        start = _down(one, two, ends1, begin, lowest, drop)
        while True:
            found, reached = _up(
                *(one, two, ends1, ratios1, start, end, bound, drop, limits[1], 1, room, 0)
            )
            if found <= len(room):
                break
            room = np.empty((found, 7), np.int64)
        for f in range(found):
            first, last = room[f, 1], room[f, 2]
            if cm[last] - cm[first] < least_cm[0]:
                continue
            if n < len(out):
                out[n] = room[f]
                out[n, 0] = pair
            n += 1
            before = n
            stop = last + 1
            n, _ = _up(one, two, ends2, ratios2, first, stop, stop, drop, limits[2], 2, out, n)
            kept = before
            for g in range(before, min(n, len(out))):
                if cm[out[g, 2]] - cm[out[g, 1]] >= least_cm[1]:
                    out[kept] = out[g]
                    out[kept, 0] = pair
                    kept += 1
            if n <= len(out):
                n = kept
    return n
