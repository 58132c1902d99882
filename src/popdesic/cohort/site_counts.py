"""Count genotypes of a range of sites, from lists of carriers where the file has them."""

from __future__ import annotations

import numpy as np

from ..io.bed import ChosenRows, ChosenSamples
from ..io.listed_rows import ListedRows

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
