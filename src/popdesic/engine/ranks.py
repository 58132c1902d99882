"""Ranks of values in which equal ones share their mean rank."""

from __future__ import annotations

import numpy as np


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Rank of each value from 1 on, float64 (n,); ties share their mean. No NaN."""
    order = np.argsort(values)
    placed = values[order]
    new = placed[1:] != placed[:-1]
    ranks = np.empty(len(values))
    if new.all():
        ranks[order] = np.arange(1.0, len(values) + 1)
        return ranks
    ends = np.append(np.flatnonzero(new) + 1, len(values))
    count = np.diff(ends, prepend=0)
    ranks[order] = np.repeat(ends - (count - 1) / 2, count)
    return ranks
