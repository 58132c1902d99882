"""What kinship and identity can distinguish on a panel: limits not reached by chance.

With ``pairs = people (people - 1) / 2``, the probability that any pair of `people` unrelated people
reaches the kinship ``standard_error * sqrt(2 ln(pairs / ERROR_RATE))`` is at most ERROR_RATE: the
tail of a normal variable beyond z is below exp(-z^2 / 2). For the share of mismatching genotypes,
the Chernoff bound exp(-n KL(max_mismatch, mean)) gives the same error rate, with n the number of
independent sites whose mismatches have the same variance. `independence.py` measures both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.files import read_json
from .mixture import MOST_ABSENT

#: Smallest kinship of each degree (Manichaikul et al. 2010, table 1: powers of two).
DUPLICATE, FIRST, SECOND, THIRD = 2**-1.5, 2**-2.5, 2**-3.5, 2**-4.5
#: Probability that any two unrelated founders are called relatives, or the same person.
ERROR_RATE = 0.05
#: Limits hold for at least this many people: newcomers add pairs, but must not change the limits
#: for founders.
LEAST_PEOPLE = 1_000


@dataclass(frozen=True)
class Resolution:
    """What a panel can resolve (`compare/kinship.json`).

    Attributes
    ----------
    panel : str
        The panel's digest.
    sites : int
    founders, people : int
        Number of founders, and of people that the limits hold for (at least LEAST_PEOPLE).
    error_rate : float
        Probability that any pair of `people` unrelated people exceeds a limit.
    effective_sites, standard_error : float or None
        Effective number of independent sites for kinship, and the standard error of kinship for two
        unrelated people called at all sites; None if it cannot be measured.
    smallest_kinship : float or None
        Not reached by any unrelated pair called at all sites; None if this is above 1/2, the
        kinship of a person with itself, so that kinship is uninformative.
    degrees : list of str
        Those of ``duplicate``, ``first``, ``second``, ``third`` that can be distinguished for two
        people called at all sites. Relatives closer than `smallest_kinship` are listed even if
        their degree as a whole cannot be distinguished.
    max_mismatch : float
        Largest share of sites at which two samples of one person may differ.
    mean_mismatch, mismatch_sites : float or None
        Share of mismatching genotypes of unrelated people, and the effective number of independent
        sites for mismatches.
    least_called : int or None
        With at least this many jointly called sites, no unrelated pair is the same person by
        `max_mismatch`; None if the whole panel has too few sites.
    common_sites : int
        Sites of the panel at which contamination is sought (`mixture.COMMON`).
    least_common : int or None
        With at least this many jointly called common sites, no unrelated sample has the alleles of
    least_common = needed = None
    if mismatch_sites is not None and MOST_ABSENT < absent < 1:
        each = _divergence(MOST_ABSENT, absent) * mismatch_sites / sites
    siblings_alike : float
        Approximate share of full siblings who inherited the same haplotypes at every panel site
        (at one centimorgan per megabase): small unless the panel covers little of the genome.
    fault : str or None
        Why kinship is not used although sites may suffice: its model does not hold.
    shift : float
        By how much missing calls may raise the kinship of unrelated founders
        (`independence.kinship_shift`); part of `smallest_kinship`.
    lowered : float
        By how much missing heterozygotes lower the kinship of founders in the cohort with most.
    """

    panel: str
    sites: int
    founders: int
    people: int
    error_rate: float
    effective_sites: float | None
    standard_error: float | None
    smallest_kinship: float | None
    degrees: list[str]
    max_mismatch: float
    mean_mismatch: float | None
    mismatch_sites: float | None
    least_called: int | None
    common_sites: int
    least_common: int | None
    siblings_alike: float
    fault: str | None = None
    shift: float = 0.0
    lowered: float = 0.0
    needed_common: int | None = None

    def least_kinship(self, called: np.ndarray) -> np.ndarray:
        """Smallest kinship of relatives among pairs with this many jointly called sites.

        float64, infinite where it is above 1/2. The standard error is inversely proportional to
        the square root of the called sites.
        """
        if self.smallest_kinship is None:
            return np.full(np.shape(called), np.inf)
        limit = self.smallest_kinship * np.sqrt(self.sites / np.maximum(called, 1))
        return np.where(limit <= 0.5, limit, np.inf)

    def least_pc_relate(self, sites: np.ndarray) -> np.ndarray:
        """Smallest PC-Relate kinship of relatives among pairs with this many sites that count.

        float64, infinite where it is above 1/2. For n independent sites the variance is 1 / (4 n),
        a third of KING-robust's, because frequencies are known and a genotype's heterozygosity does
        not count; LD raises both alike (`independence.py`).
        """
        if self.standard_error is None:
            return np.full(np.shape(sites), np.inf)
        pairs = self.people * (self.people - 1) / 2
        limit = self.standard_error * math.sqrt(2 * math.log(pairs / self.error_rate) / 3)
        limit = limit * np.sqrt(self.sites / np.maximum(sites, 1))
        return np.where(limit <= 0.5, limit, np.inf)

    def verdict(self, mismatches: int, called: int) -> str:
        """Whether two profiles are of one person: ``same``, ``different`` or ``too few sites``."""
        if mismatches / called > self.max_mismatch:
            return "different"
        enough = self.least_called is not None and called >= self.least_called
        return "same" if enough else "too few sites"

    def same(self, mismatches: np.ndarray, called: np.ndarray) -> np.ndarray:
        """bool: whether `verdict` is ``same``, for each pair."""
        if self.least_called is None:
            return np.zeros(np.shape(called), bool)
        share = mismatches / np.maximum(called, 1)
        return (share <= self.max_mismatch) & (called >= self.least_called)


def load_resolution(path: Path) -> Resolution:
    return Resolution(**read_json(path))


def resolve(
    variance: float | None,
    mean_mismatch: float | None,
    mismatch_variance: float | None,
    *,
    panel: str,
    sites: int,
    founders: int,
    max_mismatch: float,
    fault: str | None = None,
    shifts: Sequence[float] = (),
    common: int = 0,
    absent: float = 0.0,
    siblings: float = 0.0,
) -> Resolution:
    """Limits from the measured variances of kinship and of the share of mismatches.

    `fault`: why the variance of kinship is None. `shifts`: by how much missing calls raise the
    kinship of each cohort, or lower it (below 0); its limit is raised by the most. `common`
    sites are common, and unrelated samples lack alleles of each other at a share `absent` of them;
    MOST_ABSENT is the limit of that share.
    """
    people = max(founders, LEAST_PEOPLE)
    surprise = math.log(people * (people - 1) / 2 / ERROR_RATE)
    shift, lowered = max((0.0, *shifts)), max((0.0, *(-x for x in shifts)))
    effective = error = smallest = mismatch_sites = least_called = None
    if variance is not None and variance > 0:
        effective = min(3 / (4 * variance), sites)
        error = math.sqrt(3 / (4 * effective))
        limit = error * math.sqrt(2 * surprise) + shift
        smallest = limit if limit <= 0.5 else None
    if mean_mismatch is not None and 0 < mean_mismatch < 1:
        mismatch_sites = effective
        if mismatch_variance > 0:
            mismatch_sites = min(mean_mismatch * (1 - mean_mismatch) / mismatch_variance, sites)
    if mismatch_sites is not None:
        each = _divergence(max_mismatch, mean_mismatch) * mismatch_sites / sites
        if max_mismatch < mean_mismatch and each > 0 and surprise / each <= sites:
            least_called = math.ceil(surprise / each)
    least_common = needed = None
    if mismatch_sites is not None and MOST_ABSENT < absent < 1:
        each = _divergence(MOST_ABSENT, absent) * mismatch_sites / sites
        # either of two may be the mixture
        needed = math.ceil((surprise + math.log(2)) / each)
        least_common = needed if needed <= common else None
    told = {"duplicate": least_called is not None}
    for name, least in (("first", FIRST), ("second", SECOND), ("third", THIRD)):
        told[name] = smallest is not None and smallest <= least - lowered
    return Resolution(
        panel=panel,
        sites=sites,
        founders=founders,
        people=people,
        error_rate=ERROR_RATE,
        effective_sites=_rounded(effective),
        standard_error=_rounded(error),
        smallest_kinship=_rounded(smallest),
        degrees=[name for name, is_told in told.items() if is_told],
        max_mismatch=max_mismatch,
        mean_mismatch=_rounded(mean_mismatch),
        mismatch_sites=_rounded(mismatch_sites),
        least_called=least_called,
        common_sites=common,
        least_common=least_common,
        siblings_alike=_rounded(siblings),
        fault=fault,
        shift=_rounded(shift),
        lowered=_rounded(lowered),
        needed_common=needed,
    )


def _rounded(value: float | None) -> float | None:
    """Round to six digits: the last digits of float sums can differ between machines."""
    return None if value is None else float(f"{value:.6g}")


def _divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence in nats of Bernoulli(a) from Bernoulli(b), b in (0, 1)."""
    one = a * math.log(a / b) if a > 0 else 0.0
    return one + ((1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0)
