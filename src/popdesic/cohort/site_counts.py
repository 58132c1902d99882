"""Count genotypes of a range of sites, from lists of carriers where the file has them."""

from __future__ import annotations

import numpy as np

from ..core.threads import run_tasks
from ..io.bed import ChosenRows, ChosenSamples
from ..io.listed_rows import ListedRows
from ..io.sites import chunks

#: Sites whose lists a thread counts at a time, and how many times as many of the file it may pass:
#: sites of the panel lie between those that are wanted.
SITES_A_TASK, MOST_PASSED = 1024, 4

#: What `io.bed.open_cohort` returns.
Rows = np.ndarray | ChosenRows | ListedRows | ChosenSamples


def add_calls(rows: Rows, first: int, last: int, by_sample: np.ndarray) -> None:
    """Add the genotypes of sites `first` to `last` to `by_sample`, int64 (n_samples, 4).

    Columns: sites with 0, 1, 2 ALT alleles, and missing.
    """
    from .genotypes_cpu import add_by_sample

    if isinstance(rows, ListedRows):
        nobody = np.full(len(by_sample), -1, np.int64)
        _, others = rows.count(first, last, nobody, 0, by_sample)
        add_by_sample(rows[others], by_sample)
    else:
        add_by_sample(rows[first:last], by_sample)


def count_groups_at(
    rows: Rows, first: int, last: int, group: np.ndarray, n_groups: int
) -> np.ndarray:
    """`genotypes_cpu.count_by_group` of sites `first` to `last`."""
    from .genotypes_cpu import count_by_group

    if not isinstance(rows, ListedRows):
        return count_by_group(rows[first:last], group, n_groups)
    unused = np.zeros((len(group), 4), np.int64)
    counts, others = rows.count(first, last, group, n_groups, unused)
    counts[others - first] = count_by_group(rows[others], group, n_groups)
    return counts


def count_placed(
    rows: ListedRows,
    source: np.ndarray,
    turned: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    threads: int = 1,
) -> np.ndarray:
    """`genotypes_cpu.count_by_group` of rows in the order and with the alleles of other sites.

    Parameters
    ----------
    source : int array, (n_sites,)
        Row of each site, or -1: all are missing.
    turned : bool array, (n_sites,)
        Whether REF and ALT are exchanged.
    group : int64 array, (n_samples,)
        Of all samples of the file; -1: not counted.
    """
    from .genotypes_cpu import count_by_group

    out = np.zeros((len(source), n_groups, 4), np.int64)
    out[:, :, 3] = np.bincount(group[group >= 0], minlength=n_groups)

    def work(first: int, last: int) -> None:
        here = first + np.flatnonzero(source[first:last] >= 0)
        if not len(here):
            return
        wanted = source[here]
        low, high = wanted.min(), wanted.max() + 1
        if high - low <= MOST_PASSED * SITES_A_TASK:
            out[here] = count_groups_at(rows, low, high, group, n_groups)[wanted - low]
        else:
            out[here] = count_by_group(rows[wanted], group, n_groups)

    run_tasks(work, list(chunks(len(source), SITES_A_TASK)), threads)
    out[turned] = out[turned][:, :, [2, 1, 0, 3]]
    return out
