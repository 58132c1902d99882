"""Tail of a weighted sum of chi-square variables, exact to rounding however far out.

For Q = sum of w_k X_k, X_k independent chi-square variables of h_k degrees of freedom,

    P(Q > x) = 1 / (2 pi i)  integral of exp(phi(s)) ds,   phi(s) = K(s) - s x - log s,

with K(s) = -1/2 sum of h_k log(1 - 2 w_k s), from below to above the real axis, crossing it between
0 and 1 / (2 max w). Davies (1980, Appl Stat 29:323) inverts along the imaginary axis, where terms
of size 1 cancel, so that p below 1e-10 or so is lost. Here the path crosses at the saddle of phi,
where no term is larger than the sum, so that the error is relative to p. It is a hyperbola that
opens to the right, around the singularities, which all lie on the real axis. Its integrand falls
faster than exponentially, and the trapezoidal rule converges exponentially. Own code: SciPy has no
such function.
"""

from __future__ import annotations

import numpy as np

#: Relative change at which halving the step has converged, and most halvings.
CONVERGED, HALVINGS = 1e-10, 8
#: Step of the trapezoidal rule at the start, and the furthest node (cosh(40) is 1e17): the sum ends
#: where terms are below `NOTHING` of the first.
STEP, FURTHEST, NOTHING = 0.25, 40, 1e-18
#: Newton steps and bisections towards the saddle.
SADDLE_STEPS = 200


def weighted_chi_square_tail(weights: np.ndarray, degrees: np.ndarray, x: float) -> float:
    """Probability that a weighted sum of chi-square variables exceeds a value.

    Parameters
    ----------
    weights : float64 array, (k,)
        Of any sign; zeros say nothing.
    degrees : float64 array, (k,)
        Degrees of freedom of each variable, above 0.
    x : float

    Returns
    -------
    float
        With a relative error below 1e-9, down to 1e-300 (below 0, that of 1 less the result); 1 or
        0 where the sum cannot be less or more than `x`.
    """
    weights, degrees = np.asarray(weights, float), np.asarray(degrees, float)
    kept = (weights != 0) & (degrees > 0)
    weights, degrees = weights[kept], degrees[kept]
    largest = weights.max(initial=0.0)
    if not len(weights) or largest <= 0 <= x:
        return float(x < 0)
    if weights.min() > 0 and x <= 0:
        return 1.0
    if x < 0:
        return 1 - weighted_chi_square_tail(-weights, degrees, -x)
    return _tail(weights / largest, degrees, x / largest)


def _tail(weights: np.ndarray, degrees: np.ndarray, x: float) -> float:
    """`weighted_chi_square_tail` where the largest weight is above 0."""
    if weights.max() == weights.min() and x > 0:
        from scipy.special import chdtrc

        return float(chdtrc(degrees.sum(), x / weights[0]))
    top = 0.5 / weights.max()
    low, high, s = 0.0, top, top / 2
    for _ in range(SADDLE_STEPS):
        ratio = weights / (1 - 2 * weights * s)
        slope = float(degrees @ ratio) - x - 1 / s
        curve = 2 * float(degrees @ ratio**2) + 1 / s**2
        low, high = (s, high) if slope < 0 else (low, s)
        step = s - slope / curve
        if abs(step - s) <= 1e-9 * min(s, top - s):
            break
        s = step if low < step < high else (low + high) / 2
    bend = 4 * float(degrees @ ratio**3) - 1 / s**3  # half of the third derivative
    width = curve**-0.5
    # The path of steepest descent is s + i t + bend / (3 curve) t^2 near the saddle.
    open_ = min(max(2 * width**2 * bend / (3 * curve), 0.1 * width), 2 * width)
    at_saddle = _exponent(np.array([s + 0j]), weights, degrees, x)[0].real

    def terms(u: np.ndarray) -> np.ndarray:
        path = s + open_ * (np.cosh(u) - 1) + 1j * width * np.sinh(u)
        speed = open_ * np.sinh(u) + 1j * width * np.cosh(u)
        return np.exp(_exponent(path, weights, degrees, x) - at_saddle) * speed

    sizes = np.abs(terms(np.arange(FURTHEST + 1.0)))
    reach = 1 + int(np.flatnonzero(sizes > NOTHING * sizes[0])[-1])
    step, count = STEP, int(reach / STEP)
    total = width / 2 + float(terms(step * np.arange(1, count + 1)).imag.sum())
    found = step * total
    for _ in range(HALVINGS):
        total += float(terms(step * (np.arange(count) + 0.5)).imag.sum())
        step, count, before = step / 2, 2 * count, found
        found = step * total
        if abs(found - before) <= CONVERGED * abs(found):
            break
    return float(min(max(np.exp(at_saddle) * found / np.pi, 0.0), 1.0))


def _exponent(s: np.ndarray, weights: np.ndarray, degrees: np.ndarray, x: float) -> np.ndarray:
    """phi at some points: complex128 (n_points,)."""
    real, imaginary = 1 - 2 * np.outer(weights, s.real), -2 * np.outer(weights, s.imag)
    sizes = 0.5 * np.log(real**2 + imaginary**2)  # a quarter of the time of complex logarithms
    logs = degrees @ sizes + 1j * (degrees @ np.arctan2(imaginary, real))
    return -0.5 * logs - s * x - np.log(s)
