"""Tails of skewed scores of single products of two sites."""

from __future__ import annotations

import numpy as np

#: Skewness below which a score is taken for normal: tails differ by less than 1e-3 down to 1e-12.
STRAIGHT = 1e-5


def leading_products(scores: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Products whose normal p, times their number, is at most 1: bool (n_products,).

    Parameters
    ----------
    scores, variances : float64 array, (n_products,)
        A variance of 0 stands for a product that is not tested.
    """
    from scipy.special import chdtri

    known = variances > 0
    limit = chdtri(1, 1 / max(int(known.sum()), 1))
    return known & (scores**2 >= limit * variances)


def skewed_tail(z: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """Probability that a shifted gamma variable (Pearson's type III) is at least z.

    Its mean is 0, its variance 1. Where the skewness is below `STRAIGHT` it is a normal one.

    Parameters
    ----------
    z, skewness : float64 array, of one shape, or numbers
    """
    from scipy.special import gammainc, gammaincc, ndtr

    z, skewness = np.broadcast_arrays(np.asarray(z, float), np.asarray(skewness, float))
    bent = np.abs(skewness) >= STRAIGHT
    shape = 4 / np.where(bent, skewness, 1.0) ** 2
    x = np.maximum(shape + np.sign(skewness) * z * np.sqrt(shape), 0.0)
    tail = np.where(skewness > 0, gammaincc(shape, x), gammainc(shape, x))
    return np.where(bent, tail, ndtr(-z))
