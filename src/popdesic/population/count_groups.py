"""Genotypes by site over groups of samples, counted on the device of a backend."""

from __future__ import annotations

import numpy as np

from ..engine.backend import Backend, on_cpu
from .group_counts import GroupCounts, Grouping


def count_groups(
    backend: Backend,
    words: np.ndarray,
    used: np.ndarray,
    values: np.ndarray,
    n_sites: int,
    grouping: Grouping,
    n_groups: int,
) -> GroupCounts:
    """Counts of genotypes by site over groups of samples, and sums by sample.

    Parameters
    ----------
    words : uint64 array, (n_samples, 2 or 3, n_words)
        Planes carrier, hom and called; without the third all genotypes are called. A memory
        map is read once, in parts; pinned memory is sent to a GPU without staging.
    used : uint64 array, (n_words,)
        Sites that count; none from `n_sites` on.
    values : int64 array, (64 * n_words,)
        Of sites, not negative; their sum is below 2**63 (`group_counts.fixed_point`).
    n_sites : int
    grouping : callable
        Called for one part after the other, in the order of the samples.
    n_groups : int
        Groups have numbers below this.

    Returns
    -------
    GroupCounts
        The same bytes from every backend.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .group_counts_gpu import GroupStream
        from .group_counts_plan import plan_counts

        sizes = backend.free_bytes(), backend.host_bytes
        plan = plan_counts(words.shape, n_groups, backend.device, *sizes)
        if plan is not None:
            with device_errors(f"the genotypes of {len(words)} samples by group"):
                stream = GroupStream(plan, backend.device, backend.threads)
                return stream.count(words, used, values, n_sites, grouping)
        on_cpu("genotypes by group", "the device does not hold the counts")
    from .group_counts_cpu import count_groups as by_threads

    return by_threads(words, used, values, n_sites, grouping, backend.threads)
