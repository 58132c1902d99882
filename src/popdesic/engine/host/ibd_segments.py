"""Segments of IBD of two people: ends and log10 ratios, 64 sites at a time.

A stretch of sites has a score, the sum of whole numbers by site (`ibd.model.end_scores`): a gain
where nothing contradicts a segment, a loss where something does. A segment starts where the running
sum last was at its lowest and ends where it is at its highest; it is closed when the sum has fallen
by more than `drop` below that (Altschul et al. 1990), or below zero, and the next one may start
behind. Its log10 ratio is the sum by genotype pairs (`ibd.model.log_ratios`) from its start to its
end. Ends over which these speak against a shared allele are cut off (`_trimmed`). Sums are
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

from .popcount import popcount

#: Columns of a found segment.
FIELDS = ("pair", "first", "last", "score", "called", "errors", "shared")
#: Sites of a chunk, of which it is asked whether its differences end any stretch.
CHUNK = 32

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)


def running_sums(ends: np.ndarray) -> np.ndarray:
    """Sums of the gains of all sites before each: int64 (n_sites + 1,)."""
    return np.concatenate([[0], np.cumsum(ends[:, 0], dtype=np.int64)])


def chunk_losses(ends: np.ndarray) -> np.ndarray:
    """Smallest loss of each chunk of CHUNK sites, as a positive number: int64."""
    return np.minimum.reduceat(-ends[:, 1].astype(np.int64), np.arange(0, len(ends), CHUNK))


def by_bits(ratios: np.ndarray) -> np.ndarray:
    """Columns of `ibd.model.log_ratios` by the planes' bits instead of genotypes.

    The column is 4 x bits + other bits, where bits are first plane + 2 x second plane, and 2 (no
    called genotype has it) if missing.
    """
    code = np.array([0, 1, 3, 2])  # genotype of bits
    return np.ascontiguousarray(ratios.reshape(-1, 4, 4)[:, code][:, :, code].reshape(-1, 16))


@numba.njit(nogil=True, inline="always")
def _lowest(word):
    """Number of the lowest bit of a word that is not 0."""
    return popcount((word & (~word + _ONE)) - _ONE)


@numba.njit(nogil=True, inline="always")
def _highest(word):
    """Number of the highest bit of a word that is not 0."""
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(shift)
    return popcount(word) - 1


@numba.njit(nogil=True, inline="always")
def _called(a, b, word):
    """Sites of a word at which both are called. a, b: uint64 (2 or 3, n_words)."""
    called = _ALL
    if a.shape[0] > 2:
        called &= a[2, word]
    if b.shape[0] > 2:
        called &= b[2, word]
    return called


@numba.njit(nogil=True, inline="always")
def _against(a, b, word, shared):
    """Sites of a word that contradict: opposite homozygotes, or (shared 2) different genotypes."""
    if shared == 1:
        return (~a[0, word] & b[1, word]) | (a[1, word] & ~b[0, word])
    return (a[0, word] ^ b[0, word]) | (a[1, word] ^ b[1, word])


@numba.njit(nogil=True, inline="always")
def _range(first, end):
    """Bits first ... end - 1 of a word; 0 <= first < end <= 64."""
    return (_ALL >> np.uint64(64 - (end - first))) << np.uint64(first)


@numba.njit(nogil=True, cache=True)
def _down(a, b, ends, sums, start, bound, drop):
    """First site of the best stretch that ends before site `start`, not below `bound`."""
    score, best, first, high = 0, 0, start, start
    word = (start - 1) >> 6
    while high > bound:
        base = word << 6
        low = max(base, bound)
        here = _range(low - base, high - base)
        called = _called(a, b, word)
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
        here = (_called(a, b, site >> 6) >> np.uint64(site & 63)) & _ONE
        if here and ends[site, 0] > 0:
            return site
        site += 1
    return end


@numba.njit(nogil=True, cache=True)
def _last_gain(a, b, ends, site):
    """Last site before `site` that adds to the score; there is one."""
    while True:
        site -= 1
        here = (_called(a, b, site >> 6) >> np.uint64(site & 63)) & _ONE
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
        here = _range(low - base, high - base)
        called = _called(a, b, word)
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
def _measure(a, b, ratios, first, last):
    """Sum of the ratios of first ... last; lowest and highest running sum before sites 16 k."""
    total, lowest, highest = 0, 0, 0
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = _called(a, b, word) & _range(low - base, high - base)
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
    return total, lowest, highest


@numba.njit(nogil=True, cache=True)
def _turns(a, b, ratios, first, last):
    """Lowest running sum, the last site before which it is so low; highest, and the first site."""
    total, lowest, highest, begin_at, end_at = 0, 0, 0, first, first
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = _called(a, b, word) & _range(low - base, high - base)
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
def _trimmed(a, b, ratios, first, last, trim):
    """First and last site of a segment of one shared allele without its false ends, and its ratio.

    An end is false if the ratios of its sites add up to -trim or less: it is so much likelier
    without sharing. This is asked at every 16th site. Then so much is cut off that the rest is
    likeliest, and of equals the shortest. Nothing is left if last is below first.
    """
    total, lowest, highest = _measure(a, b, ratios, first, last)
    left, right = lowest <= -trim, total - highest <= -trim
    if left or right:
        whole = total
        lowest, begin_at, highest, end_at = _turns(a, b, ratios, first, last)
        if left:
            first, total = begin_at, total - lowest
        if right:
            last, total = end_at - 1, total - (whole - highest)
    return first, last, total


@numba.njit(nogil=True, cache=True)
def _count(a, b, shared, first, last):
    """Numbers of called sites of first ... last, and of those that contradict."""
    called, errors = 0, 0
    for word in range(first >> 6, (last >> 6) + 1):
        base = word << 6
        low, high = max(base, first), min(base + 64, last + 1)
        valid = _called(a, b, word) & _range(low - base, high - base)
        called += popcount(valid)
        errors += popcount(_against(a, b, word, shared) & valid)
    return called, errors


@numba.njit(nogil=True, inline="always")
def _breaks(a, b, losses, sums, chunk, drop):
    """Whether the differences of a chunk end any stretch that holds it."""
    site = chunk * CHUNK
    word = site >> 6
    here = _range(site & 63, (site & 63) + CHUNK)
    n = popcount(_against(a, b, word, 2) & _called(a, b, word) & here)
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
            if (_called(a, b, below >> 6) >> np.uint64(below & 63)) & _ONE:
                total += ends[below, np.int64(_differ(a, b, below))]
            below -= 1
        if -total > drop:
            return site + 1
    return -1


@numba.njit(nogil=True, inline="always")
def _differ(a, b, site):
    """Whether both genotypes of a site are called and differ."""
    word = site >> 6
    return (_against(a, b, word, 2) & _called(a, b, word)) >> np.uint64(site & 63) & _ONE != 0


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
def _both_alleles(a, b, pair, ends, sums, losses, ratios, cm, limits, least, first, last, out, n):
    """Write the stretches of both alleles of the segment first ... last to `out`; their number."""
    site, stop, drop = first, last + 1, limits[0]
    while site < stop:
        site, until = _leap(a, b, ends, sums, losses, cm, least, site, stop, drop)
        until = max(until, site + 1)
        while site < until and site < stop:
            one, two, site = _stretch(a, b, 2, ends, sums, cm, least, site, until, stop, drop)
            if one < 0:
                continue
            total = _measure(a, b, ratios, one, two)[0]
            if total >= limits[2]:
                if n < len(out):
                    called, errors = _count(a, b, 2, one, two)
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = pair, one, two, total
                    out[n, 4], out[n, 5], out[n, 6] = called, errors, 2
                n += 1
    return n


@numba.njit(nogil=True, cache=True)
def find_segments(
    a, b, candidates, ends1, sums1, ratios1, ends2, sums2, ratios2, losses2, limits, cm, least, out
):
    """Segments of the candidates of some pairs; their number, which may exceed the room in `out`.

    a, b: uint64 (n, 2 or 3, n_words), planes of two blocks of samples. candidates: int64 (k, 7):
    number of the pair, its rows of a and b, first and end site of the candidate and of its contig;
    ordered by pair and first site. ends1, ends2: int32 (n_sites, 2), `ibd.model.end_scores` of one
    and two alleles. sums1, sums2: `running_sums`. ratios1, ratios2: int32 (n_sites, 16), `by_bits`.
    losses2: `chunk_losses`. limits: int64 (drop, least ratio of one shared allele, least of two,
    trim). cm: float64 (n_sites,), genetic positions, not falling within a contig. least: float64
    (2,), shortest segment with one and with two alleles. out: int64 (m, 7), FIELDS; errors:
    opposite homozygotes where one allele is shared, differing genotypes where two are.
    """
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
            first, last, total = _trimmed(one, two, ratios1, first, last, limits[3])
            if total < limits[1] or last < first or cm[last] - cm[first] < least[0]:
                continue
            if n < len(out):
                called, errors = _count(one, two, 1, first, last)
                out[n, 0], out[n, 1], out[n, 2], out[n, 3] = pair, first, last, total
                out[n, 4], out[n, 5], out[n, 6] = called, errors, 1
            n += 1
            n = _both_alleles(
                *(one, two, pair, ends2, sums2, losses2, ratios2, cm, limits, least[1]),
                *(first, last, out, n),
            )
    return n
