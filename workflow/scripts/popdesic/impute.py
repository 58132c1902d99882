"""Imputation: what stands in for a missing genotype. The called mask is always kept beside it."""

from __future__ import annotations

import numpy as np


def fill_words(mode: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Bits that missing genotypes take in the carrier and the hom plane, one a site.

    Parameters
    ----------
    mode : int array, (n_sites,)
        The panel's most frequent genotype of each site (from the founders, so that it stays the
        same when cohorts arrive).
    method : str
        ``mode`` fills with it, ``none`` with nothing.

    Returns
    -------
    two uint64 arrays, (n_words,)
        Little-endian bits: sites filled with a genotype >= 1, sites filled with 2.
    """
    filled = mode if method == "mode" else np.zeros_like(mode)
    return pack_bits(filled >= 1), pack_bits(filled == 2)


def pack_bits(flags: np.ndarray) -> np.ndarray:
    """Flags (n,) as little-endian bits in uint64 words, zero padded to whole words."""
    packed = np.packbits(flags, bitorder="little")
    words = np.zeros(-(-len(flags) // 64) * 8, np.uint8)
    words[: len(packed)] = packed
    return words.view("<u8")
