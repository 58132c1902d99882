"""The null model of interactions of sites with an environment, a number of each person.

The products of a set are then those of its sites with the environment (`set_products.py`). Beside
main effects of the sites, the null model has the environment, its square and its products with the
covariates: an environment whose effect is no straight line, or differs between populations, looks
like an interaction with any site that differs with it (Keller 2014, Biol Psychiatry 75:18).
"""

from __future__ import annotations

import numpy as np

from .design import PEOPLE_A_COLUMN, independent_columns

#: Steps of Fisher's scoring, change of a logarithm at which it ends, least part of a step.
STEPS, TOLERANCE, LEAST_LENGTH = 100, 1e-10, 1e-3
#: Largest logarithm of a standard deviation over the mean one.
MOST_LOG = 3.0


def environment_design(
    design: np.ndarray, environment: np.ndarray, people: int
) -> tuple[np.ndarray, int]:
    """A design matrix with the columns of an environment.

    Parameters
    ----------
    design : float64 array, (n_people, n_columns)
        Covariates, NaN where unknown.
    environment : float64 array, (n_people,)
        NaN where unknown, as is the whole row of the result then.
    people : int
        People of the smaller class, or all: each column needs `PEOPLE_A_COLUMN` of them.

    Returns
    -------
    float64 array, int
        The covariates, the environment, its square, and its products with the covariates from the
        left, as many as there is room for; how many there is no room for.
    """
    known = np.isfinite(environment) & np.isfinite(design).all(axis=1)
    e = _standardised(np.where(known, environment, np.nan))
    columns = design.shape[1]
    room = max(
        0, people // PEOPLE_A_COLUMN - columns - 3
    )  # a constant, the environment, its square
    products = _standardised(np.where(known[:, None], design, np.nan))[:, :room] * e[:, None]
    return np.column_stack([design, e, e * e, products]), max(0, columns - room)


def spread_with(environment: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Standard deviation of residuals that an environment predicts, float64 (n,), of geometric mean
    1: a linear model of its logarithm, by Fisher's scoring (Harvey 1976, Econometrica 44:461)."""
    e = _standardised(environment)
    columns = np.column_stack([e, e * e])
    constant = np.ones((len(e), 1))
    kept = independent_columns(constant, columns)  # of two values, one column
    x, _ = np.linalg.qr(np.column_stack([constant, columns[:, kept]]))
    squares = residuals**2
    logs = np.full(len(e), np.log(squares.mean()))
    value = _deviance(squares, logs)
    for _ in range(STEPS):
        step, length = x @ (x.T @ (squares / np.exp(logs) - 1)), 1.0
        while length > LEAST_LENGTH:
            now = _deviance(squares, logs + length * step)
            if now <= value:
                break
            length /= 2
        else:
            break
        logs, value = logs + length * step, now
        if np.abs(step).max() < TOLERANCE:
            break
    return np.exp(np.clip((logs - logs.mean()) / 2, -MOST_LOG, MOST_LOG))


def _deviance(squares: np.ndarray, logs: np.ndarray) -> float:
    """Twice the negative log-likelihood of normal residuals with these logarithms of variances."""
    return float((logs + squares * np.exp(-logs)).sum())


def _standardised(columns: np.ndarray) -> np.ndarray:
    """Columns less their mean over their spread, of known values; 0 where they do not vary."""
    if not columns.size:
        return columns
    left = columns - np.nanmean(columns, axis=0)
    spread = np.nanstd(columns, axis=0)
    largest = np.nanmax(np.abs(columns), axis=0)
    return left / np.where(spread > 1e-12 * largest, spread, np.inf)
