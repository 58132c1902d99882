"""Kinship of people of any ancestry: PC-Relate (Conomos et al. 2016, AJHG 98:127-148).

KING-robust compares two people with each other alone and assumes that both come from one
population. PC-Relate compares each with the genotypes expected for its own ancestry: the ALT
frequency of person i at site s is ``mu_is = b_s0 + b_s1 PC_i1 + ... + b_sk PC_ik``, fitted by
linear regression of genotypes / 2 among unrelated people (the training set). Then

    kinship_ij = sum (g_i - 2 mu_i)(g_j - 2 mu_j) / (4 sum sqrt(mu_i (1 - mu_i) mu_j (1 - mu_j)))

over the sites that are called in both, and at which both frequencies lie within FREQUENCIES. On the
diagonal this is (1 + inbreeding) / 2.

The regression itself biases kinship, which matters with few training samples: those who are fitted
leave smaller residuals, all others share the errors of the fit, and the fit follows their
relatives in the training set. With the linear map R = I - H that turns genotypes into residuals,
and the true kinships K, the expectation is R K R'. The difference R K R' - K is of low rank; it is
subtracted for unrelated people first, then once more with the relatives that were found.

Two alleles of a person whose parents differ in ancestry vary less than ``mu (1 - mu)`` says, so the
formula gives full siblings with parents of two populations (F_ST 0.15) a kinship of 0.23; the same
happens to relatives if axes fit noise. Such people are heterozygous beyond expectation: their
kinship with themselves is below 1/2. All their kinships are therefore divided by the square root of
twice it (at least LEAST_OWN). Inbreeding, above 1/2, changes nothing.

Residuals and spreads are rounded to whole numbers, so that kinships have the same bytes from any
device and any number of threads (`kinship.expected`).

Cost: ``2 n**2 m`` multiplications and additions for n samples and m sites (two symmetric products)
and 8 bytes per ordered pair (tests/bench/bench_relatedness.py --cost). Candidates chosen by
KING-robust would be cheaper, but would miss what PC-Relate is for; fewer sites cost less for all
pairs, and 50 000 spread over the genome are nearly as good as all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from ..core.threads import run_ordered
from ..engine.backend import Backend
from ..io.genotypes import MISSING
from ..io.sites import chunks
from .expect_kinship import expected_kinship
from .expected import FREQUENCIES, SQUARE_BITS, ExpectedKinship
from .resolution import THIRD

#: Sites of one pass, and of one regression: the latter decides the order of sums.
CHUNK_SITES, FIT_SITES = 1_024, 256
#: Most bytes of passes that are made ahead, and bytes of a sample in one of them.
AHEAD_BYTES, PASS_BYTES = 1 << 30, 2 * CHUNK_SITES + 8 * FIT_SITES
#: A site whose missing genotypes leave less than this share of the information about any axis among
#: the training samples is left out.
LEAST_INFORMATION = 0.1
#: A person's alleles vary less than expected if the kinship with itself is this many standard
#: errors below 1/2. LEAST_OWN: least share of the expected variance (contamination gives less).
OWN_ERRORS, LEAST_OWN = 2, 0.6
#: Kinship of relatives in the correction of the fit: third degree, or this many standard errors.
CHANCE = 4
#: What `count_pairs` counts.
COUNTED = ("called", "ibs0", "het_a", "het_b", "both_het", "sites", "opposite")
#: Training samples per coefficient of the regression, at least.
SAMPLES_PER_AXIS = 5

#: ``read(first, last)``: genotypes of these sites, int8 (last - first, n_samples), -1 if missing.
Reader = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Ancestry:
    """Axes of ancestry on which frequencies are regressed.

    Attributes
    ----------
    basis : float64 array, (n_samples, k + 1)
        Constant and components, made orthonormal over the training samples.
    training : bool array, (n_samples,)
    """

    basis: np.ndarray
    training: np.ndarray

    def shares(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What the training samples among `rows` give to the fit of `columns`: (k + 1, n).

        Sum over pairs of basis of the row times kinship.
        """
        fitted = self.training[rows]
        total = np.zeros(self.basis.shape[::-1])
        for axis, own in enumerate(self.basis.T):
            weights = own[rows[fitted]] * values[fitted]
            total[axis] = np.bincount(columns[fitted], weights, minlength=len(self.basis))
        return total

    def bias(self, shares: np.ndarray) -> np.ndarray:
        """What the regression adds to kinship, R K R' - K, see above: float64 (k + 1, n_samples).

        For samples i and j it is the sum over axes of basis_i times this of j, less the shares of
        i times basis_j.

        Parameters
        ----------
        shares : float64 array, (k + 1, n_samples)
            Basis of the training samples times their kinship with all samples.
        """
        twice = shares[:, self.training] @ self.basis[self.training]
        found = -shares
        for axis, own in enumerate(self.basis.T):  # one by one: the same bytes for any samples
            found += twice[:, axis, None] * own
        return found


