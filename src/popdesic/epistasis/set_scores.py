"""Scores of the products of a set: of one test, and what a cohort keeps for others (`sets.py`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SetScores:
    """Scores of the products of a set.

    Attributes
    ----------
    first, second : int64 array, (n_products,)
        Sites of each product; -1 is an environment.
    scale : float64 array, (n_products,)
        Diagonal of D.
    scores : float64 array, (n_products,)
        U; of numbers in units of the residuals' standard deviation.
    eigenvalues : float64 array, (n_eigenvalues,)
        Of D V D.
    variances : float64 array, (n_products,)
        Diagonal of V.
    thirds : float64 array, (n_products,)
        Third cumulants of U of cases and controls, of the products that `leading_products` names;
        0 elsewhere.
    together : float64
        1'D V D 1.
    n_sites : int
        Sites that were tested.
    freedom : int or None
        Degrees of freedom of the residuals of a linear model.
    """

    first: np.ndarray
    second: np.ndarray
    scale: np.ndarray
    scores: np.ndarray
    eigenvalues: np.ndarray
    variances: np.ndarray
    thirds: np.ndarray
    together: float
    n_sites: int
    freedom: int | None


@dataclass(frozen=True)
class SetStatistics:
    """Scores of a set in one cohort, and their covariance, for ALT counts of its sites.

    With a count, 2 less the count has the same null model, and the score of its product the other
    sign. So scores of cohorts with different minor alleles add up.

    Attributes
    ----------
    sites : int64 array, (n_sites,)
        That were tested, ascending; the first is -1 if it is an environment.
    alt : int64 array, (n_sites,)
        ALT alleles in these people.
    spread : float64 array, (n_sites,)
        Standard deviations of the counts.
    i, j : int64 array, (n_products,)
        Places in `sites` of the sites of each product, i < j.
    scores : float64 array, (n_products,)
        U; of numbers in units of the residuals' standard deviation.
    thirds : float64 array, (n_products,)
        Third cumulants of U; 0 for numbers.
    covariance : float64 array, (n_products * (n_products + 1) / 2,)
        Upper triangle of V, by rows.
    n_people : int
    freedom : int or None
        As of `SetScores`.
    """

    sites: np.ndarray
    alt: np.ndarray
    spread: np.ndarray
    i: np.ndarray
    j: np.ndarray
    scores: np.ndarray
    thirds: np.ndarray
    covariance: np.ndarray
    n_people: int
    freedom: int | None
