"""Segments of IBD of two people: ends and log10 ratios, 64 sites at a time.

A stretch of sites has a score, the sum of whole numbers by site (`ibd.model.end_scores`): a gain
where nothing contradicts a segment, a loss where something does. A segment starts where the running
sum last was at its lowest and ends where it is at its highest; it is closed when the sum has fallen
by more than `drop` below that (Altschul et al. 1990), or below zero, and the next one may start
behind. Its log10 ratio is the sum by genotype pairs (`ibd.model.log_ratios`) from its start to its
end. Where these speak against a shared allele, ends are cut off and segments are split; other ends
lie in front of a contradiction, and the likeliest place before it is taken (`ibd_ratios`). Sums are
integers: the same from any number of threads.

A candidate is a stretch of sites that surely belongs to a segment if there is one. The search goes
down from its first site as far as the score rises, then up from there until a segment is closed
behind the candidate's last site.

No gain is negative and no loss positive. So the score rises between two contradictions, by a
difference of two running sums, and words of 64 sites say where contradictions and missing genotypes
are; nothing else is looked at. Ratios are summed for segments that are long enough.

Both alleles are sought within a segment in the same way. There most words are full of differing
genotypes, which no stretch survives (`_leap`).
"""

from __future__ import annotations

import numba
import numpy as np

from ..engine.popcount_cpu import popcount
from ..engine.terms import Planes
from .ratios_cpu import bit_range, called_sites, likely_end, next_part, sum_ratios, trimmed

#: Columns of a found segment.
FIELDS = ("pair", "first", "last", "score", "called", "errors", "shared")
#: Sites of a chunk, of which it is asked whether its differences end any stretch.
CHUNK = 32

_ONE = np.uint64(1)


def readable(planes: Planes) -> np.ndarray:
    """Words of planes as the kernel is compiled for: contiguous, not to be written."""
    words = np.ascontiguousarray(planes.words).view(np.ndarray)
    words.flags.writeable = False
    return words


def running_sums(ends: np.ndarray) -> np.ndarray:
    """Sums of the gains of all sites before each: int64 (n_sites + 1,)."""
    return np.concatenate([[0], np.cumsum(ends[:, 0], dtype=np.int64)])


def chunk_losses(ends: np.ndarray) -> np.ndarray:
    """Smallest loss of each chunk of CHUNK sites, as a positive number: int64."""
    return np.minimum.reduceat(-ends[:, 1].astype(np.int64), np.arange(0, len(ends), CHUNK))


@numba.njit(nogil=True, inline="always")
def _highest(word):
    """Number of the highest bit of a word that is not 0."""
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(shift)
    return popcount(word) - 1


@numba.njit(nogil=True, inline="always")
def _against(a, b, word, shared):
    """Sites of a word that contradict: opposite homozygotes, or (shared 2) different genotypes."""
    if shared == 1:
        return (~a[0, word] & b[1, word]) | (a[1, word] & ~b[0, word])
    return (a[0, word] ^ b[0, word]) | (a[1, word] ^ b[1, word])


@numba.njit(nogil=True, cache=True)
def _down(a, b, ends, sums, start, bound, drop):
    """First site of the best stretch that ends before site `start`, not below `bound`."""
    score, best, first, high = 0, 0, start, start
    word = (start - 1) >> 6
    while high > bound:
        base = word << 6
        low = max(base, bound)
        here = bit_range(low - base, high - base)
        called = called_sites(a, b, word)
        against = _against(a, b, word, 1) & called & here
        events = against | (~called & here)
        while events:
            bit = _highest(events)
            site = base + bit
            one = _ONE << np.uint64(bit)
            events ^= one
            score += sums[high] - sums[site + 1]
            high = site
            if against & one:
                if score > best:
                    best, first = score, site + 1
                score += ends[site, 1]
                if best - score > drop:
                    return _first_gain(a, b, ends, first, start)
        score += sums[high] - sums[low]
        high = low
        if score > best:
            best, first = score, low
        word -= 1
    return _first_gain(a, b, ends, first, start)


@numba.njit(nogil=True, cache=True)
def _first_gain(a, b, ends, site, end):
    """First site from `site` on that adds to the score; `end` if none does."""
    while site < end:
        here = (called_sites(a, b, site >> 6) >> np.uint64(site & 63)) & _ONE
        if here and ends[site, 0] > 0:
            return site
        site += 1
    return end


@numba.njit(nogil=True, cache=True)
def _last_gain(a, b, ends, site):
    """Last site before `site` that adds to the score; there is one."""
    while True:
        site -= 1
        here = (called_sites(a, b, site >> 6) >> np.uint64(site & 63)) & _ONE
        if here and ends[site, 0] > 0:
            return site


