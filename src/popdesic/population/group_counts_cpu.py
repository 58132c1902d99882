"""Counts of genotypes over groups of samples on a CPU (`population.plane_counts_cpu`)."""

from __future__ import annotations

import numpy as np

from ..io.sites import chunks
from .group_counts import GroupCounts, Grouping, group_count_type, samples_at_once
from .plane_counts_cpu import count_by_sample, count_by_site


def count_groups(
    words: np.ndarray,
    used: np.ndarray,
    values: np.ndarray,
    n_sites: int,
    grouping: Grouping,
    threads: int,
) -> GroupCounts:
    """`count_groups`."""
    n_samples, _, n_words = words.shape
    sums = np.zeros((n_samples, 3), np.int64)
    totals: dict[int, np.ndarray] = {}
    sizes: dict[int, int] = {}
    at_once = samples_at_once(words)
    # A memory map is read once; the kernels are compiled for arrays that may be written.
    in_place = words.flags.c_contiguous and words.flags.writeable
    room = None if in_place else np.empty((min(at_once, n_samples), *words.shape[1:]), np.uint64)
    for begin, end in chunks(n_samples, at_once):
        part = words[begin:end]
        if room is not None:
            part = room[: end - begin]
            np.copyto(part, words[begin:end])
        count_by_sample(part, used, values, sums[begin:end])
        own = grouping(begin, part, sums[begin:end])
        for group in np.unique(own[own >= 0]).tolist():
            rows = np.flatnonzero(own == group)
            total = totals.setdefault(group, np.zeros((3, 64 * n_words), np.int32))
            count_by_site(part, used, rows, total, threads)
            sizes[group] = sizes.get(group, 0) + len(rows)
    groups = sorted(totals)
    counts = np.zeros((n_sites, len(groups), 3), group_count_type(n_samples))
    for k, group in enumerate(groups):
        counts[:, k] = totals[group][:, :n_sites].T
    numbers = np.array(groups, np.int64)
    return GroupCounts(sums, numbers, np.array([sizes[g] for g in groups], np.int64), counts)
