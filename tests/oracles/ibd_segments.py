"""Slow, obvious oracle of segments of IBD: one pair at a time, in plain Python."""

from __future__ import annotations

import itertools
import math
from functools import cache

MISSING = 3


def misread(true: int, seen: int, error: float) -> float:
    """Chance that a genotype is seen as another: one allele misread with chance `error`."""
    if true == seen:
        return 1 - error
    if true == 1:
        return error / 2
    return error if seen == 1 else 0.0


@cache
def chance(a: int, b: int, p: float, error: float, shared: int) -> float:
    """Chance of two observed genotypes whose owners share so many alleles by descent.

    Sums over all alleles that the two can have, and over what may have been misread.
    """
    total = 0.0
    for alleles in itertools.product((0, 1), repeat=4 - shared):
        weight = math.prod(p if allele else 1 - p for allele in alleles)
        if shared == 0:
            one, two = alleles[:2], alleles[2:]
        elif shared == 1:
            one, two = alleles[:2], (alleles[0], alleles[2])
        else:
            one = two = alleles
        total += weight * misread(sum(one), a, error) * misread(sum(two), b, error)
    return total


@cache
def ratio(a: int, b: int, p: float, error: float, shared: int, scale: int, least: float) -> int:
    """log10 ratio of `shared` alleles to one fewer in units of 1 / scale; 0 if one is missing."""
    if MISSING in (a, b):
        return 0
    p = min(max(p, least), 1 - least)
    more, fewer = (chance(a, b, p, error, k) for k in (shared, shared - 1))
    return round(scale * math.log10(more / fewer))


def contradicts(a: int, b: int, shared: int) -> bool:
    """Opposite homozygotes where one allele is shared, differing genotypes where two are."""
    return {a, b} == {0, 2} if shared == 1 else a != b


@cache
def end_score(
    a: int, b: int, p: float, error: float, shared: int, scale: int, least: float, gain: float
) -> int:
    """log10 ratio as of `ratio`, of whether the pair contradicts; of a gain the share `gain`."""
    if MISSING in (a, b):
        return 0
    p = min(max(p, least), 1 - least)
    alike = [
        (x, y)
        for x in range(3)
        for y in range(3)
        if contradicts(x, y, shared) == contradicts(a, b, shared)
    ]
    more, fewer = (sum(chance(x, y, p, error, k) for x, y in alike) for k in (shared, shared - 1))
    counted = 1.0 if contradicts(a, b, shared) else gain
    return round(scale * counted * math.log10(more / fewer))


def segments(scores: list[int], first: int, last: int, until: int, drop: int):
    """(first, last) of the stretches of the sites from `first` on, and where the search ended.

    The running sum begins anew when it is negative or has fallen by more than `drop` from its
    highest; the stretch to its highest counts. The search ends with the first new beginning behind
    site `until` - 1, or at `last`.
    """
    found, start = [], first
    while True:
        sums, site, closed = [0], start, False
        while site < last and not closed:
            sums.append(sums[-1] + scores[site])
            closed = sums[-1] < 0 or max(sums) - sums[-1] > drop
            site += 1
        if max(sums) > 0:
            found.append((start, start + sums.index(max(sums)) - 1))
        if not closed:
            return found, last
        start = site
        if start >= until:
            return found, start


def reach_down(scores: list[int], start: int, bound: int, drop: int) -> int:
    """First site of the stretch that ends before `start` and has the highest sum."""
    best, first, total = 0, start, 0
    for site in range(start - 1, bound - 1, -1):
        total += scores[site]
        if total > best:
            best, first = total, site
        elif best - total > drop:
            break
    return first


def trimmed(ratios: list[int], first: int, last: int, trim: int) -> tuple[int, int]:
    """First and last site without the ends whose ratios add up to -trim or less.

    This is asked at every 16th site. Of each end so much is cut off that the sum of what is cut off
    is lowest, sites without a ratio at the cut as well.
    """
    before = {k: sum(ratios[first:k]) for k in range(first, last + 2)}
    behind = {k: sum(ratios[k : last + 1]) for k in range(first, last + 2)}
    asked = [k for k in before if k % 16 == 0 or k in (first, last + 1)]
    begin, end = first, last + 1
    if min(before[k] for k in asked) <= -trim:
        begin = max(k for k in before if before[k] == min(before.values()))
    if min(behind[k] for k in asked) <= -trim:
        end = min(k for k in behind if behind[k] == min(behind.values()))
    return begin, end - 1


