"""Bit-planes with a row per site (variant-major)."""

from __future__ import annotations

import numpy as np

from ..engine.terms import Planes, aligned_zeros

#: Words of a plane are padded to whole 512-bit vectors.
WORDS_MULTIPLE = 8


def site_planes(genotypes: np.ndarray) -> Planes:
    """Pack genotypes into variant-major planes: rows are sites, bits are samples.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n_samples)
        0, 1, 2 or -1 for missing; haplotypes of 0 and 1 are allowed.

    Returns
    -------
    Planes
        Its "samples" are the sites; plane c exists only if something is missing.
    """
    n_sites, n_samples = genotypes.shape
    masked = bool((genotypes < 0).any())
    n_words = -(-n_samples // (64 * WORDS_MULTIPLE)) * WORDS_MULTIPLE
    words = aligned_zeros((n_sites, 2 + masked, n_words))
    flat = words.view(np.uint8)
    for plane, flags in enumerate((genotypes >= 1, genotypes == 2, genotypes >= 0)[: 2 + masked]):
        packed = np.packbits(flags, axis=1, bitorder="little")
        flat[:, plane, : packed.shape[1]] = packed
    return Planes(words, n_samples)
