"""Covariates of the test of a hit: the part of the log-odds that is not of its sites.

The null model of a hit is a logistic regression on the columns of a design matrix (covariates,
principal components, strata) and on all terms of fewer than k of its sites. What the columns
contribute to a person's log-odds is the offset. Tests take it as known and divide people by it into
at most `MOST_OFFSETS` classes of about equal size, so that their cost does not depend on the number
of people or columns. With strata alone, classes are strata and nothing is approximated.
"""

from __future__ import annotations

import numpy as np

from .design import independent_columns

#: Most classes of offsets.
MOST_OFFSETS = 8
#: Newton steps; change of the log-likelihood, in nats, at which a fit has converged.
STEPS, TOLERANCE = 50, 1e-9
#: Largest offset on the scale of log-odds: a column that separates cases from controls.
MOST_OFFSET = 20.0
#: A direction of the information matrix of this relative size is left out.
NO_INFORMATION = 1e-9


def centred_basis(design: np.ndarray) -> np.ndarray:
    """Orthogonal columns of mean 0 and variance 1 that span the design: float64 (n, rank)."""
    kept = independent_columns(np.ones((len(design), 1)), design)
    centred = design[:, kept] - design[:, kept].mean(axis=0)
    basis, _ = np.linalg.qr(centred / np.linalg.norm(centred, axis=0))
    return basis * np.sqrt(len(design))


def fit_offsets(
    case: np.ndarray, columns: np.ndarray, cell: np.ndarray, terms: np.ndarray
) -> np.ndarray:
    """Each person's part of the log-odds that the columns explain: float64 (n,).

    Parameters
    ----------
    case : bool array, (n,)
    columns : float64 array, (n, n_columns)
        `centred_basis` of a design, or some rows of it; no NaN.
    cell : int64 array, (n,)
        Combination of genotypes of each person.
    terms : float64 array, (n_cells, n_terms)
        Terms of a combination in the model, with the constant.
    """
    from scipy.special import expit

    if not columns.shape[1]:
        return np.zeros(len(case))
    n_columns, n_cells = columns.shape[1], len(terms)
    beta = np.zeros(n_columns + terms.shape[1])
    y, value = case.astype(float), -np.inf
    step = np.zeros_like(beta)
    for _ in range(STEPS):
        for _ in range(20):
            tried = beta + step
            eta = columns @ tried[:n_columns] + (terms @ tried[n_columns:])[cell]
            now = float(y @ eta - np.logaddexp(0, eta).sum())
            if now >= value:
                break
            step /= 2
        else:
            break
        beta, gained, value = tried, now - value, now
        if gained < TOLERANCE:
            break
        p = expit(eta)
        weight = p * (1 - p)
        by_cell = np.bincount(cell, weight, n_cells)
        mixed = np.stack([np.bincount(cell, weight * z, n_cells) for z in columns.T])
        information = np.block(
            [
                [columns.T @ (columns * weight[:, None]), mixed @ terms],
                [terms.T @ mixed.T, terms.T @ (by_cell[:, None] * terms)],
            ]
        )
        gradient = np.concatenate(
            [columns.T @ (y - p), terms.T @ np.bincount(cell, y - p, n_cells)]
        )
        sizes, ways = np.linalg.eigh(information)
        known = sizes > NO_INFORMATION * sizes.max()
        step = ways[:, known] @ ((ways[:, known].T @ gradient) / sizes[known])
        step /= max(1.0, np.abs(columns @ step[:n_columns]).max() / 5)
    return np.clip(columns @ beta[:n_columns], -MOST_OFFSET, MOST_OFFSET)


def offset_classes(offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class of each person, int64 (n,), and the mean offset of each class."""
    values, which = np.unique(np.round(offset, 9), return_inverse=True)
    if len(values) > MOST_OFFSETS:
        edges = np.quantile(offset, np.arange(1, MOST_OFFSETS) / MOST_OFFSETS)
        _, which = np.unique(np.searchsorted(edges, offset, "right"), return_inverse=True)
        values = np.bincount(which, offset) / np.bincount(which)
    return which.astype(np.int64), values


def cells_of(genotypes: np.ndarray) -> np.ndarray:
    """Combination of each person's genotypes, int64 (n,), the last site varying fastest."""
    cell = np.zeros(genotypes.shape[1], np.int64)
    for row in genotypes:
        cell = 3 * cell + row
    return cell


def grouped_table(cell, case, which, n_cells: int, n_offsets: int) -> np.ndarray:
    """Controls and cases, int64 (2, n_cells, n_offsets)."""
    index = (case * n_cells + cell) * n_offsets + which
    counts = np.bincount(index, minlength=2 * n_cells * n_offsets)
    return counts.reshape(2, n_cells, n_offsets)
