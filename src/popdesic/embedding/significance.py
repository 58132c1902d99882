"""How many principal components are more than noise: the test of Tracy and Widom.

Patterson, Price and Reich (2006), equations 5 to 10. In a population without structure the largest
eigenvalue of the relationship matrix, scaled, follows the Tracy-Widom distribution of order 1. Its
scale depends on the effective number of independent sites, which is estimated from the spread of
the eigenvalues, so that linkage disequilibrium counts. After each component the test is repeated on
the eigenvalues that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import gamma

#: Chance that samples without structure show any component at all.
LEVEL = 0.01
#: Components that are tested at most.
MOST_TESTED = 50
#: Tracy-Widom of order 1 as a shifted gamma distribution (Chiani 2014, table I); its upper tail is
#: right to three digits.
_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801
#: Its mean and standard deviation.
MEAN, SPREAD = -1.2065, 1.2680


@dataclass(frozen=True)
class Significance:
    """Tests of the leading components.

    Attributes
    ----------
    p : float64 array, (t,)
        Probability of so large an eigenvalue, after the components before it, without structure.
    threshold : float64 array, (t,)
        Eigenvalue at which p is LEVEL.
    """

    p: np.ndarray
    threshold: np.ndarray

    @property
    def count(self) -> int:
        """Number of components up to the last with p below LEVEL.

        The last, not the first above: many components of equal size widen the spread of the
        eigenvalues, which hides the first of them until the others are taken away.
        """
        below = np.flatnonzero(self.p < LEVEL)
        return int(below[-1]) + 1 if len(below) else 0


def scale_statistic(value: float, trace: float, squares: float, n: int) -> float:
    """The largest eigenvalue of n samples on the scale of Tracy and Widom (NaN if none stands out).

    Parameters
    ----------
    value : float
        The largest eigenvalue.
    trace, squares : float
        Sum of all eigenvalues, and of their squares.
    """
    centre, width = _centre_and_width(trace, squares, n)
    return (value * (n - 1) / trace - centre) / width if trace > 0 else np.nan


def assess_components(
    values: np.ndarray,
    trace: float,
    squares: float,
    n: int,
    null: tuple[float, float] = (0.0, 1.0),
) -> Significance:
    """Test leading eigenvalues of a relationship matrix whose samples define the frequencies.

    Parameters
    ----------
    values : float64 array, (t,)
        Largest eigenvalues, largest first, of n - 1 that are not zero; MOST_TESTED are used, and no
        more than half of all.
    trace, squares : float
        Sum of all eigenvalues, and of their squares (the squared Frobenius norm of the matrix).
    n : int
        Number of samples.
    null : tuple of float
        Shift and spread of the statistic without structure (`noise_null`).
    """
    tested = values[: min(MOST_TESTED, (n - 1) // 2)]
    shift, spread = null
    quantile = shift + spread * (gamma.isf(LEVEL, _SHAPE, scale=_SCALE) - _SHIFT)
    p, threshold = np.ones(len(tested)), np.full(len(tested), np.nan)
    for k, value in enumerate(tested):
        m = n - k  # samples, as if the components before had taken one each
        centre, width = _centre_and_width(trace, squares, m)
        if not np.isfinite(width):  # equal eigenvalues: nothing stands out
            break
        statistic = ((value * (m - 1) / trace - centre) / width - shift) / spread
        p[k] = gamma.sf(statistic + _SHIFT, _SHAPE, scale=_SCALE)
        threshold[k] = (centre + quantile * width) * trace / (m - 1)
        trace -= value
        squares -= value**2
    return Significance(p, threshold)


def _centre_and_width(trace: float, squares: float, m: int) -> tuple[float, float]:
    """Location and scale of (m - 1) times the largest eigenvalue over the trace; NaN if none."""
    spread = (m - 1) * squares - trace**2
    if spread <= 0 or trace <= 0:
        return np.nan, np.nan
    sites = max((m + 1) * trace**2 / spread, 2.0)
    low, high = np.sqrt(sites - 1), np.sqrt(m)
    width = (low + high) / sites * (1 / low + 1 / high) ** (1 / 3)
    return (low + high) ** 2 / sites, width
