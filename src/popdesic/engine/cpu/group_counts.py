"""Counts of genotypes over groups of samples on a CPU (`engine.host.plane_counts`)."""

from __future__ import annotations

import numpy as np

from ...io.sites import chunks
from ..group_counts import GroupCounts, Grouping, count_type, samples_at_once
from ..host.plane_counts import count_by_sample, count_by_site


def count_groups(
    words: np.ndarray,
    used: np.ndarray,
    values: np.ndarray,
    n_sites: int,
    grouping: Grouping,
    threads: int,
) -> GroupCounts:
    """`Backend.count_groups`."""
    n_samples, _, n_words = words.shape
    sums = np.zeros((n_samples, 3), np.int64)
    totals: dict[int, np.ndarray] = {}
    sizes: dict[int, int] = {}
    for begin, end in chunks(n_samples, samples_at_once(words)):
        part = np.array(words[begin:end])
        count_by_sample(part, used, values, sums[begin:end])
        own = grouping(begin, part, sums[begin:end])
        for group in np.unique(own[own >= 0]).tolist():
            rows = np.flatnonzero(own == group)
            total = totals.setdefault(group, np.zeros((3, 64 * n_words), np.int32))
            count_by_site(part, used, rows, total, threads)
            sizes[group] = sizes.get(group, 0) + len(rows)
    groups = sorted(totals)
    counts = np.zeros((n_sites, len(groups), 3), count_type(n_samples))
    for k, group in enumerate(groups):
        counts[:, k] = totals[group][:, :n_sites].T
    numbers = np.array(groups, np.int64)
    return GroupCounts(sums, numbers, np.array([sizes[g] for g in groups], np.int64), counts)
