"""Degrees of relationship from the total length of shared segments.

Relatives of degree k share one allele at 2**(1 - k) of the genome (k from 2 on), in pieces between
the crossovers of the meioses that separate them: a Poisson process of one a Morgan and meiosis
(Huff et al. 2011, Genome Res 21: 768; here with the ends of each contig). Pieces shorter than the
shortest segment are lost, more of them the more distant the relatives are. So the expected total of
each degree is computed for the genome and the shortest segment in use. Full relatives of degree k
are separated by k + 1 meioses through two ancestors, half relatives by k through one; the mean of
both stands for the degree.

The square root of a total scatters nearly as much in all degrees, so the limit between two degrees
is half way between the roots of their expected totals. The interval holds the degrees of 95 % of
the probability, if all degrees are equally likely and roots are normal. The number of segments
tells whole degrees hardly better (tests/bench/bench_ibd_truth.py), so it is written but not used.

Identity and first degree follow from kinship, (k1 / 4 + k2 / 2) from shares of the genome, by the
limits of KING, 2**-1.5 and 2**-2.5 (Manichaikul et al. 2010, Bioinformatics 26: 2867). These are
shares of the contigs that can hold a segment, since nobody shares anything on others.

Chance decides which part of a short genome relatives share: on 60 cM every seventh pair of the
second degree shares as much as parent and child. Below LEAST_SEARCHED no degree is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

#: Most distant degree that is told apart; what lies behind is DISTANT.
LAST_DEGREE = 6
DISTANT = LAST_DEGREE + 1
#: Most distant degree of close relatives.
LAST_CLOSE = 3
#: The degree of pairs on a genome that is too short to tell it.
UNTOLD = DISTANT + 1
#: Degrees as they are written.
DEGREES = (*map(str, range(DISTANT)), "distant", "NA")
#: Shortest genome searched, cM, on which degrees are told. Half siblings share half of a genome; on
#: this one with a standard deviation of a tenth, so that about 1 % reach the first degree.
LEAST_SEARCHED = 1_000.0
#: Degrees that a pair may have as far as its interval goes.
_FAR = 9
#: Kinship above which two profiles are one person (or twins), or first-degree relatives.
IDENTICAL, FIRST_DEGREE = 2**-1.5, 2**-2.5
#: Probability that the interval leaves out on either side.
_TAIL = 0.025
#: Points of the integrals over lengths of pieces.
_POINTS = 512


@dataclass(frozen=True)
class DegreeScale:
    """What relatives of each degree share on a genome.

    Attributes
    ----------
    contigs_cm : float64 array, (n_contigs,)
        Genetic lengths.
    min_cm : float
        Shortest segment.
    """

    contigs_cm: np.ndarray
    min_cm: float

    @property
    def genome_cm(self) -> float:
        """Genetic length of all contigs."""
        return float(np.sum(self.contigs_cm))

    @property
    def searched_cm(self) -> float:
        """Genetic length of the contigs on which a segment of `min_cm` fits."""
        lengths = np.asarray(self.contigs_cm, np.float64)
        return float(lengths[lengths >= self.min_cm].sum())

    @cached_property
    def roots(self) -> tuple[np.ndarray, np.ndarray]:
        """Expected roots of totals and their standard deviations, of the degrees 2 to _FAR."""
        means, scatters = [], []
        for degree in range(2, _FAR + 1):
            full, half = self._root(degree, degree + 1), self._root(degree, degree)
            means.append((full[0] + half[0]) / 2)
            scatters.append((full[1] + half[1]) / 2)
        return np.array(means), np.array(scatters)

    def _root(self, degree: int, meioses: int) -> tuple[float, float]:
        share, rate = 2.0 ** (1 - degree), meioses / 100
        total = squares = 0.0
        for length in np.asarray(self.contigs_cm, np.float64):
            if length < self.min_cm:
                continue
            x = np.linspace(self.min_cm, length, _POINTS)
            # Pieces within the contig, at its two ends, and the whole of it.
            density = (rate**2 * (length - x) + 2 * rate) * np.exp(-rate * x)
            whole = np.exp(-rate * length)
            total += np.trapezoid(x * density, x) + whole * length
            squares += np.trapezoid(x**2 * density, x) + whole * length**2
        mean = share * total
        if mean <= 0:
            return 0.0, 1.0
        return np.sqrt(mean), np.sqrt(share * (1 - share) * squares / mean) / 2

    def kinship(self, total_cm: np.ndarray, ibd2_cm: np.ndarray) -> np.ndarray:
        """Kinship from total lengths with at least one and with two shared alleles.

        Half of the share of `searched_cm` that one allele covers counts, twice where both do.
        """
        return (np.asarray(total_cm) + np.asarray(ibd2_cm)) / (4 * max(self.searched_cm, 1e-9))

    def degrees(self, total_cm, ibd2_cm) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Degree of each pair, and the lowest and highest that fit: 0 to LAST_DEGREE, or DISTANT.

        All are UNTOLD if less than LEAST_SEARCHED is searched.

        Parameters
        ----------
        total_cm, ibd2_cm : float64 arrays, (n_pairs,)
            Length with at least one shared allele, and with two.

        Returns
        -------
        degree, low, high : int64 arrays, (n_pairs,)
        """
        root = np.sqrt(np.asarray(total_cm, np.float64))
        if self.searched_cm < LEAST_SEARCHED:
            return tuple(np.full(len(root), UNTOLD) for _ in range(3))
        phi = self.kinship(total_cm, ibd2_cm)
        means, scatters = self.roots
        limits = (means[:-1] + means[1:]) / 2
        degree = 2 + np.searchsorted(-limits, -root, "right")
        off = (root[:, None] - means) / scatters
        weight = np.exp(-0.5 * (off**2 - np.min(off**2, axis=1, initial=np.inf, keepdims=True)))
        weight /= scatters
        below = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
        low = 2 + np.sum(below <= _TAIL, axis=1)
        high = 2 + np.sum(below < 1 - _TAIL, axis=1)
        for fixed, limit in ((1, FIRST_DEGREE), (0, IDENTICAL)):
            for values in (degree, low, high):
                values[phi > limit] = fixed
        low, high = np.minimum(low, degree), np.maximum(high, degree)
        return tuple(np.minimum(values, DISTANT) for values in (degree, low, high))


def degree_words(degree: np.ndarray) -> list[str]:
    """Degrees as they are written (DEGREES)."""
    return [DEGREES[k] for k in np.asarray(degree).tolist()]


def surely_close(summary: dict[str, Any]) -> int | None:
    """Pairs of `ibd/summary.json` whose whole interval lies within degrees 1 to LAST_CLOSE.

    Profiles of one person (degree 0) are no relatives. None if the genome is too short to tell.
    """
    counts = summary["pairs_by_farthest_degree"]
    if summary["searched_cm"] < LEAST_SEARCHED:
        return None
    return sum(counts.get(name, 0) for name in degree_words(range(1, LAST_CLOSE + 1)))
