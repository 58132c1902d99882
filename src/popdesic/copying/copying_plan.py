"""Sizes of haplotype copying: units of probability, windows of the map.

All that decides a result is a constant here or a function of the panel's map. So a window is the
same whoever is imputed in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: The states of a haplotype sum to this number of units. A sum over states counts whole units.
UNITS = 1 << 22
#: Sites between two states of the forward pass that are kept; the others are computed twice.
CHECKPOINT = 64
#: More haplotypes than these need a choice of states (a unit would be too coarse).
MOST_HAPLOTYPES = 65_536
#: Samples that are phased from each other to be a reference: fewer are too few (--founders of
#: tests/bench/bench_copying.py), of more some are chosen.
LEAST_FOUNDERS, MOST_FOUNDERS = 100, 2_000
#: A window has these centimorgans, and this many more on either side that only lead up to it.
WINDOW_CM, MARGIN_CM = 40.0, 4.0
#: Shortest distance of two sites: every haplotype keeps a chance, so that no sum becomes 0.
LEAST_CM = 1e-6
#: Least and largest mismatch: below the least, a unit is too coarse for states that all mismatch.
MISMATCHES = (1e-5, 0.1)
#: Imputed allele counts are whole multiples of 1 / DOSE_UNITS.
DOSE_UNITS = 1 << 15
#: A haplotype with less than this share of the mean posterior counts with the others of its kind,
#: which share what they have evenly (tests/bench/bench_copying.py --shares).
SMALL_SHARE = 1 / 16


class MapWindow(NamedTuple):
    """Sites ``start <= site < stop`` are passed over; those from `first` to `last` are results."""

    start: int
    stop: int
    first: int
    last: int


def cut_windows(cm: Sequence[float]) -> list[MapWindow]:
    """Windows of one chromosome's sites, cut by the map alone.

    Parameters
    ----------
    cm : float64 (n_sites)
        Position of every site of the panel on the genetic map, in centimorgans, rising.

    Returns
    -------
    list of MapWindow
        In order; `first` and `last` of all windows cover each site once.
    """
    from bisect import bisect_left

    found: list[MapWindow] = []
    number = 0
    while (first := found[-1].last if found else 0) < len(cm):
        number = max(number, int((cm[first] - cm[0]) // WINDOW_CM))
        low = cm[0] + number * WINDOW_CM
        last = bisect_left(cm, low + WINDOW_CM)
        number += 1
        if last > first:
            start = bisect_left(cm, low - MARGIN_CM)
            stop = bisect_left(cm, low + WINDOW_CM + MARGIN_CM)
            found.append(MapWindow(start, stop, first, last))
    return found
