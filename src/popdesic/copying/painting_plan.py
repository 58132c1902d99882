"""Sizes of painting: units of length, and the stretches of the map that it is summed by."""

from __future__ import annotations

#: Adding this to a float64 and taking it away rounds it to a multiple of 2^-36. Sums of such
#: numbers below 2^17 are exact, so that their order plays no role.
WHOLE_STEPS = 1.5 * 2.0**16
#: Lengths are also summed by stretches of the map of at least so many centimorgans, of which there
#: are so many at most. Two stretches have nearly nothing in common, as segments are shorter.
STRETCH_CM, MOST_STRETCHES = 5.0, 32


def stretch_count(centimorgans: float) -> int:
    """Number of stretches of a map of this length."""
    return max(1, min(MOST_STRETCHES, int(centimorgans // STRETCH_CM)))
