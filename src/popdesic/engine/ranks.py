"""Ranks of values in which equal ones share their mean rank, and the smallest and the median.

Not `scipy.stats.rankdata`: to import `scipy.stats` takes longer than to rank the pairs of 4 000
samples. Not `numpy.median`: it copies and sorts in one thread what may be 10^9 values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.threads import run_tasks

#: With fewer values a median is found in one array.
MANY_VALUES = 1 << 20
#: Values that are looked at first; the middle values of all are among the middle MIDDLE of these
#: but where values that lie at equal steps differ from the others.
SAMPLE, MIDDLE = 1 << 16, 1 << 12


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


def smallest(values: np.ndarray, k: int) -> np.ndarray:
    """Places of the k smallest values, smallest first, ties in order; all of fewer. No NaN."""
    few = np.arange(len(values))
    if 0 < k < len(values):
        few = np.flatnonzero(values <= np.partition(values, k - 1)[k - 1])
    return few[np.argsort(values[few], kind="stable")][:k]


def median_of(parts: Sequence[np.ndarray], threads: int = 1) -> float:
    """The median of all values of some arrays, as numpy's, to the last bit. At least one; no NaN.

    Bounds from a sample leave few values to sort; how many lie below these is counted.
    """
    total = sum(map(len, parts))
    if total >= MANY_VALUES:
        step = -(-total // SAMPLE)
        sample = np.sort(np.concatenate([part[::step] for part in parts]))
        middle, away = len(sample) // 2, MIDDLE // 2
        least, most = sample[max(middle - away, 0)], sample[min(middle + away, len(sample) - 1)]

        def look(part: np.ndarray) -> tuple[int, np.ndarray]:
            return int((part < least).sum()), part[(part >= least) & (part <= most)]

        found = run_tasks(look, [(part,) for part in parts], threads)
        below, inside = sum(count for count, _ in found), np.concatenate([own for _, own in found])
        places = np.array([(total - 1) // 2, total // 2]) - below
        if places[0] >= 0 and places[1] < len(inside):
            return float(np.mean(np.partition(inside, places)[places]))
    return float(np.median(np.concatenate(parts)))
