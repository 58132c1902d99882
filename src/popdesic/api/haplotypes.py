"""Phase and imputation of haplotypes, by copying from those of a reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..copying.copying import allele_share, impute_alleles
from ..copying.fit import fit_model
from ..copying.likelihoods import Likely, impute_windows
from ..copying.phasing import phase_alleles
from .arrays import ArrayLike, genotype_array, thread_count, whole_number
from .haplotype_arrays import (
    allele_rows,
    copying_model,
    phred_rows,
    reference_panel,
    require_columns,
    sample_lots,
    site_numbers,
)


def impute_haplotypes(
    reference: ArrayLike,
    centimorgans: ArrayLike,
    targets: ArrayLike,
    typed: ArrayLike,
    *,
    ne: float | None = None,
    mismatch: float | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Alleles of phased haplotypes at the sites of a reference where they were not typed.

    Every haplotype is a mosaic of all haplotypes of the reference. What is imputed into one depends
    on the reference and its own alleles alone: it has the same bytes alone, among others, and on
    any number of threads. The model is that of Li and Stephens (2003, Genetics 165:2213); between
    typed sites, probabilities are linear in centimorgans.

    Parameters
    ----------
    reference : array-like of int, (n_haplotypes, n_sites)
        Phased alleles of one chromosome: 0 and 1, none missing. Up to 65 536 haplotypes.
    centimorgans : array-like of float, (n_sites,)
        Genetic positions, not falling.
    targets : array-like of int, (n_targets, n_typed)
        Phased alleles, a row a haplotype: 0, 1; -1, NaN or a masked entry where missing.
    typed : array-like of int, (n_typed,)
        Sites of the reference (counted from 0) at which the targets are typed, rising.
    ne, mismatch : float, optional
        Effective size, and probability that an allele differs from the copied one (1e-5 to 0.1).
        By default those of `fit_copying`.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    float32 array, (n_targets, n_sites)
        Expected number of ALT alleles, from 0 to 1, in steps of 2^-15. At typed sites the target's
        own allele, unless it is missing. The sum of a sample's two rows is its dosage.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> reference = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 0, 1, 0, 1]] * 4)
    >>> found = popdesic.impute_haplotypes(
    ...     reference, np.arange(5) / 100, [[1, 0], [0, 0]], [0, 4], ne=1000, mismatch=0.001
    ... )
    >>> found.round(2)
    array([[1.  , 0.92, 0.96, 0.92, 0.  ],
           [0.  , 0.01, 0.02, 0.03, 0.  ]], dtype=float32)
    """
    panel, threads = reference_panel(reference, centimorgans), thread_count(threads)
    sites = site_numbers(typed, len(panel.cm))
    alleles = allele_rows(targets, "targets", missing=True)
    require_columns(alleles, "targets", len(sites))
    ne, mismatch = copying_model(panel, ne, mismatch, threads)
    found = impute_alleles(panel, sites, alleles, ne=ne, mismatch=mismatch, threads=threads)
    return allele_share(found)


