"""Sums of a number of each site over the missing genotypes of every sample."""

from __future__ import annotations

import numba
import numpy as np

from .genotypes import _as_words
from .popcount import popcount


def sum_at_missing(rows: np.ndarray, values: np.ndarray, n_samples: int) -> np.ndarray:
    """Sum of `values` over the sites where a sample is missing.

    Parameters
    ----------
    rows : uint8 array, (n_sites, row_bytes)
        PLINK .bed rows; padding bits are ignored.
    values : float64 array, (n_sites,)

    Returns
    -------
    float64 array, (n_samples,)
        Sums in the order of the sites.
    """
    words = _as_words(rows)
    out = np.zeros(32 * words.shape[1])
    _sum_at_missing(words, np.ascontiguousarray(values), out)
    return out[:n_samples]


@numba.njit(nogil=True, cache=True)
def _sum_at_missing(words, values, out):
    """Missing is code 01; the bits of all missing samples of a word are taken one by one."""
    low_bits = np.uint64(0x5555555555555555)
    one = np.uint64(1)
    for site in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = words[site, w]
            left = word & ~(word >> one) & low_bits
            while left:
                bit = left & (~left + one)
                out[32 * w + (popcount(bit - one) >> 1)] += values[site]
                left &= left - one
