"""Counts of genotypes by site over groups of samples, and sums by sample: what backends count.

A sample's sums may decide its group: pseudo-haploid samples have a group of their own. So planes
pass in parts of whole samples. The sums of a part come first, then the caller says who is in which
group, then the part is counted by site: planes are read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Bits after the point of what is summed by sample: sums of integers do not depend on their order.
#: Values of at most 1 at fewer than 2**27 sites overflow no int64.
VALUE_BITS = 36
#: Bytes of planes that are counted at a time.
PART_BYTES = 1 << 27
#: Called with the first sample of a part, its words (n, n_planes, n_words) in host memory, valid
#: during the call, and its sums (n, 3). Returns the group of each sample, int64 (n,); -1: none.
Grouping = Callable[[int, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class GroupCounts:
    """What was counted.

    Attributes
    ----------
    sums : int64 array, (n_samples, 3)
        Of each sample: called and heterozygous genotypes, and the sum of the values of the sites
        where it is missing.
    groups : int64 array, (n_groups,)
        Numbers of the groups that have samples, ascending.
    sizes : int64 array, (n_groups,)
        Their samples.
    counts : uint16 or uint32 array, (n_sites, n_groups, 3)
        Their samples with 0, 1, 2 ALT alleles.
    """

    sums: np.ndarray
    groups: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray


def fixed_point(values: np.ndarray) -> np.ndarray:
    """Values of at most 1 as integers in units of 2**-VALUE_BITS: int64, of the same shape."""
    return np.rint(np.ldexp(values, VALUE_BITS)).astype(np.int64)


def samples_at_once(words: np.ndarray, part_bytes: int | None = None) -> int:
    """Samples of planes (n_samples, n_planes, n_words) that are counted at a time."""
    return max(1, (part_bytes or PART_BYTES) // max(1, words.shape[1] * words.shape[2] * 8))


def group_count_type(n_samples: int) -> np.dtype:
    """The number type of counts of so many samples."""
    return np.dtype(np.uint16 if n_samples < 2**16 else np.uint32)