def phase_genotypes(
    reference: ArrayLike,
    centimorgans: ArrayLike,
    genotypes: ArrayLike,
    typed: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    seed: int = 1,
    ne: float | None = None,
    mismatch: float | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Haplotypes of samples whose phase is not known, with those of a reference.

    Both haplotypes of a sample are mosaics of all haplotypes of the reference. Phases are drawn in
    turn by their likelihood, and the most frequent relation of heterozygous sites that follow each
    other is given. The phase of a sample depends on the reference, its own genotypes, its name and
    the seed alone.

    Parameters
    ----------
    reference, centimorgans, typed, ne, mismatch, threads
        As in `impute_haplotypes`.
    genotypes : array-like of int, (n_samples, n_typed)
        Number of ALT alleles; -1, NaN or a masked entry where missing.
    names : sequence of str, optional
        Names of the samples; by default "0", "1" and so on.
    seed : int
        Draws other phases.

    Returns
    -------
    int8 array, (n_samples, 2, n_typed)
        Alleles of both haplotypes; -1 where the genotype is missing. At a sample's first
        heterozygous site the second one has ALT. ``found.reshape(-1, n_typed)`` are targets of
        `impute_haplotypes`.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> reference = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 0, 1, 0, 1]] * 4)
    >>> popdesic.phase_genotypes(
    ...     reference, np.arange(5) / 100, [[1, 1, 1, 1, 0]], range(5), ne=1000, mismatch=0.001
    ... )
    array([[[0, 0, 0, 0, 0],
            [1, 1, 1, 1, 0]]], dtype=int8)
    """
    panel, threads = reference_panel(reference, centimorgans), thread_count(threads)
    sites = site_numbers(typed, len(panel.cm))
    samples = genotype_array(genotypes)
    require_columns(samples, "genotypes", len(sites))
    lots = sample_lots(names, seed, len(samples))
    ne, mismatch = copying_model(panel, ne, mismatch, threads)
    how = {"ne": ne, "mismatch": mismatch, "threads": threads}
    return phase_alleles(panel, sites, samples, lots, **how)


def impute_likelihoods(
    reference: ArrayLike,
    centimorgans: ArrayLike,
    phreds: ArrayLike,
    typed: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    seed: int = 1,
    ne: float | None = None,
    mismatch: float | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Alleles of samples sequenced at low coverage, at the sites of a reference.

    Both haplotypes of a sample are mosaics of all haplotypes of the reference. Each is drawn given
    the other one, and phases are drawn, by turns; what each haplotype has given the other is
    averaged. The result of a sample depends on the reference, its own likelihoods, its name and
    the seed alone.

    Parameters
    ----------
    reference, centimorgans, typed, ne, mismatch, threads
        As in `impute_haplotypes`.
    phreds : array-like of number, (n_samples, n_typed, 3)
        -10 log10 of the likelihoods of 0, 1 and 2 ALT alleles, as PL in a VCF: 0 or more, up to a
        number of the genotype's own. They are rounded. All three are NaN where there are none.
    names, seed
        As in `phase_genotypes`.

    Returns
    -------
    float32 array, (n_samples, 2, n_sites)
        Expected number of ALT alleles of both haplotypes, from 0 to 1, in steps of 2^-15. The sum
        of the two is the dosage. At a sample's first heterozygous site the second one has ALT.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> reference = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 0, 1, 0, 1]] * 4)
    >>> reads = [[[0, 3, 30], [30, 3, 0], [30, 3, 0], [60, 0, 60]]]
    >>> found = popdesic.impute_likelihoods(
    ...     reference, np.arange(5) / 100, reads, [0, 1, 2, 4], ne=1000, mismatch=0.001
    ... )
    >>> found.shape
    (1, 2, 5)
    """
    panel, threads = reference_panel(reference, centimorgans), thread_count(threads)
    sites = site_numbers(typed, len(panel.cm))
    values = phred_rows(phreds, len(sites))
    lots = sample_lots(names, seed, len(values))
    ne, mismatch = copying_model(panel, ne, mismatch, threads)
    given = Likely(sites, values, np.zeros(len(values), bool), lots)
    found = impute_windows(panel, given, ne=ne, mismatch=mismatch, threads=threads)
    return allele_share(found)


def fit_copying(
    reference: ArrayLike,
    centimorgans: ArrayLike,
    *,
    ploidy: int = 2,
    threads: int | None = None,
) -> tuple[float, float]:
    """Effective size and mismatch with the highest likelihood for a reference's own haplotypes.

    Each of 64 haplotypes is taken for a mosaic of those of all other samples.

    Parameters
    ----------
    reference : array-like of int, (n_haplotypes, n_sites)
        As in `impute_haplotypes`, like `centimorgans` and `threads`.
    ploidy : int
        Haplotypes of one sample: this number of rows that follow each other.

    Returns
    -------
    (float, float)
        The effective size `ne` and the probability `mismatch`, points of a grid: sizes a factor of
        10^(1/4) apart, mismatches 10^(1/2).

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> haplotypes = np.random.default_rng(1).integers(0, 2, (20, 300))
    >>> popdesic.fit_copying(np.repeat(haplotypes, 2, axis=0), np.arange(300) / 100, ploidy=1)[1]
    1e-05
    """
    panel, threads = reference_panel(reference, centimorgans), thread_count(threads)
    owner = np.arange(panel.n_haplotypes) // whole_number(ploidy, "ploidy")
    return fit_model(panel, owner, threads=threads)