def parts(ratios: list[int], whole: tuple[int, int], first: int, last: int, split: int):
    """(first, last) of the parts of a segment between stretches whose ratios fall by `split`.

    Whether there are such stretches is asked at every 16th site of the segment before its ends were
    cut off, `whole`. A part ends at its highest sum; the next one begins behind the fall, where no
    sum from its beginning is 0 or less.
    """
    asked = [
        k for k in range(whole[0], whole[1] + 2) if k % 16 == 0 or k in (whole[0], whole[1] + 1)
    ]
    falls = (sum(ratios[j:k]) for j in asked for k in asked if j < k)
    if min(falls, default=0) > -split:
        return [(first, last)]
    found, begin, sums = [], first, [0]
    for site in range(first, last + 1):
        sums.append(sums[-1] + ratios[site])
        if max(sums) - sums[-1] >= split:
            found.append((begin, begin + sums.index(max(sums)) - 1))
            begin, sums = site + 1, [0]
        elif found and sums[-1] <= 0:
            begin, sums = site + 1, [0]
    return [one for one in [*found, (begin, last)] if one[0] <= one[1]]


def likely_end(ratios, contradicts, known, places, weight, first, last, right: bool, low, high):
    """Last site (right) or first site of a segment, of which half the weight lies farther out.

    known: sites that say anything. weight: a function of the sum of the ratios of some sites. The
    site is moved only if the next one that says anything, in low ... high - 1, contradicts.
    """
    inner = range(last, first - 1, -1) if right else range(first, last + 1)
    farther = range(last + 1, high) if right else range(first - 1, low - 1, -1)
    behind = next((k for k in farther if known[k]), None)
    if behind is None or not contradicts[behind] or not (last + 1 - first) // 2:
        return inner[0]
    inner, weights = inner[: (last + 1 - first) // 2], []
    for n, site in enumerate(inner):
        own = weight(sum(ratios[k] for k in inner[:n]))
        if own == 0:
            break
        weights.append(own * abs(places[inner[n - 1] if n else behind] - places[site]))
    return next(k for n, k in enumerate(inner) if 2 * sum(weights[: n + 1]) >= sum(weights))


def weight_of(total: int, share: float, scale: int) -> int:
    """Weight of an end, of which sites of so large a sum of ratios lie farther out."""
    step = max(total // 64, -256)
    return round(2**16 * 10.0 ** (-share * step * 64 / scale))


def find(a, b, candidates, af, error, scale, least, gain, contigs, limits, cm, least_cm):
    """Segments of a pair: list of (first, last, ratio, called, errors, shared).

    a, b: genotypes of the two, 3 if missing. candidates: (contig, first, end) of sites. af:
    frequencies, NaN: left out. contigs: (first, end). limits: drop, least ratios of one and two
    alleles, trim, split. least_cm: of one and two, and of one at its
    likely ends.
    """

    def at(function, shared, *more):
        return [
            0 if p != p else function(x, y, p, error, shared, scale, least, *more)
            for x, y, p in zip(a, b, af, strict=True)
        ]

    found, reached, before = [], 0, None
    ends = {k: at(end_score, k, gain) for k in (1, 2)}
    ratios = {k: at(ratio, k) for k in (1, 2)}

    known = [p == p and MISSING not in (x, y) for x, y, p in zip(a, b, af, strict=True)]
    against = [contradicts(x, y, 1) for x, y in zip(a, b, strict=True)]
    places = [round(1e6 * x) for x in cm]

    def likely(first, last, low, high):
        given = ratios[1], against, known, places, lambda x: weight_of(x, gain, scale), first, last
        return likely_end(*given, False, low, high), likely_end(*given, True, low, high)

    def row(first, last, shared):
        both = [(a[k], b[k]) for k in range(first, last + 1) if MISSING not in (a[k], b[k])]
        errors = sum(contradicts(x, y, shared) for x, y in both)
        total = sum(ratios[shared][first : last + 1])
        return (first, last, total, len(both), errors, shared)

    def wanted(one):
        first, last, total, *_, shared = one
        return total >= limits[shared] and cm[last] - cm[first] >= least_cm[shared - 1]

    for contig, begin, end in sorted(candidates):
        low, high = contigs[contig]
        if contig == before:
            low = max(low, reached)
            if end <= reached:
                continue
            begin = max(begin, reached)
        before = contig
        start = reach_down(ends[1], begin, low, limits[0])
        runs, reached = segments(ends[1], start, high, end, limits[0])
        for run in runs:
            own = trimmed(ratios[1], *run, limits[3])
            for first, last in parts(ratios[1], run, *own, limits[4]) if own[0] <= own[1] else ():
                if wanted(row(first, last, 1)):
                    first, last = likely(first, last, contigs[contig][0], high)
                    if cm[last] - cm[first] < least_cm[2]:
                        continue
                    inner, _ = segments(ends[2], first, last + 1, last + 1, limits[0])
                    rows = [row(*two, 2) for two in inner]
                    found += [row(first, last, 1), *filter(wanted, rows)]
    return found
