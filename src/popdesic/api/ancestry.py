"""Local ancestry, by labels that the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..copying.copying import haplotypes_of
from ..copying.local_ancestry import Sources, by_haplotype, mix_sample
from ..copying.local_ancestry_plan import MOST_LABELS
from ..core.threads import run_tasks, usable_cpus
from .arrays import ArrayLike, thread_count, whole_number
from .haplotype_arrays import allele_rows, copying_model, reference_panel


class LocalAncestry(NamedTuple):
    """Ancestry of samples along a chromosome.

    Attributes
    ----------
    labels : list of str
        Sorted.
    posterior : float32 array, (n_haplotypes, n_sites, n_labels)
        Probability of each label.
    proportions : float64 array, (n_samples, n_labels)
        Its mean over the map.
    generations : float64 array, (n_samples,)
        Estimated number since the admixture.
    switch_rate : float64 array, (n_samples,)
        Estimated phase switches per heterozygous site.
    """

    labels: list[str]
    posterior: np.ndarray
    proportions: np.ndarray
    generations: np.ndarray
    switch_rate: np.ndarray


def local_ancestry(
    reference: ArrayLike,
    centimorgans: ArrayLike,
    labels: Sequence[str | None],
    targets: ArrayLike,
    *,
    ploidy: int = 2,
    ne: float | None = None,
    mismatch: float | None = None,
    threads: int | None = None,
) -> LocalAncestry:
    """Which of the given labels each haplotype has along a chromosome.

    Every haplotype of a target copies from the labelled haplotypes of the reference. What it
    copies at a site, by label, is seen by a model of both haplotypes of the sample. There, labels
    change at recombinations since the admixture, and the haplotypes swap at phase switches. Date,
    proportions and switch rate are estimated for each sample by expectation and maximisation. A
    result depends on the reference and the sample's own alleles alone.

    Parameters
    ----------
    reference : array-like of int, (n_haplotypes, n_sites)
        Phased alleles of one chromosome: 0 and 1, none missing. Up to 65 536 haplotypes.
    centimorgans : array-like of float, (n_sites,)
        Genetic positions, not falling.
    labels : sequence of str, (n_haplotypes / ploidy,)
        Source of each sample of the reference, 2 to 16 different ones; None or "" for a sample that
        is no source, which is not copied.
    targets : array-like of int, (n_targets, n_sites)
        Phased alleles at the same sites: 0, 1; -1, NaN or a masked entry where missing.
    ploidy : int
        Haplotypes of one sample, 1 or 2: rows that follow each other.
    ne, mismatch : float, optional
        Effective size, and probability that an allele differs from the copied one (1e-5 to 0.1).
        By default the most likely ones for the labelled haplotypes.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    LocalAncestry

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> first, second = np.zeros((4, 40), int), np.ones((4, 40), int)
    >>> target = np.repeat([[0, 1], [1, 1]], 20, axis=1)
    >>> found = popdesic.local_ancestry(
    ...     np.concatenate([first, second]), np.arange(40), list("AABB"), target, ne=10,
    ...     mismatch=0.001
    ... )
    >>> found.posterior[:, ::13, 0].round()
    array([[1., 1., 0., 0.],
           [0., 0., 0., 0.]], dtype=float32)
    >>> found.proportions.round(2)
    array([[0.25, 0.75]])
    """
    panel, threads = reference_panel(reference, centimorgans), thread_count(threads)
    ploidy = whole_number(ploidy, "ploidy")
    if ploidy > 2:
        raise ValueError(f"ploidy is {ploidy}; local ancestry is for 1 and 2.")
    alleles = allele_rows(targets, "targets", missing=True)
    if alleles.shape[1] != len(panel.cm):
        raise ValueError(
            f"targets have {alleles.shape[1]} sites, but reference has {len(panel.cm)}; give the "
            "same sites, -1 where an allele is missing."
        )
    for name, n in (("reference", panel.n_haplotypes), ("targets", len(alleles))):
        if n % ploidy:
            raise ValueError(f"{name} has {n} haplotypes; give {ploidy} (ploidy) for each sample.")
    names, label_of = _numbered(labels, panel.n_haplotypes // ploidy)
    rows = np.repeat(label_of, ploidy)
    labelled = allele_rows(reference, "reference", missing=False)[rows >= 0]
    few = haplotypes_of(labelled, panel.cm)
    ne, mismatch = copying_model(few, ne, mismatch, threads, ploidy)
    sources = Sources(few, rows[rows >= 0], ne, mismatch)

    def mix(sample: int):
        return mix_sample([sources], [alleles[sample * ploidy : (sample + 1) * ploidy]])

    tasks = [(sample,) for sample in range(len(alleles) // ploidy)]
    found = run_tasks(mix, tasks, threads or usable_cpus())
    shape = (0, len(panel.cm), len(names))
    return LocalAncestry(
        names,
        np.concatenate(
            [np.zeros(shape, np.float32), *(by_haplotype(one.pairs[0])[:ploidy] for one in found)]
        ),
        np.array([one.proportions for one in found]).reshape(-1, len(names)),
        np.array([one.generations for one in found]),
        np.array([one.switch_rate for one in found]),
    )


def _numbered(labels: Sequence[str | None], n_samples: int) -> tuple[list[str], np.ndarray]:
    """Labels in order, and the number of that of each sample, int64; -1: none."""
    try:
        given = list(labels)
    except TypeError:
        given = None
    if isinstance(labels, str) or given is None or len(given) != n_samples:
        raise ValueError(f"labels are {labels!r:.60}; give one for each of {n_samples} samples.")
    for label in given:
        if label is not None and not isinstance(label, str):
            raise ValueError(f"labels have {label!r:.60}; a label is a text, or None.")
    names = sorted({label for label in given if label})
    if not 2 <= len(names) <= MOST_LABELS:
        raise ValueError(f"labels have {len(names)} sources; give 2 to {MOST_LABELS}.")
    number = {name: k for k, name in enumerate(names)}
    return names, np.array([number.get(label or "", -1) for label in given], np.int64)
