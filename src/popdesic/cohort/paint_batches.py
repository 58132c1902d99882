"""Painting of some samples on a part of a reference: alleles from bits, batches that fit memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..copying.copying import Haplotypes
from ..copying.painting import Painting, paint_alleles
from ..io.frozen_haplotypes import HaplotypePart

#: Bytes of alleles that are unpacked at a time, with those of their results.
BATCH_BYTES = 1 << 28


def sample_batches(
    owner: np.ndarray, n: int, n_sites: int, n_values: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Samples [low, high) at a time, and their haplotypes.

    Parameters
    ----------
    owner : int array, (n_haplotypes,)
        Sample of each haplotype, rising.
    n, n_sites, n_values : int
        Samples, sites, and numbers that are found of each sample, float64.
    """
    step = max(1, BATCH_BYTES // (2 * n_sites + 8 * n_values))
    for low in range(0, n, step):
        high = min(low + step, n)
        yield low, high, np.arange(*np.searchsorted(owner, [low, high]))


def unpacked(bits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Alleles of some haplotypes, int8 (n, n_sites), from rows of bits by site."""
    words, places = rows // 64, (rows % 64).astype(np.uint64)
    return ((bits[:, words] >> places) & np.uint64(1)).T.astype(np.int8)


def paint_part(
    part: HaplotypePart,
    alleles: np.ndarray,
    targets: np.ndarray,
    stretches: np.ndarray,
    own: np.ndarray,
    threads: int,
) -> Painting:
    """`copying.painting.paint_alleles` by the haplotypes of a part, with its model."""
    return paint_alleles(
        Haplotypes(np.asarray(part.haplotypes), len(part.owner), np.asarray(part.cm)),
        np.ascontiguousarray(alleles),
        targets,
        np.asarray(part.owner, np.int64),
        stretches,
        ne=part.ne,
        mismatch=part.mismatch,
        own=own,
        threads=threads,
    )
