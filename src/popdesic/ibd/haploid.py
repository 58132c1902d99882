"""Identity by descent of haploid samples: shares of the genome, and segments.

The model is that of hmmIBD (Schaffner et al. 2018, Malaria Journal 17:196,
doi:10.1186/s12936-018-2349-7). Along the genome a pair of samples is either identical by descent,
so that both have one allele of the population, or not, so that they have two. Each allele is read
as the other one with the error rate. After d Morgans the state is drawn anew with the probability
1 - exp(-k d), and is then IBD with probability s. The number of generations k and the share s are
fitted to each pair by expectation-maximisation, from s = 0.5 and k = 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import contig_runs

#: Sites called in both samples, one of which at least has the minor allele: pairs with fewer are
#: not fitted, as by hmmIBD.
FEWEST_INFORMATIVE = 10
#: Alleles of pairs that one task holds.
ALLELES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class HaploidPairs:
    """All pairs of samples, by first and second sample, and the segments of each.

    Attributes
    ----------
    a, b : int64 arrays, (n_pairs,)
        Rows of the samples.
    called, differ : int64 arrays
        Sites called in both, and those of them at which alleles differ.
    fits : float64 array, (n_pairs, 5)
        `haploid_cpu.fit_block`; NaN of pairs with too few informative sites.
    segments : int64 array, (n_segments, 5)
        Number of the pair, first and last site, called and differing sites.
    """

    a: np.ndarray
    b: np.ndarray
    called: np.ndarray
    differ: np.ndarray
    fits: np.ndarray
    segments: np.ndarray


def allele_ratios(af: np.ndarray, error_rate: float) -> np.ndarray:
    """Likelihood of two alleles under IBD over that under none, float64 (n_sites, 3).

    Columns: both REF, they differ, both ALT. It is 1 where the frequency is NaN, 0 or 1.
    """
    right = 1.0 - error_rate
    ratios = np.ones((len(af), 3))
    known = (af > 0) & (af < 1)
    alt = af[known]
    read = right * alt + error_rate * (1 - alt)  # the share of ALT among alleles as read
    ratios[known, 0] = (right**2 * (1 - alt) + error_rate**2 * alt) / (1 - read) ** 2
    ratios[known, 1] = right * error_rate / (read * (1 - read))
    ratios[known, 2] = (right**2 * alt + error_rate**2 * (1 - alt)) / read**2
    return ratios


def morgan_steps(chrom: np.ndarray, cm: np.ndarray) -> np.ndarray:
    """Morgans from the site before, float64 (n_sites,); infinity at the first of a contig."""
    steps = np.diff(cm, prepend=0.0) / 100
    for first, _ in contig_runs(chrom):
        steps[first] = np.inf
    return steps


def haploid_pairs(
    genotypes: np.ndarray,
    af: np.ndarray,
    steps: np.ndarray,
    *,
    split: int = 0,
    error_rate: float,
    max_generations: float,
    iterations: int,
    threads: int,
) -> HaploidPairs:
    """Fit all pairs of haploid samples, or those between two groups of them.

    Parameters
    ----------
    genotypes : int8 array, (n_samples, n_sites)
        0 or 1; -1 where missing, which says nothing of the state.
    af : float64 array, (n_sites,)
        ALT frequencies in the samples' population; NaN where unknown.
    steps : float64 array, (n_sites,)
        `morgan_steps`.
    split : int
        0: all pairs. Else the pairs of the samples before this row with those from it on.
    error_rate : float
        Share of alleles that are read as the other one; above 0.
    max_generations : float
        Most generations of a fit.
    iterations : int
        Most iterations of a fit.
    """
    from .haploid_cpu import fit_block

    ratios = allele_ratios(af, error_rate)
    limits = np.array([max_generations, iterations], np.float64)
    new = np.isinf(steps)
    last = np.append(new[1:], True)
    minor = (af <= 0.5).astype(np.int8)
    n = len(genotypes)

    def work(row: int, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        others = genotypes[first:end]
        called = (genotypes[row] >= 0) & (others >= 0)
        differ = called & (genotypes[row] != others)
        informative = differ | (called & (others == minor))
        fits, paths = np.zeros((len(others), 5)), np.empty(others.shape, np.uint8)
        fits[informative.sum(axis=1) < FEWEST_INFORMATIVE] = np.nan
        fit_block(genotypes, row, first, ratios, steps, limits, fits, paths)
        counts = np.stack([called.sum(axis=1), differ.sum(axis=1)], axis=1)
        ibd = paths.astype(bool)
        begins, ends = ibd.copy(), ibd.copy()
        begins[:, 1:] &= ~ibd[:, :-1] | new[1:]
        ends[:, :-1] &= ~ibd[:, 1:] | last[:-1]
        pair, begin = np.nonzero(begins)
        end_site = np.nonzero(ends)[1]
        sums = []
        for what in (called, differ):
            total = np.cumsum(what, axis=1, dtype=np.int64)
            sums.append(total[pair, end_site] - total[pair, begin] + what[pair, begin])
        return fits, counts, np.stack([pair, begin, end_site, *sums], axis=1)

    pairs = max(1, ALLELES_AT_ONCE // len(steps))
    tasks = [
        (row, first, min(first + pairs, n))
        for row in range(split or n - 1)
        for first in range(split or row + 1, n, pairs)
    ]
    fits, counts, segments = [np.zeros((0, 5))], [np.zeros((0, 2), np.int64)], []
    before = 0
    for fit, count, segment in run_tasks(work, tasks, threads):
        fits.append(fit)
        counts.append(count)
        segment[:, 0] += before
        segments.append(segment)
        before += len(fit)
    called, differ = np.concatenate(counts).T
    listed = np.concatenate([np.zeros((0, 5), np.int64), *segments])
    a, b = np.triu_indices(n, 1)
    if split:
        a, b = (grid.ravel() for grid in np.mgrid[:split, split:n])
    return HaploidPairs(a, b, called, differ, np.concatenate(fits), listed)
