"""Hartigan's dip, compiled; `communities/dip.py` says what it is."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def _corners(places, heights, left, right, sign):
    """Where the convex hull of points from `left` to `right` has corners, int64 (c,).

    The lower hull with sign 1, the upper hull with sign -1; both ends are corners.
    """
    found = np.empty(right - left + 1, np.int64)
    count = 0
    for i in range(left, right + 1):
        while count > 1:
            a, b = found[count - 2], found[count - 1]
            rise = (heights[b] - heights[a]) * (places[i] - places[a])
            if sign * (rise - (heights[i] - heights[a]) * (places[b] - places[a])) < 0:
                break
            count -= 1
        found[count] = i
        count += 1
    return found[:count]


@numba.njit(nogil=True, cache=True)
def _between(places, heights, corners):
    """Heights on the straight lines between corners, at every place from the first to the last."""
    left, right = corners[0], corners[-1]
    found = np.empty(right - left + 1)
    for k in range(len(corners) - 1):
        a, b = corners[k], corners[k + 1]
        slope = (heights[b] - heights[a]) / (places[b] - places[a])
        for i in range(a, b):
            found[i - left] = slope * (places[i] - places[a]) + heights[a]
    found[right - left] = heights[right]
    return found


@numba.njit(nogil=True, cache=True)
def twice_dip(places, upto):
    """Twice the dip of n samples, times n.

    The algorithm of the paper (section 3). Within the interval that holds the mode, the greatest
    convex function below the steps and the least concave function above them are farthest apart at
    a corner of one of them. The interval shrinks to that corner and the nearest one of the other
    function on the far side. What the functions miss outside it can be made no smaller. The dip is
    found when they are nowhere farther apart than that.

    Parameters
    ----------
    places : float64 array, (k,)
        Different values, ascending.
    upto : float64 array, (k,)
        Number of samples up to each place, at the place included.
    """
    before = np.append(np.zeros(1), upto[:-1])
    left, right, missed = 0, len(places) - 1, 0.0
    while left < right:
        below = _corners(places, before, left, right, 1.0)
        above = _corners(places, upto, left, right, -1.0)
        convex = _between(places, before, below)
        concave = _between(places, upto, above)
        apart = concave - convex
        at_below, at_above = apart[below - left], apart[above - left]
        if max(at_below.max(), at_above.max()) <= missed:
            break
        if at_below.max() > at_above.max():
            start = below[at_below.argmax()]
            end = above[np.searchsorted(above, start)]
        else:
            end = above[at_above.argmax()]
            start = below[np.searchsorted(below, end, side="right") - 1]
        for i in range(left, start):
            missed = max(missed, upto[i] - convex[i - left])
        for i in range(end + 1, right + 1):
            missed = max(missed, concave[i - left] - before[i])
        left, right = start, end
    return missed
