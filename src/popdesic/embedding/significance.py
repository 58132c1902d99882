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


def assess_components(values: np.ndarray, trace: float, squares: float, n: int) -> Significance:
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
    """
    tested = values[: min(MOST_TESTED, (n - 1) // 2)]
    quantile = gamma.isf(LEVEL, _SHAPE, scale=_SCALE) - _SHIFT
    p, threshold = np.ones(len(tested)), np.full(len(tested), np.nan)
    for k, value in enumerate(tested):
        m = n - k  # samples, as if the components before had taken one each
        spread = (m - 1) * squares - trace**2
        if spread <= 0 or trace <= 0:  # equal eigenvalues: nothing stands out
            break
        sites = max((m + 1) * trace**2 / spread, 2.0)
        low, high = np.sqrt(sites - 1), np.sqrt(m)
        centre = (low + high) ** 2 / sites
        width = (low + high) / sites * (1 / low + 1 / high) ** (1 / 3)
        p[k] = gamma.sf((value * (m - 1) / trace - centre) / width + _SHIFT, _SHAPE, scale=_SCALE)
        threshold[k] = (centre + quantile * width) * trace / (m - 1)
        trace -= value
        squares -= value**2
    return Significance(p, threshold)
