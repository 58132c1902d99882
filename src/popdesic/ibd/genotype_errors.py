"""Share of wrong genotypes, measured where two founders surely share alleles.

Deep inside a long segment two samples share an allele, so opposite homozygotes are errors; deep
inside a long stretch with both alleles, as of duplicates, different genotypes are. Parents and
children share a segment along every contig. The rate is the one at which the model of `model.py`
expects as many contradictions as were counted.

Segments are sought for this with a high rate (`FIRST_RATE`), so that errors neither end nor split
them; what lies near their ends does not count, because a segment that is sought so reaches too far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..engine.terms import Planes
from .definition import SegmentLimits, Segments
from .model import contradictions
from .windows import GeneticSites, sites_per_window

#: Rate with which segments are sought before their errors are known.
FIRST_RATE = 0.01
#: Sites within so many cM of an end do not count; what is left has to be as long as LEAST_CM.
END_CM, LEAST_CM = 2.0, 8.0
#: Segments that are looked at, spread evenly over all that are long enough.
MOST_SEGMENTS = 20_000
#: A segment with so many standard deviations (Poisson) more contradictions than the others is not
#: one segment, or of a bad sample, and does not count.
MOST_DEVIATIONS = 4.0
#: A rate below LEAST_RATE changes no segment, one above MOST_RATE is no share of errors any more.
LEAST_RATE, MOST_RATE = 0.001, 0.03
#: Contradictions that LEAST_RATE would make in what is looked at: with fewer nothing is measured.
FEWEST = 10
#: Share of the windows inside a segment that may have more contradictions than `tolerance`.
LOST_WINDOWS = 0.005


class ErrorRate(NamedTuple):
    """What was measured: `rate` is None where too little is shared.

    Attributes
    ----------
    rate : float or None
        Share of genotypes with one allele misread, not below LEAST_RATE.
    segments : int
        Stretches that counted.
    called, contradictions : int
        Pairs of genotypes that were compared in them, and those that an error explains.
    """

    rate: float | None
    segments: int
    called: int
    contradictions: int


def limits_before(limits: SegmentLimits) -> SegmentLimits:
    """Limits with which segments are sought before the error rate is known."""
    least = max(limits.min_cm, LEAST_CM + 2 * END_CM)
    return replace(limits, error_rate=FIRST_RATE, tolerance=2, min_cm=least)


def measure_errors(
    founders: Planes, found: Segments, sites: GeneticSites, af: np.ndarray
) -> ErrorRate:
    """Measure the error rate of the founders' genotypes.

    Parameters
    ----------
    founders : Planes
    found : Segments
        Of all pairs of founders, by `limits_before`.
    sites : GeneticSites
        Only those that are used count.
    af : float64 array, (n_sites,)
        Frequency of ALT.

    Returns
    -------
    ErrorRate
        The rate has one digit, so that little changes no segment.
    """
    from .segments_cpu import count_contradictions, readable

    pieces = _insides(found, sites.cm)
    if len(pieces) > MOST_SEGMENTS:
        pieces = pieces[np.linspace(0, len(pieces) - 1, MOST_SEGMENTS).round().astype(int)]
    words, rows = readable(founders), pieces.tolist()
    counts = [count_contradictions(words[i], words[j], shared, a, b) for i, j, a, b, shared in rows]
    counts = np.array(counts, np.int64).reshape(len(pieces), 2)
    linear, square = contradictions(np.where(sites.used, af, np.nan))
    before = np.concatenate([np.zeros((1, 2, 2)), np.cumsum([linear.T, square.T], 2).T])
    kind = pieces[:, 4] - 1
    sums = before[pieces[:, 3] + 1, kind] - before[pieces[:, 2], kind]
    n_used = np.concatenate([[0], np.cumsum(sites.used)])
    length = n_used[pieces[:, 3] + 1] - n_used[pieces[:, 2]]
    sums *= counts[:, :1] / np.maximum(length, 1)[:, None]
    kept = np.ones(len(pieces), bool)
    for _ in range(3):
        rate = _rate(sums[kept].sum(0), counts[kept, 1].sum())
        expected = rate * sums[:, 0] + rate**2 * sums[:, 1]
        kept = counts[:, 1] <= expected + MOST_DEVIATIONS * np.sqrt(expected + 1)
    total = sums[kept].sum(0)
    called, against = counts[kept].sum(0).tolist()
    enough = LEAST_RATE * total[0] >= FEWEST
    rate = min(max(_rate(total, against), LEAST_RATE), MOST_RATE) if enough else None
    return ErrorRate(rate and float(f"{rate:.1g}"), int(kept.sum()), called, against)


def tolerance_of(sites: GeneticSites, af: np.ndarray, limits: SegmentLimits, rate: float) -> int:
    """Contradictions that a window of a candidate may have: nearly no window has more by errors."""
    linear, square = contradictions(af[sites.used])
    each = rate * linear[:, 0] + rate**2 * square[:, 0]
    mean = float(each.mean() * sites_per_window(sites, limits.window))
    tail, term, most = 1.0, np.exp(-mean), -1
    while tail > LOST_WINDOWS:  # of a Poisson number
        most += 1
        tail, term = tail - term, term * mean / (most + 1)
    return max(most, 1)


def _rate(sums: np.ndarray, counted: int) -> float:
    """The rate e with ``sums[0] * e + sums[1] * e**2 = counted``; 0 if nothing can be counted."""
    linear, square = sums
    if linear <= 0:
        return 0.0
    root = np.sqrt(max(linear**2 + 4 * square * counted, 0.0))
    return float(2 * counted / (linear + root))


def _insides(found: Segments, cm: np.ndarray) -> np.ndarray:
    """Long stretches without their ends: int64 (n, 5) of a, b, first, last site, shared alleles.

    Of pairs with a stretch of both alleles only those stretches count: inside them there are hardly
    any opposite homozygotes, even by errors.
    """
    both = np.unique(np.column_stack([found.a, found.b])[found.shared == 2], axis=0)
    of_both = {tuple(pair) for pair in both.tolist()}
    rows = []
    columns = found.a, found.b, found.first, found.last, found.shared
    for a, b, first, last, shared in zip(*(x.tolist() for x in columns), strict=True):
        if shared == 1 and (a, b) in of_both:
            continue
        if cm[last] - cm[first] < LEAST_CM + 2 * END_CM:
            continue
        inside = cm[first : last + 1]
        low = first + int(np.searchsorted(inside, cm[first] + END_CM))
        high = first + int(np.searchsorted(inside, cm[last] - END_CM, "right")) - 1
        rows.append((a, b, low, high, shared))
    return np.array(rows, np.int64).reshape(-1, 5)
