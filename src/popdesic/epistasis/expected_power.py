"""Power of the test of the interaction where counts are large, from its expected table."""

from __future__ import annotations

import numpy as np

from .interaction import degrees_of_freedom, interaction_statistics

#: Family-wise error rate of a scan.
ALPHA = 0.05
#: Studies simulated for each model.
DRAWN = 2000
#: People of the expected table, as its counts have to be integers: LR is proportional to them.
EXPECTED = 2**36


def cell_probabilities(maf: list[float], penetrance: list[float]) -> np.ndarray:
    """Shares of the genotype combinations among controls and among cases, float64 (2, 3**k).

    Sites are independent and in Hardy-Weinberg proportions. `penetrance` is the probability of
    being a case, by minor allele counts, the last site varying fastest.
    """
    shares = np.ones(1)
    for q in maf:
        shares = np.multiply.outer(shares, [(1 - q) ** 2, 2 * q * (1 - q), q * q]).ravel()
    risk = np.asarray(penetrance, np.float64)
    by_class = np.stack([shares * (1 - risk), shares * risk])
    return by_class / by_class.sum(axis=1, keepdims=True)


def chi_square_power(alpha: float, freedom: int, noncentral: float) -> float:
    """Power of a test whose statistic is chi-square, non-central if there is an effect."""
    from scipy.special import chdtri, chndtr

    return float(1 - chndtr(chdtri(freedom, alpha), freedom, noncentral))


def expected_interaction(cells: np.ndarray, n_controls: int, n_cases: int) -> tuple[float, int]:
    """LR of the expected table and its degrees of freedom: the excess over all smaller effects."""
    n = n_controls + n_cases
    shares = np.array([[n_controls], [n_cases]]) / n * cells
    sides = (3,) * round(np.log(cells.shape[1]) / np.log(3))
    counts = np.rint(shares * EXPECTED).astype(np.int64).reshape(2, *sides)
    excess = float(interaction_statistics(counts[None])[0]) * n / EXPECTED
    return excess, degrees_of_freedom(counts)


def interaction_power(cells: np.ndarray, n_controls: int, n_cases: int, alpha: float) -> float:
    """Power of the likelihood-ratio test of the interaction; `alpha` if there is none."""
    excess, freedom = expected_interaction(cells, n_controls, n_cases)
    if not freedom:
        return 0.0
    return chi_square_power(alpha, freedom, excess)


def power_curve(
    cells: np.ndarray, n_controls: int, n_cases: int, alpha: float, people: np.ndarray
) -> np.ndarray:
    """`interaction_power` of studies of other sizes with the same share of cases, float64 (n,).

    `people`: their numbers of people. The non-centrality is proportional to it.
    """
    excess, freedom = expected_interaction(cells, n_controls, n_cases)
    per_person = excess / (n_controls + n_cases)
    if not freedom:
        return np.zeros(len(people))
    return np.array([chi_square_power(alpha, freedom, per_person * n) for n in people.tolist()])
