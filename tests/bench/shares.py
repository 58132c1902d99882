"""Parts of a scan that stand for the whole: runs of first sites, spread evenly over all of them.

All combinations lie on a line, first site by first site, like the work of a scan's units
(`popdesic.epistasis.units`). The line is cut into equal parts, and the middle of each is scanned.
"""

from __future__ import annotations

import math

import numpy as np

#: Runs of first sites that a share consists of, if there are enough sites.
RUNS = 8


def combinations_before(n_sites: int, order: int) -> np.ndarray:
    """Combinations whose first site is below 0, 1, ... n_sites, float64 (n_sites + 1,)."""
    left = [math.comb(n_sites - stop, order) for stop in range(n_sites + 1)]
    return np.array([left[0] - n for n in left], np.float64)


def first_sites(n_sites: int, order: int, share: float, runs: int = RUNS) -> list[range]:
    """Runs of first sites that hold about this share of the combinations; all sites for 1.

    A run is rounded to whole first sites and has one of them at least.
    """
    if share >= 1:
        return [range(n_sites)]
    done = combinations_before(n_sites, order)
    last = max(1, n_sites - order + 1)  # first sites of at least one combination
    spans: list[range] = []
    for run in range(runs):
        ends = (run + (1 + np.array([-share, share])) / 2) / runs * done[-1]
        start, stop = np.abs(done[:, None] - ends).argmin(axis=0).tolist()
        start = max(start, spans[-1].stop if spans else 0)
        stop = min(max(stop, start + 1), last)
        if start < stop:
            spans.append(range(start, stop))
    return spans


def count(n_sites: int, order: int, spans: list[range]) -> int:
    """Combinations whose first site lies in one of these runs."""
    return sum(
        math.comb(n_sites - span.start, order) - math.comb(n_sites - span.stop, order)
        for span in spans
    )


def describe(n_sites: int, order: int, spans: list[range]) -> str:
    """What was scanned, as text."""
    if spans == [range(n_sites)]:
        return "all combinations"
    tests, whole = count(n_sites, order, spans), math.comb(n_sites, order)
    n = sum(len(span) for span in spans)
    return (
        f"{tests / whole:.2%} of the combinations: {n} of {n_sites} first sites, in {len(spans)} "
        f"runs between {spans[0].start} and {spans[-1].stop - 1}"
    )
