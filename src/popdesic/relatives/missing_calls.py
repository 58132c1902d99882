"""Whether calls are missing by their genotype, and what this does to KING-robust kinship.

Kinship cannot tell missing homozygotes from relatives, but the sites can. With missing rates
m_g of the genotypes g, a site with shares s_g of its called genotypes misses
``sum s_g m_g / (1 - m_g)`` calls for each call: rates are the slopes of missing calls on genotype
shares, over sites of different frequency. Relatives among the samples change shares, not slopes.
The shares are measured with error, as few samples are called, so the covariance of this error is
subtracted. Where rates of sites differ so that the slopes cancel, as after a limit of the call
rate, sites that lack more calls have more heterozygotes than their frequency gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Blocks of sites of the jackknife, and standard errors of a bound; those by which a value must
#: differ from 0 where nothing but the sites tells it: missing heterozygotes, and homozygotes that
#: differ between sites of the same frequency.
BLOCKS, ERRORS, SURE = 64, 2.0, 3.0
#: Least share of the variance of genotype shares that is not error, for slopes to be measured.
MEASURED = 0.1


@dataclass(frozen=True)
class MissingPattern:
    """What missing calls do to the kinship of unrelated samples, estimated from the sites.

    Attributes
    ----------
    missing : float
        Share of missing calls.
    shift, shift_error : float
        By how much they raise kinship (negative: heterozygotes are missing), and its standard
        error; infinite if the sites cannot tell.
    homozygotes, homozygotes_error : float
        Share of the missing calls that are homozygotes missing beyond chance, by sites of the same
        frequency that differ in their missing calls, and its standard error.
    """

    missing: float
    shift: float
    shift_error: float
    homozygotes: float
    homozygotes_error: float

    @property
    def least_shift(self) -> float:
        """Lower bound of `shift`."""
        return self.shift - ERRORS * self.shift_error

    @property
    def most_shift(self) -> float:
        """Upper bound of `shift`."""
        return self.shift + ERRORS * self.shift_error

    @property
    def least_homozygotes(self) -> float:
        """Lower bound of `homozygotes`."""
        return self.homozygotes - SURE * self.homozygotes_error

    @property
    def lowers(self) -> bool:
        """Whether heterozygotes are missing more often, which lowers kinship."""
        return self.shift + SURE * self.shift_error < 0 and self.least_homozygotes <= 0

    def possible_shift(self, af: np.ndarray, observed: float) -> float:
        """Largest shift that missing calls can explain where `observed` is seen, 0 or more."""
        whole = largest_shift(self.missing, af)
        if not np.isfinite(self.shift_error):
            return whole
        possible = self.most_shift
        if self.least_homozygotes > 0:
            most = min(1.0, self.homozygotes + ERRORS * self.homozygotes_error)
            other = largest_shift(most * self.missing, af)
            if other >= min(observed, whole):
                possible = max(possible, other)
        return float(np.clip(possible, 0.0, whole))


def largest_shift(missing: float, af: np.ndarray) -> float:
    """Kinship of strangers if a share `missing` of calls is missing, all of them homozygous."""
    het = 2 * af * (1 - af)
    if not (het.any() and missing > 0):
        return 0.0
    rate = max(0.0, 1 - missing / (1 - float(het.mean())))
    return _kinship_of_strangers(np.array([rate, 1.0, rate]), _products(af))


def _products(af: np.ndarray) -> np.ndarray:
    """Sums over sites that `_kinship_of_strangers` needs: p²q², and H times q², H and p²."""
    het = 2 * af * (1 - af)
    parts = (het**2 / 4, het * (1 - af) ** 2, het**2, het * af**2)
    return np.array([part.sum() for part in parts])


def _kinship_of_strangers(rates: np.ndarray, products: np.ndarray) -> float:
    """KING-robust kinship of unrelated samples whose genotypes 0, 1, 2 are called at `rates`."""
    zero, one, two = rates
    het = one * (rates @ products[1:])
    squared = 8 * zero * two * products[0] + 2 * het - 2 * one**2 * products[2]
    return float(0.5 - squared / (4 * het))


def measure_missing(counts: np.ndarray, n: int, af: np.ndarray) -> MissingPattern:
    """Estimate the pattern from the sites of one cohort.

    Parameters
    ----------
    counts : int array, (3, n_sites)
        Called genotypes 0, 1 and 2 of each site.
    n : int
        Samples.
    af : float64 array, (n_sites,)
        ALT frequencies of the panel.
    """
    called = counts.sum(axis=0)
    missing = 1 - float(called[called > 0].sum()) / (n * max(int((called > 0).sum()), 1))
    kept = called > 1
    counts, called, af = counts[:, kept].astype(np.float64), called[kept], af[kept]
    unknown = MissingPattern(missing, 0.0, np.inf, 0.0, np.inf)
    if len(af) < 2 * BLOCKS or not (af * (1 - af)).any():
        return unknown
    products = _products(af)
    slopes, excess = _moments_of_slopes(counts, called, n), _moments_of_excess(counts, called, n)
    with np.errstate(all="ignore"):
        shift, shift_error = _jackknife(lambda sums: _shift(sums, products), slopes)
        homozygotes, error = _jackknife(_homozygotes, excess)
    if not (np.isfinite(shift) and np.isfinite(shift_error)):
        return unknown
    if not (np.isfinite(homozygotes) and np.isfinite(error)):
        homozygotes, error = 0.0, 0.0  # sites do not differ in their missing calls
    return MissingPattern(missing, shift, shift_error, homozygotes, error)


def _jackknife(estimate, parts: np.ndarray) -> tuple[float, float]:
    """An estimate from the mean of `parts` (n_blocks, ...), and its standard error."""
    whole = parts.sum(axis=0)
    without = np.array([estimate(whole - part) for part in parts])
    error = np.sqrt((len(parts) - 1) * np.var(without))
    return float(estimate(whole)), float(error)


def _cross_products(columns: list[np.ndarray]) -> np.ndarray:
    """Sums of products of all pairs of columns within BLOCKS runs of sites: (BLOCKS, k, k)."""
    table = np.array(columns)
    n_sites = table.shape[1]
    bounds = np.arange(BLOCKS) * n_sites // BLOCKS
    return np.array(
        # No BLAS: the order of its sums depends on the number of threads.
        [np.einsum("is,js->ij", part, part) for part in np.split(table, bounds[1:], axis=1)]
    )


def _moments_of_slopes(counts: np.ndarray, called: np.ndarray, n: int) -> np.ndarray:
    """Of 1, shares of genotypes 0 and 2, missing calls for each call; then of errors of shares."""
    ref, _, alt = counts / called
    sums = _cross_products([np.ones(len(called)), ref, alt, (n - called) / called])
    parts = (ref * (1 - ref), -ref * alt, alt * (1 - alt))
    bounds = np.arange(BLOCKS) * len(called) // BLOCKS
    errors = np.array([np.add.reduceat(part / (called - 1), bounds) for part in parts]).T
    noise = np.zeros_like(sums)
    noise[:, 1, 1], noise[:, 1, 2], noise[:, 2, 1] = errors[:, 0], errors[:, 1], errors[:, 1]
    noise[:, 2, 2] = errors[:, 2]
    return np.stack([sums, noise], axis=1)


def _shift(sums: np.ndarray, products: np.ndarray) -> float:
    """Shift of kinship from `_moments_of_slopes`; NaN if the shares do not vary enough."""
    moments, noise = sums / sums[0, 0, 0]
    means = moments[0, 1:]
    spread = moments[1:, 1:] - np.outer(means, means)
    shares = spread[:2, :2] - noise[1:3, 1:3]
    if shares.trace() < MEASURED * spread[:2, :2].trace() or np.linalg.det(shares) <= 0:
        return np.nan
    slopes = np.linalg.solve(shares, spread[:2, 2])
    het = means[2] - slopes @ means[:2]
    rates = 1 / np.maximum(1 + het + np.array([slopes[0], 0.0, slopes[1]]), 0.05)
    return _kinship_of_strangers(rates / rates[1], products)


def _moments_of_excess(counts: np.ndarray, called: np.ndarray, n: int) -> np.ndarray:
    """Of 1, expected heterozygotes, what missing homozygotes add to them, times missing; excess.

    If a share y of a site's calls is missing, all homozygotes, heterozygotes exceed 2pq by
    y H² / (1 - H). The mean of y is subtracted: relatives give an excess too, of any shape.
    """
    p = (counts[1] / 2 + counts[2]) / called
    het = 2 * p * (1 - p) * (2 * called / (2 * called - 1))
    added = het**2 / np.maximum(1 - het, 0.3)
    missing = (n - called) / n
    columns = [np.ones(len(called)), het, added, (missing - missing.mean()) * added]
    return _cross_products([*columns, counts[1] / called - het])


def _homozygotes(sums: np.ndarray) -> float:
    """Share of missing calls that are homozygotes, from `_moments_of_excess`."""
    return float(np.linalg.lstsq(sums[:4, :4], sums[:4, 4], rcond=None)[0][3])
