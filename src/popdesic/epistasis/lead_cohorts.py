"""The effect of a lead in each cohort, in the direction that other people gave.

Given all combinations of fewer sites and the covariates, let U be the scores of the 3^k genotypes
of a lead of k sites in a logistic model, and V their covariance. The people who discovered it give
a direction w = (V + I)^-1 U: log-odds of the genotypes, each with a prior deviation of 1, so that
rare genotypes do not decide. In another cohort b = w'U / w'Vw, with variance 1 / w'Vw: 1 is an
effect as large as in the discovery, 0 none. Its test is one-sided. As w depends on other people, it
holds whatever was selected there. Cohorts are combined as those of sets (`set_cohorts`).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .design import independent_columns
from .phantoms import fit_logistic
from .set_cohorts import CohortEffect

UNTESTED = CohortEffect(*(float("nan"),) * 3)


def lead_scores(
    genotypes: np.ndarray, case: np.ndarray, covariates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all genotypes of a lead, float64 (3^k,), and their covariance.

    Parameters
    ----------
    genotypes : int8 array, (k, n_samples)
        ALT counts; people with a missing one (-1) are left out.
    case : bool array, (n_samples,)
    covariates : float64 array, (n_samples, n_columns)
        Without the constant; known.
    """
    used = (genotypes >= 0).all(axis=0)
    sites, y = genotypes[:, used].astype(np.int64), case[used].astype(float)
    k = len(sites)
    if len(np.unique(y)) < 2:
        return np.zeros(3**k), np.zeros((3**k, 3**k))
    fewer = [_indicators(sites[list(group)]) for group in combinations(range(k), k - 1)]
    null = np.concatenate([np.ones((len(y), 1)), covariates[used], *fewer], axis=1)
    null = null[:, independent_columns(null[:, :0], null)]
    _, residuals, weights = fit_logistic(null, y)
    own = _indicators(sites)
    root = np.sqrt(weights)[:, None]
    basis, sizes, _ = np.linalg.svd(root * null, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    rest = root * own
    rest -= basis @ (basis.T @ rest)
    return own.T @ residuals, rest.T @ rest


def _indicators(sites: np.ndarray) -> np.ndarray:
    """One column for each combination of genotypes, float64 (n_samples, 3^k)."""
    cell = np.zeros(sites.shape[1], np.int64)
    for row in sites:
        cell = 3 * cell + row
    return np.eye(3 ** len(sites))[cell]


def lead_direction(scores: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """w, float64 (3^k,), of the people who discovered a lead."""
    return np.linalg.solve(covariance + np.eye(len(scores)), scores)


def lead_effect(scores: np.ndarray, covariance: np.ndarray, direction: np.ndarray) -> CohortEffect:
    """The effect of a direction in other people; NaN if they say nothing of it."""
    from scipy.special import ndtr

    variance = float(direction @ covariance @ direction)
    if not variance > 1e-9:
        return UNTESTED
    u = float(direction @ scores)
    return CohortEffect(u / variance, variance**-0.5, float(ndtr(-u / variance**0.5)))