@numba.njit(nogil=True, cache=True)
def _stretch(a, b, shared, ends, sums, cm, least, start, until, bound, drop):
    """Next stretch of at least `least` cM: first and last site, and where the search goes on.

    The search begins anew at site `start`. It ends with the first new beginning from site `until`
    on, or at `bound`, the end of sites: then first is -1.
    """
    score, best, first, mark, low = 0, 0, start, start, start
    word = start >> 6
    while low < bound:
        base = word << 6
        high = min(base + 64, bound)
        here = bit_range(low - base, high - base)
        called = called_sites(a, b, word)
        against = _against(a, b, word, shared) & called & here
        events = against | (~called & here)
        while events:
            one = events & (~events + _ONE)
            site = base + popcount(one - _ONE)
            events ^= one
            score += sums[site] - sums[low]
            low = site + 1
            if not against & one:
                continue
            if score > best:
                best, mark = score, site
            score += ends[site, 1]
            if best - score > drop or score < 0:
                if best > 0 and cm[mark - 1] - cm[first] >= least:
                    last = _last_gain(a, b, ends, mark)
                    if cm[last] - cm[first] >= least:
                        return first, last, low
                if low >= until:
                    return -1, -1, low
                score, best, first, mark = 0, 0, low, low
        score += sums[high] - sums[low]
        low = high
        if score > best:
            best, mark = score, high
        word += 1
    if best > 0 and cm[mark - 1] - cm[first] >= least:
        last = _last_gain(a, b, ends, mark)
        if cm[last] - cm[first] >= least:
            return first, last, bound
    return -1, -1, bound


@numba.njit(nogil=True, cache=True)
def count_contradictions(a, b, shared, first, last):
    """Numbers of called sites of first ... last, and of those that contradict."""
    called, errors = 0, 0
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = called_sites(a, b, word) & bit_range(low - base, high - base)
        called += popcount(valid)
        errors += popcount(_against(a, b, word, shared) & valid)
    return called, errors


@numba.njit(nogil=True, cache=True)
def _contradiction(a, b, ends, site, step, bound, stop):
    """The next site that says anything, if it contradicts a shared allele; -1 if it does not.

    Sites from `bound` up to `stop` are looked at, from `site` on in steps of 1 or -1.
    """
    while bound <= site < stop:
        word, bit = site >> 6, np.uint64(site & 63)
        if ends[site, 1] < 0 and (called_sites(a, b, word) >> bit) & _ONE:
            return site if (_against(a, b, word, 1) >> bit) & _ONE else -1
        site += step
    return -1


@numba.njit(nogil=True, cache=True)
def _likely_ends(a, b, ends, ratios, places, weights, first, last, bound, stop):
    """Likeliest ends of the segment first ... last, and the ratios of the sites cut off."""
    most, lost, begin, end = (last + 1 - first) >> 1, 0, first, last
    if not most:
        return begin, end, lost
    behind = _contradiction(a, b, ends, first - 1, -1, bound, stop)
    if behind >= 0:
        begin, fall = likely_end(a, b, ratios, places, weights, first, 1, most, behind)
        lost += fall
    behind = _contradiction(a, b, ends, last + 1, 1, bound, stop)
    if behind >= 0:
        end, fall = likely_end(a, b, ratios, places, weights, last, -1, most, behind)
        lost += fall
    return begin, end, lost


@numba.njit(nogil=True, inline="always")
def _breaks(a, b, losses, sums, chunk, drop):
    """Whether the differences of a chunk end any stretch that holds it."""
    site = chunk * CHUNK
    word = site >> 6
    here = bit_range(site & 63, (site & 63) + CHUNK)
    n = popcount(_against(a, b, word, 2) & called_sites(a, b, word) & here)
    return n * losses[chunk] - (sums[site + CHUNK] - sums[site]) > drop


@numba.njit(nogil=True, cache=True)
def _surely_closed(a, b, ends, sums, low, high, drop):
    """Site behind the last one of low ... high - 1 at which any stretch is closed; -1: none.

    A site closes all stretches if, going down from it, the sum stays negative at each contradiction
    until it has fallen by more than `drop`: a stretch that began in between is below zero, and one
    that began before has fallen too far.
    """
    for site in range(high - 1, low - 1, -1):
        if not _differ(a, b, site):
            continue
        total = np.int64(ends[site, 1])
        below = site - 1
        while total < 0 and -total <= drop and below >= low:
            if (called_sites(a, b, below >> 6) >> np.uint64(below & 63)) & _ONE:
                total += ends[below, np.int64(_differ(a, b, below))]
            below -= 1
        if -total > drop:
            return site + 1
    return -1


