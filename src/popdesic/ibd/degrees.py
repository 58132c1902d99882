"""Kinship and its interval from the segments that two samples share, or from their kinship alone.

Along a contig, relatives share an allele by descent in stretches that crossovers begin and end. A
Markov chain of two states describes it: stretches end at a rate of so many a Morgan, one for each
meiosis in which a crossover ends them, and a share of the genome lies within them (Huff et al.
2011, Genome Res 21: 768; Hill and Weir 2011, Genet Res 93: 47). The rate is 1 for a grandparent, 2
for half siblings, about 2.5 for an uncle, 4 for first cousins: relatives of degree k share
2**(1 - k) of the genome at rates from k - 1 to k + 1. So the number of segments says on how many
independent pieces a total rests. The interval holds the shares whose likelihood, at the best of
these rates, is at least exp(-FALL) of the largest one.

Without segments, kinship scatters by chance of its sites (its standard error) and by which part of
the genome was passed on: the variance of the same chain at the rate of its degree.

Chance decides which part of a short genome relatives share: on 60 cM every seventh pair of the
second degree shares as much as parent and child. Below LEAST_SEARCHED no degree is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from ..relatives.resolution import FIRST

#: Shortest genome searched, cM, on which degrees are told. Half siblings share half of a genome; on
#: this one with a standard deviation of a tenth, so that about 1 % reach the first degree.
LEAST_SEARCHED = 1_000.0
#: Fall of the log likelihood at both ends of an interval of 95 %, and standard errors of others.
#: Shares are half of a degree apart or less, so FALL is more than 1.92 (bench_degrees.py).
FALL, ERRORS = 2.1, 1.96
#: Shares of the genome that are tried: halved so many times, at these steps.
_STEP, _HALVINGS = 0.02, 7.0
#: Rates of a degree: those of relatives in direct line and of cousins.
_RATES = np.linspace(-1.0, 1.0, 11)
#: Least rate: stretches that no crossover ends.
_LEAST_RATE = 0.3
#: Degrees that are compared: from the second on.
_DEGREES = np.arange(2, 8)
#: Added to their log likelihoods. Without, second-degree pairs are taken for the third degree more
#: often than the other way round (a grandchild may share a third of a genome), and third-degree
#: pairs for distant ones (bench_degrees.py, seeds 1 to 8).
_FAVOUR = np.array([0.6, 0.0, -0.3, -0.3, -0.3, -0.3])
#: Share with at least one allele from which two are parent and child, who have 0.99 to 1 of a dense
#: panel. On a sparse one they have less; then it is not enough if they share both alleles as
#: siblings do, at 0.25 +- 0.04 and at least SIBLINGS of the genome.
PARENT, SPARSE_PARENT, SIBLINGS = 0.95, 0.85, 1 / 12
#: Share of a length that its ends can be wrong by.
_ENDS = 0.01
#: Pairs that are compared at once.
_PAIRS = 1 << 12


@dataclass(frozen=True)
class DegreeScale:
    """What relatives of each degree share on a genome.

    Attributes
    ----------
    contigs_cm : float64 array, (n_contigs,)
        Genetic lengths.
    min_cm : float
        Shortest segment; 0 where kinship does not come from segments.
    """

    contigs_cm: np.ndarray
    min_cm: float

    @property
    def genome_cm(self) -> float:
        """Genetic length of all contigs."""
        return float(np.sum(self.contigs_cm))

    @cached_property
    def searched(self) -> np.ndarray:
        """Lengths of the contigs on which a segment of `min_cm` fits, in cM."""
        lengths = np.asarray(self.contigs_cm, np.float64)
        return lengths[(lengths >= self.min_cm) & (lengths > 0)]

    @property
    def searched_cm(self) -> float:
        """Genetic length of the contigs on which a segment of `min_cm` fits."""
        return float(self.searched.sum())

    @property
    def tells(self) -> bool:
        """Whether the genome is long enough to tell degrees."""
        return self.searched_cm >= LEAST_SEARCHED

    def kinship(self, total_cm: np.ndarray, ibd2_cm: np.ndarray) -> np.ndarray:
        """Kinship from total lengths with at least one and with two shared alleles.

        Half of the share of `searched_cm` that one allele covers counts, twice where both do.
        """
        return (np.asarray(total_cm) + np.asarray(ibd2_cm)) / (4 * max(self.searched_cm, 1e-9))

    def interval(self, total_cm, ibd2_cm, segments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Degree of each pair, from the second on, and the interval of its kinship.

        Parameters
        ----------
        total_cm, ibd2_cm : float64 arrays, (n_pairs,)
            Length with at least one shared allele, and with two.
        segments : int array, (n_pairs,)
            Number of segments with at least one.

        Returns
        -------
        degree : int64 array
            The likeliest of the degrees 2 to 7; a parent and full siblings are not among them.
        low, high : float64 arrays
            Interval of 95 % for the kinship by pedigree.
        """
        total, two, number = (
            np.asarray(values, np.float64) for values in (total_cm, ibd2_cm, segments)
        )
        if not len(self.searched):
            nothing = np.zeros(len(total))
            return np.full(len(total), _DEGREES[-1]), nothing, nothing + 0.5
        degree, low, high = np.empty(len(total), np.int64), *np.empty((2, len(total)))
        for first in range(0, len(total), _PAIRS):
            part = slice(first, first + _PAIRS)
            degree[part], low[part], high[part] = self._likeliest(
                total[part] + two[part], number[part]
            )
        phi = self.kinship(total, two)
        parents, siblings = self.parents(total, two), self.siblings(total, two)
        spread = np.where(siblings & ~parents, ERRORS * self.scatter(phi, 1), 0.0)
        fixed = parents | siblings
        low = np.where(fixed, phi * (1 - _ENDS) - spread, low)
        # A parent and a child share one allele everywhere, if it is not all found.
        most = np.where(parents, np.maximum(phi, 0.25), phi)
        high = np.where(fixed, most * (1 + _ENDS) + spread, high)
        return degree, np.minimum(low, phi), np.maximum(high, phi)

    def parents(self, total_cm: np.ndarray, ibd2_cm: np.ndarray) -> np.ndarray:
        """bool: whether two share as parent and child or duplicates do: all along the genome."""
        whole = max(self.searched_cm, 1e-9)
        share, two = np.asarray(total_cm) / whole, np.asarray(ibd2_cm) / whole
        return (share >= PARENT) | ((share >= SPARSE_PARENT) & (two < SIBLINGS))

    def identical(self, ibd2_cm: np.ndarray) -> np.ndarray:
        """bool: whether two share both alleles all along the genome."""
        return np.asarray(ibd2_cm) >= PARENT * max(self.searched_cm, 1e-9)

    def siblings(self, total_cm: np.ndarray, ibd2_cm: np.ndarray) -> np.ndarray:
        """bool: whether two share as full siblings do: both alleles at a part of the genome."""
        close = self.kinship(total_cm, ibd2_cm) > FIRST
        return close & (np.asarray(ibd2_cm) >= SIBLINGS * self.searched_cm)

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares, and what multiplies the five sums of a pair: (5, n_rates x n_shares)."""
        shares = 2.0 ** -np.arange(_STEP, _HALVINGS + _STEP / 2, _STEP)
        shortest = self.min_cm / 100
        p = np.broadcast_to(shares, (len(_RATES), len(shares)))
        rate = np.maximum(1 - np.log2(p) + _RATES[:, None], _LEAST_RATE)
        kept = np.exp(-rate * shortest)  # a stretch is as long as a segment
        begin = rate * p / (1 - p) * kept
        factors = [np.log(p * kept), np.log1p(-p * kept), np.log(rate * begin), -rate, -begin]
        return shares, np.stack(factors).reshape(5, -1)

    def _likeliest(self, shared_cm: np.ndarray, segments: np.ndarray) -> tuple:
        """Likeliest degree, and the interval of kinship, of pairs that share so much."""
        whole, contigs = self.searched_cm / 100, len(self.searched)
        shared = np.minimum(shared_cm / 100, whole)
        share = shared / whole
        # So many segments begin (and as many end) within contigs, the others at their ends.
        inside = np.maximum(segments - contigs * share, 0.0)
        beyond = np.maximum(shared - segments * self.min_cm / 100, 0.0)
        sums = [contigs * share, contigs * (1 - share), inside, beyond, whole - shared]
        shares, factors = self._grid
        with threadpool_limits(1, "blas"):  # the order of sums
            found = np.column_stack(sums) @ factors
        found = found.reshape(len(share), len(_RATES), len(shares)).max(axis=1)
        within = found >= found.max(axis=1, keepdims=True) - FALL
        high = shares[within.argmax(axis=1)]
        low = shares[len(shares) - 1 - within[:, ::-1].argmax(axis=1)]
        low = np.where(within[:, -1], 0.0, low)
        at = np.rint((_DEGREES - 1) / _STEP).astype(int) - 1
        return _DEGREES[(found[:, at] + _FAVOUR).argmax(axis=1)], low / 4, high / 4

    def scatter(self, kinship: np.ndarray, parents: int = 0) -> np.ndarray:
        """Standard deviation of the kinship of relatives due to which genome was passed on.

        Parameters
        ----------
        kinship : float64 array
            By pedigree.
        parents : int
            1: both parents pass something on to both, as to full siblings.
        """
        share = np.clip(np.asarray(kinship, np.float64) * (2 if parents else 4), 1e-6, 1 - 1e-6)
        rate = np.full(share.shape, 2.0) if parents else np.maximum(0.5 - np.log2(share), 1.0)
        decay = (rate / (1 - share))[..., None] * np.asarray(self.searched) / 100
        length = np.asarray(self.searched) / 100
        alike = 2 * (decay - 1 + np.exp(-decay)) / np.maximum(decay, 1e-9) ** 2 * length**2
        total = alike.sum(axis=-1) / max(length.sum(), 1e-9) ** 2
        variance = share * (1 - share) * total
        return np.sqrt(variance / 8 if parents else variance / 16)
