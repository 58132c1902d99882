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
class Noise:
    """What eigenvalues are like without structure (`noise_null.measure_noise`).

    Attributes
    ----------
    shift, spread : float
        By how much the statistic exceeds that of Tracy and Widom, and its standard deviation over
        theirs.
    limit : float
        Eigenvalue that no component without structure reaches.
    """

    shift: float = 0.0
    spread: float = 1.0
    limit: float = np.inf


#: That of independent sites and of samples that all vary alike.
EVEN_NOISE = Noise()


@dataclass(frozen=True)
class Significance:
    """Tests of the leading components.

    Attributes
    ----------
    p : float64 array, (t,)
        Probability of so large an eigenvalue, after the components before it, without structure.
    threshold : float64 array, (t,)
        Eigenvalue at which p is LEVEL.
    beyond : bool array, (t,)
        Eigenvalues beyond the limit of noise.
    """

    p: np.ndarray
    threshold: np.ndarray
    beyond: np.ndarray

    @property
    def count(self) -> int:
        """Number of components up to the first with p of at least LEVEL.

        Many components of equal size widen the scale of the test, which hides the first of them
        until the others are taken away: so the number is larger where a later one has p below LEVEL
        and is beyond the limit of noise as well.
        """
        below = self.p < LEVEL
        first = int(np.argmin(np.append(below, False)))
        later = np.flatnonzero(below & self.beyond)
        return max(first, int(later[-1]) + 1 if len(later) else 0)


def assess_components(
    values: np.ndarray,
    trace: float,
    squares: float,
    n: int,
    noise: Noise = EVEN_NOISE,
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
    noise : Noise
        EVEN_NOISE where it was not measured.
    """
    from scipy.special import gammaincc

    tested = values[: min(MOST_TESTED, (n - 1) // 2)]
    quantile = noise.shift + noise.spread * largest_without_structure(LEVEL)
    p, threshold = np.ones(len(tested)), np.full(len(tested), np.nan)
    for k, value in enumerate(tested):
        # The components before count as if they had taken one sample each.
        centre, unit = centre_and_unit(trace, squares, n - k)
        if not unit > 0:  # equal eigenvalues: nothing stands out
            break
        statistic = ((value - centre) / unit - noise.shift) / noise.spread
        p[k] = gammaincc(_SHAPE, max(statistic + _SHIFT, 0.0) / _SCALE)
        threshold[k] = centre + unit * quantile
        trace -= value
        squares -= value**2
    return Significance(p, threshold, tested > noise.limit)


def largest_without_structure(p: float) -> float:
    """What the statistic exceeds with probability `p`: a quantile of Tracy and Widom."""
    from scipy.special import gammainccinv

    return float(gammainccinv(_SHAPE, p)) * _SCALE - _SHIFT


def centre_and_unit(trace: float, squares: float, n: int) -> tuple[float, float]:
    """Location and unit of the largest eigenvalue of n samples; the statistic is in this unit.

    `trace` and `squares` are sums of their eigenvalues and of the squares; NaN where these are
    those of equal eigenvalues.
    """
    excess = (n - 1) * squares - trace**2
    if excess <= 0 or trace <= 0:
        return np.nan, np.nan
    sites = max((n + 1) * trace**2 / excess, 2.0)
    low, high = np.sqrt(sites - 1), np.sqrt(n)
    width = (low + high) / sites * (1 / low + 1 / high) ** (1 / 3)
    return (low + high) ** 2 / sites * trace / (n - 1), width * trace / (n - 1)
