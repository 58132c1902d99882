"""What a segment of IBD is, and how segments are held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Of haploids, pairs of sites within so many cM have at most this r2.
LD_CM, MOST_R2 = 0.5, 0.2


@dataclass(frozen=True)
class SegmentLimits:
    """What a segment of IBD is (`ibd`).

    Attributes
    ----------
    min_cm : float
        Shortest segment, from the contradiction before it to the one behind. Its likely length,
        which is what is written, is at least LIKELY_SHARE of that.
    min_ibd2_cm : float
        Shortest stretch within a segment at which both alleles are shared.
    min_lod : float
        Least log10 likelihood ratio of a segment, and of its stretches of both alleles.
    error_rate : float
        Share of genotypes with one allele misread.
    tolerance : int
        Opposite homozygotes that a window of a candidate may have.
    window : int
        Sites of a window; 0: by density (`windows.sites_per_window`).
    drop : float
        Fall of the running score of ends that closes a segment.
    trim : float
        Ends of a segment whose genotypes have a log10 likelihood ratio of -trim or less are cut
        off: more than one shared allele, they look like none.
    split : float
        A segment is split where the genotypes of a stretch inside have a log10 likelihood ratio of
        -split or less: two short segments that nothing between them contradicts are not one.
    most : int
        More candidates of one pair of cohorts are refused.
    """

    min_cm: float = 7.0
    min_ibd2_cm: float = 2.0
    min_lod: float = 3.0
    error_rate: float = 0.001
    tolerance: int = 1
    window: int = 0
    drop: float = 7.0
    trim: float = 2.0
    split: float = 4.5
    most: int = 100_000_000


@dataclass(frozen=True)
class Segments:
    """Segments ordered by sample of a, sample of b, first site; those of two alleles behind.

    Attributes
    ----------
    a, b : int32 arrays, (n_segments,)
        Rows of the samples in their blocks.
    first, last : int64 arrays
        Sites.
    cm : float64 array
        Length that counts.
    lod : float64 array
        Of `shared` alleles against one fewer.
    called : int64 array
        Sites at which both are called.
    errors : int64 array
        Of them opposite homozygotes (one shared allele) or differing genotypes (two).
    shared : int64 array
        1: at least one allele is shared; 2: a stretch of such a segment with both.
    """

    a: np.ndarray
    b: np.ndarray
    first: np.ndarray
    last: np.ndarray
    cm: np.ndarray
    lod: np.ndarray
    called: np.ndarray
    errors: np.ndarray
    shared: np.ndarray

    def __len__(self) -> int:
        return len(self.a)