@numba.njit(nogil=True, inline="always")
def _differ(a, b, site):
    """Whether both genotypes of a site are called and differ."""
    word = site >> 6
    return (_against(a, b, word, 2) & called_sites(a, b, word)) >> np.uint64(site & 63) & _ONE != 0


@numba.njit(nogil=True, cache=True)
def _leap(a, b, ends, sums, losses, cm, least, start, stop, drop):
    """Where to search next for both alleles, and until where; (stop, stop) if nowhere.

    The search begins anew at `start`. A stretch does not hold a whole chunk that breaks, so one
    that begins in or behind such a chunk ends before the end of the next. Where these two lie less
    than `least` cM apart, no stretch is long enough.
    """
    begin, known = start, start
    chunk = -(-start // CHUNK)
    while begin < stop:
        while (chunk + 1) * CHUNK <= stop and not _breaks(a, b, losses, sums, chunk, drop):
            chunk += 1
        end = min((chunk + 1) * CHUNK, stop)
        if cm[end - 1] - cm[begin] >= least:
            if begin > start:
                known = _surely_closed(a, b, ends, sums, begin, begin + CHUNK, drop)
                known = start if known < 0 else known
            return known, min(chunk * CHUNK, stop)
        begin = chunk * CHUNK
        chunk += 1
    return stop, stop


@numba.njit(nogil=True, cache=True)
def _both_alleles(a, b, pair, tables, cm, limits, least, first, last, out, n):
    """Write the stretches of both alleles of the segment first ... last to `out`; their number."""
    ends, sums, ratios, losses = tables.ends2, tables.sums2, tables.ratios2, tables.losses2
    site, stop, drop = first, last + 1, limits[0]
    while site < stop:
        site, until = _leap(a, b, ends, sums, losses, cm, least, site, stop, drop)
        until = max(until, site + 1)
        while site < until and site < stop:
            one, two, site = _stretch(a, b, 2, ends, sums, cm, least, site, until, stop, drop)
            if one < 0:
                continue
            total = sum_ratios(a, b, ratios, one, two)[0]
            if total >= limits[2]:
                if n < len(out):
                    called, errors = count_contradictions(a, b, 2, one, two)
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = pair, one, two, total
                    out[n, 4], out[n, 5], out[n, 6] = called, errors, 2
                n += 1
    return n


@numba.njit(nogil=True, cache=True)
def find_segments(a, b, candidates, tables, limits, cm, places, least, out):
    """Segments of the candidates of some pairs; their number, which may exceed the room in `out`.

    a, b: uint64 (n, 2 or 3, n_words), planes of two blocks of samples. candidates: int64 (k, 7):
    number of the pair, its rows of a and b, first and end site of the candidate and of its contig;
    ordered by pair and first site. tables: `segments.ScoreTables`. limits: int64 (drop, least ratio
    of one shared allele, least of two, trim, split). cm: float64 (n_sites,), genetic positions, not
    falling within a contig; places: int64, the same in 1e-6 cM. least: float64 (3,), shortest
    segment with one and with two alleles, where one ends at the next contradiction, and shortest
    likely segment. out: int64 (m, 7), FIELDS;
    errors: opposite homozygotes where one allele is shared, differing genotypes where two are.
    """
    ends1, sums1, ratios1 = tables.ends1, tables.sums1, tables.ratios1
    drop, n = limits[0], 0
    reached, pair_before = 0, -1
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
        reached = _down(one, two, ends1, sums1, begin, lowest, drop)
        while reached < end:
            first, last, reached = _stretch(
                one, two, 1, ends1, sums1, cm, least[0], reached, end, bound, drop
            )
            if first < 0:
                break
            site, last, total, fall = trimmed(one, two, ratios1, first, last, limits[3])
            splits, new, stop = fall <= -limits[4], False, last
            while site <= stop:
                first, site = site, stop + 1
                if splits:
                    first, last, total, site = next_part(
                        one, two, ratios1, first, stop, limits[4], new
                    )
                    new = True
                if total < limits[1] or last < first or cm[last] - cm[first] < least[0]:
                    continue
                first, last, lost = _likely_ends(
                    one,
                    two,
                    ends1,
                    ratios1,
                    places,
                    tables.weights,
                    first,
                    last,
                    candidates[k, 5],
                    bound,
                )
                total -= lost
                if cm[last] - cm[first] < least[2]:
                    continue
                if n < len(out):
                    called, errors = count_contradictions(one, two, 1, first, last)
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = pair, first, last, total
                    out[n, 4], out[n, 5], out[n, 6] = called, errors, 1
                n += 1
                n = _both_alleles(one, two, pair, tables, cm, limits, least[1], first, last, out, n)
    return n
