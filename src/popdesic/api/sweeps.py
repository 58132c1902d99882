"""Haplotype statistics of sweeps: iHS, nSL, XP-EHH and Garud's H."""

from __future__ import annotations

import numpy as np

from ..core.threads import usable_cpus
from ..population.sweeps import (
    STEP,
    WINDOW,
    HaplotypeWindows,
    SiteScores,
    compare_populations,
    score_sites,
    standardised,
    window_haplotypes,
)
from .arrays import ArrayLike, host_array, site_table, thread_count, whole_number
from .haplotype_arrays import allele_rows, map_of_sites


def sweep_scores(
    haplotypes: ArrayLike,
    centimorgans: ArrayLike,
    positions: ArrayLike,
    *,
    threads: int | None = None,
) -> SiteScores:
    """iHS and nSL of the sites of one chromosome, in one population.

    iHS (Voight et al. 2006) compares how far the haplotypes of both alleles stay alike on the
    genetic map, nSL (Ferrer-Admetlla et al. 2014) over how many sites. Gaps of more than 20 kb
    count as 20 kb.

    Parameters
    ----------
    haplotypes : array-like of int, (n_haplotypes, n_sites)
        Phased alleles: 0 and 1, none missing. Two haplotypes or more.
    centimorgans : array-like of float, (n_sites,)
        Genetic positions, not falling.
    positions : array-like of int, (n_sites,)
        Base pairs, ascending.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    SiteScores
        `sites`, numbers of those with a minor allele frequency of 5 % or more; of each, `frequency`
        of the allele 1, `ihs` and `nsl`. Scores are natural logarithms of ratios, not standardised
        (`standardised_scores`). Above 0, haplotypes with the allele 1 are the longer ones. NaN
        where an integral reaches the end of the chromosome or a gap of more than 200 kb.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> haplotypes = np.random.default_rng(1).integers(0, 2, (20, 30))
    >>> haplotypes[:8] = haplotypes[0]
    >>> haplotypes[:, 15] = np.arange(20) < 8
    >>> found = popdesic.sweep_scores(haplotypes, np.arange(30), np.arange(30) * 1000)
    >>> print(found.nsl[found.sites == 15].round(2))
    [2.03]
    """
    alleles, cm, pos = _chromosome(haplotypes, "haplotypes", centimorgans, positions)
    return score_sites(alleles, cm, pos, thread_count(threads) or usable_cpus())


def xp_ehh(
    first: ArrayLike,
    second: ArrayLike,
    centimorgans: ArrayLike,
    positions: ArrayLike,
    *,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """XP-EHH of two populations (Sabeti et al. 2007), on one chromosome.

    Parameters
    ----------
    first, second : array-like of int, (n_haplotypes, n_sites)
        Phased alleles of the populations at the same sites, two haplotypes or more.
    centimorgans, positions, threads
        As in `sweep_scores`.

    Returns
    -------
    sites : int64 array
        Numbers of the sites with a minor allele frequency of 5 % or more in both populations
        together.
    scores : float64 array
        Natural logarithms of ratios, not standardised (`standardised_scores`). Above 0, haplotypes
        of the first population stay alike for longer. NaN as in `sweep_scores`.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> haplotypes = np.random.default_rng(2).integers(0, 2, (40, 50))
    >>> haplotypes[:10, 15:35] = haplotypes[0, 15:35]
    >>> sites, scores = popdesic.xp_ehh(
    ...     haplotypes[:20], haplotypes[20:], np.arange(50), np.arange(50) * 1000
    ... )
    >>> print(int(sites[np.nanargmax(scores)]))
    20
    """
    one, cm, pos = _chromosome(first, "first", centimorgans, positions)
    other = _alleles(second, "second")
    if len(other) != len(one):
        raise ValueError(
            f"second has {len(other)} sites, but first has {len(one)}; give the same sites."
        )
    sites, scores = compare_populations(
        [one, other], cm, pos, thread_count(threads) or usable_cpus()
    )
    return sites, scores[:, 0]


def garud_h(haplotypes: ArrayLike, *, window: int = WINDOW, step: int = STEP) -> HaplotypeWindows:
    """Garud's H1, H12, H123 and H2/H1 in windows of one chromosome, in one population.

    Parameters
    ----------
    haplotypes : array-like of int, (n_haplotypes, n_sites)
        Phased alleles: 0 and 1, none missing. Two haplotypes or more.
    window, step : int
        Sites of a window, and from one window to the next. Sites at which all haplotypes are equal
        do not count.

    Returns
    -------
    HaplotypeWindows
        `first` and `last`: numbers of the first and the last site of each window. `h1`: sum of
        squared frequencies of its haplotypes. `h12`, `h123`: the same with the two, or three, most
        frequent ones as one. `h2_h1`: without the most frequent one, over h1 (Garud et al. 2015).

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> haplotypes = [[0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    >>> found = popdesic.garud_h(haplotypes, window=3)
    >>> print(found.h1, found.h12)
    [0.375] [0.625]
    """
    alleles = _alleles(haplotypes, "haplotypes")
    window, step = whole_number(window, "window"), whole_number(step, "step")
    return window_haplotypes(alleles, window, step)


def standardised_scores(scores: ArrayLike, frequency: ArrayLike | None = None) -> np.ndarray:
    """Scores with mean 0 and standard deviation 1, of all or in bins of frequency.

    Join the scores of all chromosomes of a population before. iHS and nSL are standardised by
    frequency, because they depend on it under drift, XP-EHH over all sites.

    Parameters
    ----------
    scores : array-like of float, (n_sites,)
        NaN where there is none.
    frequency : array-like of float, (n_sites,), optional
        Allele frequencies, 0 to 1, for 20 bins of equal width.

    Returns
    -------
    float64 array, (n_sites,)
        NaN where there is no score, and in bins of fewer than 20.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> print(popdesic.standardised_scores(np.arange(21.0))[:3].round(2))
    [-1.65 -1.49 -1.32]
    """
    values = _numbers(scores, "scores")
    if np.isinf(values).any():
        raise ValueError("scores have infinite numbers; give finite ones, or NaN.")
    if frequency is None:
        return standardised(values)
    shares = _numbers(frequency, "frequency")
    if shares.shape != values.shape:
        raise ValueError(f"frequency has {len(shares)} entries; give one for each of the scores.")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError("frequency has entries that are not from 0 to 1.")
    return standardised(values, shares)


def _alleles(given: ArrayLike, name: str) -> np.ndarray:
    """Alleles as uint8 (n_sites, n_haplotypes)."""
    rows = allele_rows(given, name, missing=False)
    if len(rows) < 2 or not rows.shape[1]:
        raise ValueError(
            f"{name} has {len(rows)} haplotypes and {rows.shape[1]} sites; give two haplotypes or "
            "more, with a site or more."
        )
    return np.ascontiguousarray(rows.T).view(np.uint8)


def _chromosome(
    haplotypes: ArrayLike, name: str, centimorgans: ArrayLike, positions: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Alleles, genetic positions and base pairs of the sites."""
    alleles = _alleles(haplotypes, name)
    cm = map_of_sites(centimorgans, len(alleles)).astype(np.float64)
    pos = site_table(len(alleles), positions, None).pos.to_numpy(np.int64)
    return alleles, cm, pos


def _numbers(given: ArrayLike, name: str) -> np.ndarray:
    """Numbers in one dimension, float64."""
    array = host_array(given)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} is {array.dtype} of the shape {array.shape}; give a row of numbers."
        )
    return array.astype(np.float64)
