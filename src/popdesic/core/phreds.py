"""Likelihoods as phreds: whole numbers of -10 log10 of a likelihood over the largest one.

So a likelihood is one of a few values, the same on every machine: Decimal numbers round them
rightly, where libraries of mathematics differ in the last digit.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import numpy as np

#: Phreds above this count as this.
MOST_PHRED = 250


def phreds_of(values: np.ndarray) -> np.ndarray:
    """Phreds from -10 log10 of likelihoods.

    Parameters
    ----------
    values : float64 array, (n, n_genotypes)
        Finite, up to a number of its own for each row.

    Returns
    -------
    uint8 array of the same shape
        Rounded; the least of a row is 0, the highest MOST_PHRED.
    """
    above = values - values.min(axis=-1, keepdims=True)
    return np.minimum(np.rint(above), MOST_PHRED).astype(np.uint8)


def phreds_of_shares(values: np.ndarray) -> np.ndarray:
    """Phreds from probabilities, of which each row has one above 0."""
    shares = values / values.max(axis=-1, keepdims=True)
    found = MOST_PHRED - np.searchsorted(_bounds(), shares, side="right")
    return found.astype(np.uint8)


@cache
def likelihoods_of_phreds() -> np.ndarray:
    """The likelihood of each number of phreds: float64 (MOST_PHRED + 1,)."""
    return np.array([float(Decimal(10) ** (Decimal(-k) / 10)) for k in range(MOST_PHRED + 1)])


@cache
def _bounds() -> np.ndarray:
    """Likelihoods half-way between two numbers of phreds, rising."""
    halves = range(2 * MOST_PHRED - 1, 0, -2)
    return np.array([float(Decimal(10) ** (Decimal(-k) / 20)) for k in halves])
