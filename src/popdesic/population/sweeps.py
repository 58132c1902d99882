"""Statistics of haplotypes that sweeps raise: iHS, nSL, XP-EHH and Garud's H.

Which allele is ancestral is not known here. So iHS and nSL compare ALT with REF: above 0,
haplotypes with ALT are the longer ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..core.threads import run_tasks

#: Least minor allele frequency of a site with a score.
LEAST_MAF = 0.05
#: Longer distances between neighbouring sites count as this one (Voight et al. 2006), in bp.
USUAL_GAP = 20_000
#: No integral goes beyond a longer one, in bp.
LARGEST_GAP = 200_000
#: Sites that vary of a window, and from one window to the next.
WINDOW, STEP = 200, 100
#: Scores of common sites are standardised by ALT frequency, in this many bins of equal width.
BINS = 20
#: Fewest scores with a mean and a standard deviation.
FEWEST = 20


class SiteScores(NamedTuple):
    """Not standardised scores of one population on one contig.

    Attributes
    ----------
    sites : int64 array
        Rows with a minor allele frequency of `LEAST_MAF` or more in the population.
    frequency, ihs, nsl : float64 array
        Of ALT; logarithms of ratios. NaN where homozygosity does not decay before a gap or an end.
    """

    sites: np.ndarray
    frequency: np.ndarray
    ihs: np.ndarray
    nsl: np.ndarray


class HaplotypeWindows(NamedTuple):
    """Haplotypes in windows of sites that vary in a population.

    Attributes
    ----------
    first, last : int64 array
        Rows of the first and the last site.
    h1, h12, h123, h2_h1 : float64 array
        Garud et al. (2015): sum of squared frequencies of haplotypes; the same with the two, or
        three, most frequent ones as one; without the most frequent one, over h1.
    """

    first: np.ndarray
    last: np.ndarray
    h1: np.ndarray
    h12: np.ndarray
    h123: np.ndarray
    h2_h1: np.ndarray


def varying_sites(alleles: np.ndarray) -> np.ndarray:
    """Rows (sites) of which not all alleles are equal."""
    counts = alleles.sum(axis=1, dtype=np.int64)
    return np.flatnonzero((counts > 0) & (counts < alleles.shape[1]))


def is_common(alleles: np.ndarray) -> np.ndarray:
    """Whether the minor allele frequency is `LEAST_MAF` or more, for each row."""
    share = alleles.mean(axis=1) if alleles.shape[1] else np.zeros(len(alleles))
    return np.minimum(share, 1 - share) >= LEAST_MAF


def map_steps(cm: np.ndarray, pos: np.ndarray) -> np.ndarray:
    """Centimorgans from each site to the next; fewer across a gap, NaN across a long one."""
    gaps = np.diff(pos).astype(np.float64)
    scale = np.where(gaps > LARGEST_GAP, np.nan, USUAL_GAP / np.maximum(gaps, USUAL_GAP))
    return np.diff(cm) * scale


def _both_sides(
    alleles: np.ndarray, steps: np.ndarray, wanted: np.ndarray, threads: int
) -> np.ndarray:
    """Sum of `sweeps_cpu.shared_loop` on both sides."""
    from .sweeps_cpu import shared_loop

    def one_side(turn: int) -> np.ndarray:
        given = (np.ascontiguousarray(array[::turn]) for array in (alleles, steps, wanted))
        return shared_loop(*given)[::turn]

    lower, upper = run_tasks(one_side, [(1,), (-1,)], threads)
    return lower + upper


def _log_ratio(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """ln(over / under); NaN unless both are above 0."""
    fit = (over > 0) & (under > 0)
    return np.log(np.where(fit, over, np.nan) / np.where(fit, under, np.nan))


def score_sites(
    alleles: np.ndarray, cm: np.ndarray, pos: np.ndarray, threads: int = 1
) -> SiteScores:
    """iHS and nSL of one population, not standardised: alleles uint8 (n_sites, n_haplotypes)."""
    sites = varying_sites(alleles)
    few = np.ascontiguousarray(alleles[sites])
    wanted = is_common(few)
    found = _both_sides(few, map_steps(cm[sites], pos[sites]), wanted, threads)[wanted]
    return SiteScores(
        sites[wanted],
        few[wanted].mean(axis=1),
        _log_ratio(found[:, 1], found[:, 0]),
        _log_ratio(found[:, 4], found[:, 3]),
    )


def compare_populations(
    populations: list[np.ndarray], cm: np.ndarray, pos: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """XP-EHH of all pairs of populations, not standardised.

    Returns
    -------
    sites : int64 array
        Rows that are common among all haplotypes.
    float64 array, (n_sites, n_pairs)
        Above 0, the first population of a pair (in the order of `combinations`) has the longer
        shared haplotypes.
    """
    together = np.concatenate(populations, axis=1)
    varying = varying_sites(together)
    wanted = is_common(together[varying])
    steps = map_steps(cm[varying], pos[varying])
    areas = [
        _both_sides(np.ascontiguousarray(one[varying]), steps, wanted, threads)[wanted, 2]
        for one in populations
    ]
    pairs = [_log_ratio(first, second) for first, second in combinations(areas, 2)]
    return varying[wanted], np.stack(pairs, axis=1)


def window_haplotypes(
    alleles: np.ndarray, window: int = WINDOW, step: int = STEP
) -> HaplotypeWindows:
    """Garud's H of one population: alleles uint8 (n_sites, n_haplotypes)."""
    sites, n = varying_sites(alleles), alleles.shape[1]
    starts = range(0, len(sites) - window + 1, step)
    rows = np.zeros((len(starts), 4))
    for row, start in zip(rows, starts, strict=True):
        bits = np.packbits(alleles[sites[start : start + window]], axis=0).T
        counts = np.unique(bits, axis=0, return_counts=True)[1]
        shares = np.pad(np.sort(counts)[::-1] / n, (0, 2))
        h1 = (shares**2).sum()
        h12, h123 = (shares[:k].sum() ** 2 + (shares[k:] ** 2).sum() for k in (2, 3))
        row[:] = h1, h12, h123, (h1 - shares[0] ** 2) / h1
    first = np.array(starts, np.int64)
    return HaplotypeWindows(sites[first], sites[first + window - 1], *rows.T)


def standardised(scores: np.ndarray, frequency: np.ndarray | None = None) -> np.ndarray:
    """Scores with mean 0 and standard deviation 1, of all or in bins of frequency.

    NaN in bins of fewer than `FEWEST` scores.
    """
    bins = np.zeros(len(scores), np.int64)
    if frequency is not None:
        bins = np.minimum((frequency * BINS).astype(np.int64), BINS - 1)
    found = np.full(len(scores), np.nan)
    for one in np.unique(bins):
        here = np.flatnonzero((bins == one) & np.isfinite(scores))
        if len(here) >= FEWEST and (spread := scores[here].std()) > 0:
            found[here] = (scores[here] - scores[here].mean()) / spread
    return found
