"""Planes of sites (variant-major), and the correlation r2 between blocks of them."""

from __future__ import annotations

import numpy as np

from ..engine.base import LD, PRODUCT, Backend, Planes, aligned_zeros
from ..engine.cpu.compare import r2_complete, r2_masked

#: Sites a side of one block of correlations.
BLOCK_SITES = 1024
#: Words of a plane are padded to whole 512-bit vectors.
WORDS_MULTIPLE = 8


def site_planes(genotypes: np.ndarray) -> Planes:
    """Variant-major planes: rows are sites, bits are samples.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n_samples)
        0, 1, 2 or -1 for missing; haplotypes with 0 and 1 will do.

    Returns
    -------
    Planes
        Its "samples" are the sites here; the plane c is there only if something is missing.
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


def r2_block(a: Planes, b: Planes | None, backend: Backend) -> np.ndarray:
    """Squared Pearson correlation of the ALT counts of sites, over jointly called samples.

    Parameters
    ----------
    a, b : Planes
        Variant-major (`site_planes`), over the same samples. ``b=None``: a against itself.

    Returns
    -------
    float64 array, (m, n)
        NaN where one of the two sites does not vary over the jointly called samples. This is what
        `plink1.9 --r2` gives for unphased genotypes.
    """
    threads = getattr(backend, "threads", 1)
    other = a if b is None else b
    if a.complete and other.complete:
        product = backend.bitgemm(a, b, PRODUCT)[0]
        return r2_complete(a.n_sites, *_moments(a), *_moments(other), product, threads)
    return r2_masked(backend.bitgemm(a, b, LD), threads)


def _moments(planes: Planes) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ALT counts of each site without missing genotypes, and of their squares."""
    carriers, homozygotes = np.bitwise_count(planes.words).sum(axis=2, dtype=np.int64).T
    return carriers + homozygotes, carriers + 3 * homozygotes
