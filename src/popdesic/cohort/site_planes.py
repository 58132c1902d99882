"""Bit-planes with a row per site (variant-major)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path

import numpy as np

from ..engine.backend import Backend
from ..engine.terms import Planes, aligned_zeros
from ..io.bed import open_bed, read_fam
from ..io.genotypes import take_samples
from ..io.layers import columns_there, layers_in, sizes_in

#: Words of a plane are padded to whole 512-bit vectors.
WORDS_MULTIPLE = 8
#: Most bytes of the planes of contigs that are looked at side by side.
AHEAD_BYTES = 1 << 30

#: ``read(first, last)`` or ``read(rows)`` gives the planes of these sites of the panel.
PlanesReader = Callable[..., Planes]


def words_of(n_samples: int) -> int:
    """Words of a plane."""
    return -(-n_samples // (64 * WORDS_MULTIPLE)) * WORDS_MULTIPLE


def contigs_at_once(
    runs: list[tuple[int, int]], n_samples: int, narrow: bool, backend: Backend
) -> tuple[int, Backend]:
    """Contigs that are looked at side by side, and the backend with its threads shared among them.

    Several, if their planes take at most AHEAD_BYTES together. A GPU is kept busy by one contig
    unless windows are narrow.

    Parameters
    ----------
    runs : list of (first, end)
        Rows of each contig.
    narrow : bool
        All windows have at most `comparisons.NARROW` sites.
    """
    largest = 3 * 8 * words_of(n_samples) * max((last - first for first, last in runs), default=1)
    most = backend.threads if narrow or backend.name == "cpu" else 1
    at_once = int(np.clip(AHEAD_BYTES // largest, 1, most)) if n_samples else 1
    if at_once == 1:
        return 1, backend
    shared = copy(backend)
    shared.threads = -(-backend.threads // at_once)
    return at_once, shared


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
    words = aligned_zeros((n_sites, 2 + masked, words_of(n_samples)))
    flat = words.view(np.uint8)
    for plane, flags in enumerate((genotypes >= 1, genotypes == 2, genotypes >= 0)[: 2 + masked]):
        packed = np.packbits(flags, axis=1, bitorder="little")
        flat[:, plane, : packed.shape[1]] = packed
    return Planes(words, n_samples)


def read_site_planes(
    prefixes: list[Path], keep: list[np.ndarray] | None = None, threads: int = 1
) -> PlanesReader:
    """Reader of the variant-major planes of cohorts on the panel, side by side.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' .bed files, in sample order.
    keep : list of bool arrays (samples of the cohort,), optional
        Samples to give of each cohort; all by default. Of polyploids all their layers.
    """
    beds = [open_bed(prefix) for prefix in prefixes]
    fams = [read_fam(prefix) for prefix in prefixes]
    if keep is None:
        keep = [columns_there(sizes_in(fam), layers_in(fam)) for fam in fams]
    else:
        keep = [
            np.tile(who, layers_in(fam)) & columns_there(sizes_in(fam), layers_in(fam))
            for who, fam in zip(keep, fams, strict=True)
        ]

    def read(*bounds) -> Planes:
        rows = slice(*bounds) if len(bounds) == 2 else bounds[0]
        return planes_of_beds(beds, keep, rows, threads)

    return read


def planes_of_beds(
    beds: Sequence[np.ndarray],
    keep: Sequence[np.ndarray],
    rows: slice | np.ndarray,
    threads: int = 1,
) -> Planes:
    """Variant-major planes of some rows of .bed files, uint8 (n_panel, row_bytes), side by side.

    `keep`: as in `read_site_planes`.
    """
    from .genotypes_cpu import fill_site_planes

    chosen = [np.flatnonzero(who) for who in keep]
    n_samples = sum(map(len, chosen))
    words, first = None, 0
    for bed, who, samples in zip(beds, keep, chosen, strict=True):
        part = np.ascontiguousarray(bed[rows])
        if words is None:
            words = aligned_zeros((len(part), 3, words_of(n_samples)))
        if not who.all():
            part = take_samples(part, samples)
        fill_site_planes(part, len(samples), first, words, threads)
        first += len(samples)
    called = int(np.bitwise_count(words[:, 2]).sum(dtype=np.int64))
    if called == n_samples * len(words):
        complete = aligned_zeros((len(words), 2, words.shape[2]))
        complete[:] = words[:, :2]
        words = complete
    return Planes(words, n_samples)
