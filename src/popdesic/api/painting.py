"""Painting of haplotypes by those of a reference, and groups of samples that copy each other."""

from __future__ import annotations

import numpy as np

from ..communities.coancestry import divide_samples
from ..copying.painting import Painting, paint_alleles, stretch_numbers
from .arrays import ArrayLike, host_array, thread_count, whole_number
from .haplotype_arrays import allele_rows, copying_model, reference_panel


def paint(
    reference: ArrayLike,
    centimorgans: ArrayLike,
    targets: ArrayLike | None = None,
    *,
    ploidy: int = 2,
    ne: float | None = None,
    mismatch: float | None = None,
    threads: int | None = None,
) -> Painting:
    """How much each sample copies from each other one, on one chromosome.

    Every haplotype is a mosaic of all haplotypes of the reference. Without targets, the samples of
    the reference copy from each other, never from themselves. A target's row depends on the
    reference and its own alleles alone: it has the same bytes alone, among others, and on any
    number of threads.

    Parameters
    ----------
    reference : array-like of int, (n_haplotypes, n_sites)
        Phased alleles of one chromosome: 0 and 1, none missing. Up to 65 536 haplotypes.
    centimorgans : array-like of float, (n_sites,)
        Genetic positions, not falling.
    targets : array-like of int, (n_targets, n_sites), optional
        Phased alleles of others at the same sites: 0, 1; -1, NaN or a masked entry where missing.
    ploidy : int
        Haplotypes of one sample: this number of rows that follow each other.
    ne, mismatch : float, optional
        Effective size, and probability that an allele differs from the copied one (1e-5 to 0.1).
        By default those of `fit_copying`.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    Painting
        `lengths`, float64 (n_stretches, n_samples, n_donors): expected centimorgans that a sample
        copies from a donor, in each stretch of the map; stretches have 5 cM or more. `segments`,
        float64 (n_samples, n_donors): expected number of segments. Lengths of a sample sum to
        those of the map for each of its haplotypes. Chromosomes are joined by
        ``np.concatenate`` of their `lengths`, and the coancestry is ``lengths.sum(axis=0)``.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> reference = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 0, 1, 0, 1]])
    >>> found = popdesic.paint(
    ...     reference, np.arange(5), [[1, 1, 1, 0, 1]], ploidy=1, ne=30, mismatch=0.1
    ... )
    >>> found.lengths.sum(axis=0).round(1)
    array([[0.2, 1.6, 2.2]])
    >>> found.segments.round(1)
    array([[0.2, 0.8, 1. ]])
    """
    panel, threads = reference_panel(reference, centimorgans), thread_count(threads)
    ploidy = whole_number(ploidy, "ploidy", 1)
    owner = np.arange(panel.n_haplotypes) // ploidy
    own = None
    if targets is None:
        alleles, samples = allele_rows(reference, "reference", missing=False), owner
        if owner[-1] == 0:
            raise ValueError("reference has one sample; give two or more, or targets.")
        own = owner[:, None] * ploidy + np.arange(ploidy)
    else:
        alleles = allele_rows(targets, "targets", missing=True)
        samples = np.arange(len(alleles)) // ploidy
        if alleles.shape[1] != len(panel.cm):
            raise ValueError(
                f"targets have {alleles.shape[1]} sites, but reference has {len(panel.cm)}; give "
                "the same sites, -1 where an allele is missing."
            )
    for name, n in (("reference", panel.n_haplotypes), ("targets", len(alleles))):
        if n % ploidy:
            raise ValueError(f"{name} has {n} haplotypes; give {ploidy} (ploidy) for each sample.")
    ne, mismatch = copying_model(panel, ne, mismatch, threads, ploidy)
    stretches = stretch_numbers(panel.cm)
    how = {"ne": ne, "mismatch": mismatch, "own": own, "threads": threads}
    return paint_alleles(panel, alleles, samples, owner, stretches, **how)


def coancestry_groups(lengths: ArrayLike) -> np.ndarray:
    """Groups of samples that copy more from each other than chance explains.

    The samples are divided in two where the first axis of the coancestry is the same in different
    stretches of the genome, and each part again. Axes of chance differ by stretch: their null
    distribution comes from sums in which stretches have random signs. Relatives are a group of
    their own, so leave them out first.

    Parameters
    ----------
    lengths : array-like of float, (n_stretches, n_samples, n_samples)
        `lengths` of `paint` without targets, all chromosomes joined. Each stretch should have 5 cM
        or more, and there should be 10 stretches or more.

    Returns
    -------
    int64 array, (n_samples,)
        Group of each sample, numbered from 0 by their first samples. All 0: no structure is found.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> lengths = np.random.default_rng(1).random((12, 20, 20))
    >>> lengths[:, :10, :10] += 0.5
    >>> lengths[:, 10:, 10:] += 0.5
    >>> popdesic.coancestry_groups(lengths)
    array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    """
    array = host_array(lengths)
    square = array.ndim == 3 and array.shape[1] == array.shape[2] and array.size > 0
    if not square or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(
            f"lengths are {array.dtype} of the shape {array.shape}; give finite numbers, for each "
            "stretch a row and a column for each sample."
        )
    return divide_samples(array.astype(np.float64))
