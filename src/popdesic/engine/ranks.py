"""Ranks of values in which equal ones share their mean rank."""

from __future__ import annotations

import numpy as np


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Rank of each value from 1 on, float64 (n,); ties share their mean. No NaN."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place.reshape(-1)]
