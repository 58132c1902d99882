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


def assess_components(
    values: np.ndarray,
    trace: float,
    squares: float,
    n: int,
    null: tuple[float, float] | None = None,
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
    null : tuple of float, optional
        Mean and standard deviation of the largest eigenvalue without structure, where they were
        measured (`noise_null`); else they are those of independent sites and samples that all vary
        alike, whose number of sites follows from `squares`.
    """
    tested = values[: min(MOST_TESTED, (n - 1) // 2)]
    quantile = gamma.isf(LEVEL, _SHAPE, scale=_SCALE) - _SHIFT
    p, threshold = np.ones(len(tested)), np.full(len(tested), np.nan)
    for k, value in enumerate(tested):
        # The components before count as if they had taken one sample each.
        mean, deviation = null or expected_largest(trace, squares, n - k)
        if not deviation > 0:  # equal eigenvalues: nothing stands out
            break
        unit = deviation / SPREAD
        p[k] = gamma.sf((value - mean) / unit + MEAN + _SHIFT, _SHAPE, scale=_SCALE)
        threshold[k] = mean + unit * (quantile - MEAN)
        trace -= value
        squares -= value**2
    return Significance(p, threshold)


def expected_largest(trace: float, squares: float, n: int) -> tuple[float, float]:
    """Mean and standard deviation of the largest eigenvalue of n samples without structure.

    `trace` and `squares` are sums of their eigenvalues and of the squares; NaN where these are
    those of equal eigenvalues.
    """
    excess = (n - 1) * squares - trace**2
    if excess <= 0 or trace <= 0:
        return np.nan, np.nan
    sites = max((n + 1) * trace**2 / excess, 2.0)
    low, high = np.sqrt(sites - 1), np.sqrt(n)
    width = (low + high) / sites * (1 / low + 1 / high) ** (1 / 3)
    unit = trace / (n - 1)
    return unit * ((low + high) ** 2 / sites + width * MEAN), unit * width * SPREAD