def ancestry_of(scores: np.ndarray, training: np.ndarray, components: int) -> Ancestry:
    """Axes of ancestry from the first components of a PCA.

    Parameters
    ----------
    scores : float64 array, (n_samples, at least `components`)
    training : bool array, (n_samples,)
        Unrelated people, on whom frequencies are fitted.
    components : int
        Number of components used; fewer if the training set has not SAMPLES_PER_AXIS samples for
        each, or does not vary on one. 0: one population.

    Raises
    ------
    ValueError
        There are fewer than two training samples.
    """
    n_training = int(training.sum())
    if n_training < 2:
        raise ValueError(
            f"{n_training} unrelated samples cannot define allele frequencies; give at least two."
        )
    most = max(0, n_training // SAMPLES_PER_AXIS - 1)
    axes = np.column_stack([np.ones(len(scores)), scores[:, : min(components, most)]])
    with threadpool_limits(1, "blas"):
        _, triangle = np.linalg.qr(axes[training])
        size = np.abs(np.diag(triangle))
        spread = np.sqrt((axes[training] ** 2).sum(axis=0))
        axes = axes[:, size > 1e-8 * np.maximum(spread, np.finfo(float).tiny)]
        _, triangle = np.linalg.qr(axes[training])
        inverse = np.linalg.inv(triangle)
        # Row by row: bit-identical whichever other samples there are.
        return Ancestry(np.stack([row @ inverse for row in axes]), training)


def fit_frequencies(genotypes: np.ndarray, ancestry: Ancestry) -> np.ndarray:
    """Coefficients of the ALT frequency of each site on the axes of ancestry.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n_samples)
        A missing genotype leaves the regression of its site.

    Returns
    -------
    float64 array, (n_sites, k + 1)
        NaN at sites that the called genotypes cannot tell (LEAST_INFORMATION).
    """
    from ..cohort.standard_genotypes_cpu import standard_columns, standard_rows

    basis = ancestry.basis[ancestry.training]
    training, sites = np.flatnonzero(ancestry.training), np.arange(len(genotypes))
    known = np.take(genotypes, training, axis=1)
    everyone = np.arange(len(training))
    counted = standard_columns(
        known, sites, np.tile([0.0, 0.0, 1.0, 2.0], (len(sites), 1)), everyone
    )
    right = counted @ basis / 2
    partly = np.flatnonzero((known == MISSING).any(axis=1))
    if len(partly):
        width = basis.shape[1]
        outer = (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1)
        called = standard_rows(known, partly, np.tile([0.0, 1.0, 1.0, 1.0], (len(partly), 1)))
        information = (called @ outer).reshape(-1, width, width)
        enough = np.linalg.eigvalsh(information)[:, 0] >= LEAST_INFORMATION
        right[partly[~enough]] = np.nan
        use = partly[enough]
        right[use] = np.linalg.solve(information[enough], right[use][:, :, None])[:, :, 0]
    return right


def _sample_frequencies(coefficients: np.ndarray, genotypes: np.ndarray, basis: np.ndarray):
    """Frequencies (n_sites, n) of each sample, 1/2 where they do not count, and where they do."""
    frequency = coefficients @ basis.T
    with np.errstate(invalid="ignore"):
        counts = (frequency >= FREQUENCIES[0]) & (frequency <= FREQUENCIES[1])
    counts &= genotypes != MISSING
    return np.where(counts, frequency, 0.5), counts


@dataclass(frozen=True)
class Kinships:
    """Kinship of all pairs.

    Attributes
    ----------
    pairs : ExpectedKinship
        NaN if no site counts.
    own : float64 array, (n_samples,)
        Kinship of each sample with itself, (1 + inbreeding) / 2, before the kinships were divided:
        below 1/2 if it is heterozygous beyond expectation.
    coefficients : float64 array, (n_sites, k + 1)
        See `fit_frequencies`.
    """

    pairs: ExpectedKinship
    own: np.ndarray
    coefficients: np.ndarray

    def matrix(self) -> np.ndarray:
        """float64 (n_samples, n_samples), symmetric."""
        return self.pairs.matrix()

    def close(self, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and kinship of the pairs of different samples with at least `least`."""
        return self.pairs.close(least)


def pc_relate(read: Reader, n_sites: int, ancestry: Ancestry, backend: Backend) -> Kinships:
    """PC-Relate kinship of all pairs of samples.

    Parameters
    ----------
    read : callable
        See Reader.
    backend : Backend
        Where the products are made. Neither it nor its number of threads changes a byte.
    """
    pairs = expected_kinship(backend, ancestry.basis, n_sites)
    n = len(ancestry.basis)
    coefficients = np.empty((n_sites, ancestry.basis.shape[1]))
    ahead = int(np.clip(AHEAD_BYTES // (PASS_BYTES * max(n, 1)), 1, backend.threads))

    def prepare(bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        genotypes = np.ascontiguousarray(read(*bounds))
        parts = chunks(len(genotypes), FIT_SITES)
        fitted = [fit_frequencies(genotypes[slice(*part)], ancestry) for part in parts]
        return genotypes, np.concatenate(fitted)

    with threadpool_limits(1, "blas"):
        sites = list(chunks(n_sites, CHUNK_SITES))
        for bounds, (genotypes, fitted) in zip(
            sites, run_ordered(prepare, sites, ahead), strict=True
        ):
            coefficients[slice(*bounds)] = fitted
            pairs.add(bounds[0], genotypes, fitted)
        pairs.divide()
        error = _remove_bias(pairs, ancestry)
    own = pairs.own()
    # Without the second condition, chance alone would raise the kinship of everyone.
    beyond = own < 0.5 - OWN_ERRORS * error
    pairs.scale(np.sqrt(np.where(beyond, np.maximum(2 * own, LEAST_OWN), 1.0)))
    return Kinships(pairs, own, coefficients)


def _remove_bias(pairs: ExpectedKinship, ancestry: Ancestry) -> float:
    """Subtract the bias of the regression: for unrelated people, then for the relatives found.

    Returns the standard error of kinship: root mean square over the training samples.
    """
    everyone = np.arange(len(ancestry.training))
    alone = ancestry.shares(everyone, everyone, np.full(len(everyone), 0.5))
    pairs.subtract(ancestry.bias(alone), alone)
    # The fitted are unrelated: their kinships show what is chance.
    squares, count = pairs.squares(ancestry.training)
    error = (squares / max(count, 1)) ** 0.5 / 2.0**SQUARE_BITS
    rows, columns, values = pairs.close(max(THIRD, CHANCE * error))
    related = ancestry.shares(rows, columns, values) + ancestry.shares(columns, rows, values)
    pairs.subtract(ancestry.bias(related), related)
    return error


@dataclass(frozen=True)
class PairCounts:
    """Sums over sites for listed pairs; each array has one entry per pair.

    Attributes
    ----------
    counts : dict of int64 arrays
        ``called``, ``ibs0``, ``het_a``, ``het_b``, ``both_het`` over jointly called sites, as those
        of `engine.terms.KINSHIP`.
    sites : int64 array
        Sites that count for PC-Relate.
    opposite : int64 array
        Opposite homozygotes at these sites.
    expected : float64 array
        Their expected number for unrelated people of the same ancestries.
    het : float64 array
        Expected heterozygotes at these sites, mean of the two people.
    """

    counts: dict[str, np.ndarray]
    sites: np.ndarray
    opposite: np.ndarray
    expected: np.ndarray
    het: np.ndarray

    @property
    def k0(self) -> np.ndarray:
        """Share of the genome at which the two share no allele by descent (Conomos et al. 2016).

        Meaningful for first-degree relatives: 0 for parent and child, 1/4 for full siblings.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.opposite / self.expected


def count_pairs(
    read: Reader,
    ancestry: Ancestry,
    coefficients: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    threads: int = 1,
) -> PairCounts:
    """Counts of the pairs (rows[x], columns[x]) in one more pass over the sites.

    ``read(first, last, people)`` gives the genotypes of some people, int64 (m,), ascending.
    """
    people, place = np.unique(np.concatenate([rows, columns]), return_inverse=True)
    left, right = place[: len(rows)], place[len(rows) :]

    def count(bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whole numbers (7, n_pairs), expected opposite homozygotes and heterozygotes."""
        genotypes, fitted = read(*bounds, people), coefficients[slice(*bounds)]
        frequency, used = _sample_frequencies(fitted, genotypes, ancestry.basis[people])
        counts = np.zeros((len(COUNTED), len(rows)), np.int64)
        expected, het = np.zeros(len(rows)), np.zeros(len(rows))
        for one, last in chunks(len(rows), 2_048):
            i, j, at = left[one:last], right[one:last], slice(one, last)
            a, b = genotypes[:, i], genotypes[:, j]
            both = (a != MISSING) & (b != MISSING)
            opposite = both & (np.abs(a - b) == 2)
            there = used[:, i] & used[:, j]
            hets = both & (a == 1), both & (b == 1), (a == 1) & (b == 1)
            for total, which in zip(
                counts, (both, opposite, *hets, there, opposite & there), strict=True
            ):
                total[at] = which.sum(axis=0)
            p, q = frequency[:, i], frequency[:, j]
            apart = (p * (1 - q)) ** 2 + (q * (1 - p)) ** 2
            expected[at] = np.where(there, apart, 0.0).sum(axis=0)
            het[at] = np.where(there, p * (1 - p) + q * (1 - q), 0.0).sum(axis=0)
        return counts, expected, het

    totals = np.zeros((len(COUNTED), len(rows)), np.int64), np.zeros(len(rows)), np.zeros(len(rows))
    with threadpool_limits(1, "blas"):
        for found in run_ordered(count, chunks(len(coefficients), CHUNK_SITES), min(threads, 4)):
            for total, one in zip(totals, found, strict=True):
                total += one
    counts = dict(zip(COUNTED, totals[0], strict=True))
    sites, opposite = counts.pop("sites"), counts.pop("opposite")
    return PairCounts(counts, sites, opposite, *totals[1:])
