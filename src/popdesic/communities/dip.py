"""Hartigan's dip test: how far samples on a line are from having one mode only.

The dip is the largest distance between the distribution function of the samples and that of the
unimodal distribution nearest to it (Hartigan and Hartigan 1985, Annals of Statistics 13). A
distribution function is unimodal if it is convex up to the mode and concave after it; the mode may
hold a mass of its own. The probability of a dip is that under the uniform distribution, the
unimodal one with the largest dips as samples become many.
"""

from __future__ import annotations

import numpy as np

#: Numbers of samples for which `QUANTILES` were simulated; beyond the last the square root of n
#: times the dip hardly changes.
SIZES = (4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000)
#: Probabilities under the uniform distribution, largest first.
PROBABILITIES = (1.0, 0.9, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 1e-4)
#: sqrt(n) times the dip that is reached or exceeded with each probability, in units of 10^-5: a row
#: for each of SIZES. Printed by resources/dip/make_table.py.
# fmt: off
QUANTILES = (
    (25000, 25000, 25000, 28915, 37532, 41451, 44743, 46313, 47407, 48387, 48866, 49230, 49678),
    (22361, 22361, 27189, 34456, 39549, 41689, 43289, 43945, 44319, 44558, 44638, 44679, 44713),
    (20413, 20413, 30133, 35479, 38975, 40357, 43953, 47121, 49597, 52220, 53781, 55040, 57216),
    (18899, 21636, 31172, 35328, 38186, 42363, 46398, 48736, 50580, 52439, 53496, 54249, 55542),
    (17678, 23199, 31399, 34752, 40124, 43571, 46985, 48983, 50612, 52712, 54883, 56723, 60635),
    (16667, 24143, 31257, 35264, 40913, 43948, 47112, 49270, 51781, 54699, 56482, 58159, 61275),
    (15812, 24661, 30911, 36080, 41244, 44152, 47688, 50444, 52852, 55377, 57044, 58591, 62158),
    (14434, 25070, 31552, 36842, 41599, 45025, 48926, 51411, 53676, 56579, 58668, 60450, 63989),
    (13793, 24890, 32385, 37189, 42614, 45960, 49885, 52676, 55140, 58048, 60065, 61976, 65770),
    (14926, 25410, 32794, 38094, 43483, 47013, 51139, 53986, 56655, 59791, 62065, 64187, 68573),
    (15262, 25975, 33674, 39054, 44642, 48310, 52665, 55629, 58408, 61886, 64255, 66443, 71086),
    (15473, 26666, 34546, 40078, 45860, 49672, 54229, 57316, 60255, 63817, 66222, 68814, 74568),
    (15589, 27392, 35467, 41142, 47139, 51081, 55778, 59060, 62173, 65942, 68617, 71196, 77117),
    (16401, 27990, 36183, 41952, 48095, 52128, 56895, 60309, 63435, 67251, 70009, 72398, 78072),
    (16374, 28509, 36818, 42683, 48897, 53025, 57939, 61397, 64615, 68504, 71459, 74193, 79933),
    (17095, 28781, 37139, 43058, 49354, 53477, 58448, 61943, 65295, 69453, 72373, 74991, 81255),
    (16828, 28973, 37368, 43293, 49621, 53789, 58882, 62438, 65885, 69903, 72814, 75601, 81246),
    (17189, 29150, 37598, 43559, 49892, 54088, 59205, 62691, 65918, 70106, 72915, 75622, 82578),
)
# fmt: on


def dip(values: np.ndarray) -> float:
    """Hartigan's dip of some numbers.

    0 if all are equal, at least 1 / (2n) if all differ, never more than 1/4.

    Parameters
    ----------
    values : float array, (n,)
        In any order, n >= 1. Equal values are one step of the distribution function.
    """
    from .dip_cpu import twice_dip

    places, counts = np.unique(np.asarray(values, np.float64), return_counts=True)
    return float(twice_dip(places, np.cumsum(counts).astype(np.float64)) / (2 * len(values)))


def dip_probability(found: float, n: int) -> float:
    """Probability of at least so large a dip of n samples of a uniform distribution.

    Interpolated in sqrt(n) times the dip: its logarithm between probabilities, and linearly in
    1 / sqrt(n) between sizes. No less than the last of PROBABILITIES is ever returned.
    """
    if n < SIZES[0]:  # every dip of fewer different numbers is 1 / (2n)
        return 1.0
    after = min(int(np.searchsorted(SIZES, n)), len(SIZES) - 1)
    before = max(after - 1, 0)
    quantiles = np.array(QUANTILES[after], np.float64)
    if SIZES[before] < n < SIZES[after]:
        low, high, own = (1 / np.sqrt(size) for size in (SIZES[after], SIZES[before], n))
        share = (own - low) / (high - low)
        quantiles = (1 - share) * quantiles + share * np.array(QUANTILES[before])
    # Reversed: of equal quantiles, the smallest dip there is, the largest probability counts.
    reached = 1e5 * np.sqrt(n) * found
    logs = np.interp(-reached, -quantiles[::-1], np.log(PROBABILITIES)[::-1])
    return float(np.exp(logs))
