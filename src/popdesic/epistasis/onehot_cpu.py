"""Compiled loops from .bed rows to the planes of a scan: counts, and stored genotypes as bits.

A row is read as words of 32 codes of two bits, of which low and high bits make planes: 0 -> 11,
1 -> 10, 2 -> 00, missing -> 01 (PLINK 1). A mask has both bits of the codes of a class, so one
extraction takes the low bits of its samples in a word, in order, and another one the high bits.
"""

from __future__ import annotations

import numba
import numpy as np

from ..engine.extract_cpu import extract_bits
from ..engine.popcount_cpu import popcount

_LOW, _HIGH = np.uint64(0x5555555555555555), np.uint64(0xAAAAAAAAAAAAAAAA)


@numba.njit(cache=True, nogil=True)
def count_codes(rows, masks, out):
    """Count the genotypes of the samples of both classes.

    Parameters
    ----------
    rows : uint64 (n_sites, n_words)
    masks : uint64 (2, n_words)
    out : int64 (n_sites, 4)
        Becomes the counts of genotypes 0, 1, 2 and missing.
    """
    for site in range(rows.shape[0]):
        people, low, high, both = 0, 0, 0, 0
        for w in range(rows.shape[1]):
            mask = masks[0, w] | masks[1, w]
            word = rows[site, w] & mask
            people += popcount(mask)
            low += popcount(word & _LOW)
            high += popcount(word & _HIGH)
            both += popcount(word & (word >> np.uint64(1)) & _LOW)
        out[site, 0], out[site, 1], out[site, 3] = both, high - both, low - both
        out[site, 2] = people // 2 - low - high + both


@numba.njit(nogil=True)
def _store(out, site, column, codes, low, high, valid):
    """Write a word of every state: `low` and `high` bits of up to 64 codes, `valid` of them."""
    for k in range(2):
        a = low if codes[site, k] & 1 else ~low
        b = high if codes[site, k] & 2 else ~high
        out[site, k, column] = a & b & valid
    if out.shape[1] == 3:
        out[site, 2, column] = low & ~high


@numba.njit(cache=True, nogil=True)
def fill_planes(rows, masks, codes, starts, out):
    """Write the stored genotypes of sites as planes.

    Parameters
    ----------
    rows, masks
        As of `count_codes`.
    codes : uint8 (n_sites, 2)
        Codes of the stored genotypes of each site.
    starts : int64 (2,)
        Where the words of a class begin.
    out : uint64 (n_sites, n_states, n_words of both classes)
        As `scan_data.OneHot`, controls and then cases; with a third state, which is missing.
    """
    full = ~np.uint64(0)
    for site in range(rows.shape[0]):
        for c in range(2):
            column, filled = starts[c], 0
            low, high = np.uint64(0), np.uint64(0)
            for w in range(rows.shape[1]):
                mask = masks[c, w]
                if mask == np.uint64(0):
                    continue
                word = rows[site, w]
                more_low = extract_bits(word, mask & _LOW)
                more_high = extract_bits(word, mask & _HIGH)
                size = popcount(mask) // 2
                low |= more_low << np.uint64(filled)
                high |= more_high << np.uint64(filled)
                filled += size
                if filled >= 64:
                    _store(out, site, column, codes, low, high, full)
                    column += 1
                    filled -= 64
                    rest = np.uint64(size - filled)  # 1 to 32
                    low, high = more_low >> rest, more_high >> rest
            if filled > 0:
                _store(out, site, column, codes, low, high, ~(full << np.uint64(filled)))
