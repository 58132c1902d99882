"""Phenotypes and covariates that users pass in, as columns of a null model."""

from __future__ import annotations

import warnings

import numpy as np

from ..epistasis.design import evened, independent_columns
from .arrays import ArrayLike, host_array


def response_kind(response: np.ndarray) -> str:
    """Kind of the null model of a phenotype: logistic for 0 and 1, linear for other numbers.

    `response`: float64 (n_samples,), all known.

    Raises
    ------
    ValueError
        There is one value alone, or two that are not 0 and 1.
    """
    values = np.unique(response)
    if len(values) < 2:
        raise ValueError(f"phenotype has {len(values)} different values; give at least two.")
    if values.tolist() == [-1, 0, 1]:
        raise ValueError("phenotype has -1 beside 0 and 1; give NaN for an unknown one.")
    if len(values) == 2 and values.tolist() != [0, 1]:
        raise ValueError(
            f"phenotype has the two values {values[0]:g} and {values[1]:g}; give 1 (case) and 0 "
            "(control), or numbers."
        )
    return "logistic" if len(values) == 2 else "linear"


def known_covariates(given: ArrayLike | None, known: np.ndarray) -> np.ndarray:
    """Columns of a null model: float64 (n_samples, n_columns), NaN where unknown.

    Those that say nothing among the samples with a phenotype (`known`, bool (n_samples,)), or
    follow from columns before them, are left out with a warning.
    """
    if given is None:
        return np.zeros((len(known), 0))
    given = given if isinstance(given, np.ma.MaskedArray) else host_array(given)
    width = given.shape[1] if given.ndim == 2 else 1
    values = number_array(given, (len(known), width), "covariates")
    used = known & np.isfinite(values).all(axis=1)
    values = np.where(used[:, None], values, np.nan)
    for k in range(width):
        values[:, k], _ = evened(values[:, k])
    kept = independent_columns(np.ones((int(used.sum()), 1)), values[used])
    if used.any():
        for k in sorted(set(range(width)) - set(kept)):
            why = "is a linear combination of the columns before it"
            if not values[used, k].any():
                why = "is constant over the samples tested"
            warnings.warn(f"covariates[:, {k}] {why}; it is left out.", stacklevel=3)
    return values[:, kept]


def number_array(given: ArrayLike, shape: tuple[int, ...], name: str) -> np.ndarray:
    """An array of numbers as float64, NaN where masked."""
    array = given if isinstance(given, np.ma.MaskedArray) else host_array(given)
    if array.shape != shape:
        raise ValueError(f"the array of {name} has the shape {array.shape}; give {shape}.")
    if array.dtype.kind not in "iubf":
        raise ValueError(f"the array of {name} is of type {array.dtype}; give numbers.")
    found = np.ma.filled(np.ma.asarray(array, float), np.nan).astype(float)
    if np.isinf(found).any():
        where = ", ".join(map(str, np.argwhere(np.isinf(found))[0]))
        raise ValueError(f"{name}[{where}] is infinite; give numbers, and NaN where unknown.")
    return found
