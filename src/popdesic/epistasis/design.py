"""The design matrix of a scan's null model: strata, covariates and principal components.

It has no constant, one row per person of the scan in the order of its planes, and NaN where a value
is unknown. Columns that depend linearly on the constant and on columns before them are left out.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..cohort.phenotype import UNKNOWN
from ..core.errors import UserError

log = logging.getLogger(__name__)
_WHERE = "config/config.yaml: epistasis"
#: A categorical covariate becomes one column per level; with more levels it is an identifier.
MAX_LEVELS = 30
#: Most principal components that `auto` takes.
MOST_PCS = 20
#: Fewest people (of the smaller class) for each column.
PEOPLE_A_COLUMN = 3
#: Largest deviation of a covariate from its median that stays in its own unit.
LARGEST = (1e-3, 1e5)
#: Numbers that differ by less than this share of their size are the same.
ROUNDING = 4 * float(np.finfo(np.float64).eps)
#: What is left of a dependent column, relative to its length.
NOTHING_LEFT = 1e-8


class Design(NamedTuple):
    """Columns of a null model: values float64 (n_people, n_columns), and their names."""

    values: np.ndarray
    names: list[str]


class ComponentScores(NamedTuple):
    """Principal components of people: scores float64 (n_people, n_components), by sample name.

    `significant` is how many of them `auto` takes.
    """

    samples: list[str]
    scores: np.ndarray
    significant: int


def design_matrix(
    scanned: pd.DataFrame,
    sheet: pd.DataFrame,
    shown: str,
    covariates: list[str],
    axes: ComponentScores | None = None,
    pcs: int | str = "auto",
) -> Design:
    """Columns of the null model of a scan.

    Parameters
    ----------
    scanned : DataFrame
        reorder/samples.tsv: `sample`, `stratum`, `class`; the rows' order is that of the result.
        People of a stratum that has only cases or only controls get NaN: within it, nothing is
        compared.
    sheet : DataFrame
        The sample sheet (`cohort.samples.read_samples`); `shown` is its name in errors.
    covariates : list of str
        Columns of the sheet.
    axes : Axes, optional
        Principal components; without them, none is taken.
    pcs : int or 'auto'
        How many; ``auto``: those that are significant, at most MOST_PCS.

    Returns
    -------
    Design
        Strata first, then covariates, then PC1, ...; as many people as `scanned`.

    Raises
    ------
    UserError
        A covariate is no column, is constant, or follows from the other named covariates; there are
        fewer principal components than asked for.
    """
    people = sheet.set_index("sample").loc[scanned["sample"]].reset_index()
    check_covariates(people, covariates, shown)
    strata = sorted(set(scanned["stratum"]))[1:]
    parts = [
        pd.DataFrame(
            {f"stratum={one}": (scanned["stratum"] == one).to_numpy(float) for one in strata},
            index=people.index,
        )
    ]
    parts += [covariate_columns(people, column, shown) for column in covariates]
    if axes is not None:
        parts.append(_components(scanned["sample"].tolist(), axes, pcs))
    table = pd.concat(parts, axis=1)
    values = table.to_numpy(float).reshape(len(people), -1).copy()
    if (scanned["class"] == "case").any():
        values[of_one_class(scanned["class"] == "case", scanned["stratum"])] = np.nan
    known = np.isfinite(values).all(axis=1)
    kept = independent_columns(np.ones((int(known.sum()), 1)), values[known])
    left_out = [name for k, name in enumerate(table) if k not in kept]
    if left_out:
        log.info(
            "null model: %s follow from the columns before them and are left out",
            ", ".join(left_out),
        )
    return Design(np.ascontiguousarray(values[:, kept]), [table.columns[k] for k in kept])


def _components(samples: list[str], axes: ComponentScores, pcs: int | str) -> pd.DataFrame:
    held = axes.scores.shape[1]
    count = min(axes.significant, MOST_PCS, held) if pcs == "auto" else int(pcs)
    if count > held:
        raise UserError(
            f"{_WHERE}.pcs is {count}, but the study's axes have {held} "
            "components; lower it, or raise embedding.components."
        )
    place = {name: row for row, name in enumerate(axes.samples)}
    rows = [place[name] for name in samples]
    # of length 1, so that no column dwarfs another in a fit
    scores = axes.scores[rows, :count]
    spread = scores.std(axis=0)
    scores = scores / np.where(spread > 0, spread, 1.0)
    return pd.DataFrame(scores, columns=[f"PC{k + 1}" for k in range(count)])


def covariate_columns(samples: pd.DataFrame, column: str, sheet: str) -> pd.DataFrame:
    """Regression columns of a column of the sheet, NaN where unknown.

    Of numbers the median is taken (`evened`); a name such as ``income / 1e+06`` says that they were
    divided. Categories become one column of 0 and 1 per level, except for the
    first level in alphabetical order.

    Raises
    ------
    UserError
        No such column, or too many levels.
    """
    if column not in samples or column in ("sample", "phenotype", "row"):
        raise UserError(
            f"{_WHERE}.covariates names '{column}', which is not a further column of {sheet}; "
            "correct the name or leave it out."
        )
    known = ~samples[column].isin(UNKNOWN)
    numbers = pd.to_numeric(samples[column].where(known), errors="coerce")
    if numbers[known].notna().all():
        values, exponent = evened(numbers.to_numpy(float))
        name = f"{column} / 1e{exponent:+03d}" if exponent else column
        return pd.DataFrame({name: values}, index=samples.index)
    levels = sorted(samples[column][known].unique())
    if len(levels) > MAX_LEVELS:
        raise UserError(
            f"{_WHERE}.covariates names '{column}', which has {len(levels)} different values in "
            f"{sheet}; a covariate has at most {MAX_LEVELS} categories, or is numeric."
        )
    return pd.DataFrame(
        {
            f"{column}={level}": (samples[column] == level).astype(float).where(known)
            for level in levels[1:]
        },
        index=samples.index,
    )


def evened(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers less their median, in a unit in which they are neither huge nor tiny.

    Neither changes what a model with a constant says, but a large offset or a tiny unit would make
    the numbers look constant beside rounding errors.

    Parameters
    ----------
    values : float64 array, (n,)
        NaN where unknown.

    Returns
    -------
    values : float64 array, (n,)
        0 where they do not differ by more than rounding.
    exponent : int
        They were divided by 10 to this power: 0 if the largest then lies within LARGEST.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return values, 0
    middle = np.sort(known)[(len(known) - 1) // 2]  # one of them: differences to it are exact
    found = values - middle
    largest = float(np.abs(known - middle).max())
    if largest <= ROUNDING * abs(middle):
        return found * 0, 0
    if LARGEST[0] <= largest <= LARGEST[1]:
        return found, 0
    exponent = max(int(np.floor(np.log10(largest))), -300)
    return found / 10.0**exponent, exponent


def check_covariates(people: pd.DataFrame, covariates: list[str], shown: str) -> None:
    """Refuse named covariates that cannot be in a model of these people.

    Raises
    ------
    UserError
        One is no column of the sheet, is unknown for everybody, is constant, or follows from those
        named before it.
    """
    where = f"{_WHERE}.covariates names"
    base = np.ones((len(people), 1))
    for column in covariates:
        values = covariate_columns(people, column, shown).to_numpy(float)
        known = np.isfinite(values).all(axis=1)
        if values.shape[1] == 0 or not known.any() or not np.ptp(values[known], axis=0).any():
            text = people[column][~people[column].isin(UNKNOWN)]
            held = f"is '{text.iloc[0]}' for all" if len(text) else "is unknown for all"
            raise UserError(
                f"{where} '{column}', which {held} {len(people)} samples with a phenotype in "
                f"{shown}; leave it out."
            )
        known &= np.isfinite(base).all(axis=1)
        if not independent_columns(base[known], values[known]):
            before = ", ".join(f"'{one}'" for one in covariates[: covariates.index(column)])
            raise UserError(
                f"{where} '{column}', which follows from {before} for every sample of {shown}; "
                "leave one of them out."
            )
        base = np.concatenate([base, values], axis=1)


def check_size(columns: int, smallest: int, what: str) -> None:
    """Refuse a design with fewer than PEOPLE_A_COLUMN people for each column.

    Parameters
    ----------
    columns : int
        Without the constant.
    smallest : int
        People of the smaller class, or people with a number; `what` names them in the error.

    Raises
    ------
    UserError
    """
    if columns * PEOPLE_A_COLUMN > smallest:
        raise UserError(
            f"{_WHERE}.strata and epistasis.covariates give {columns} columns of a regression, too "
            f"many for {smallest} {what} ({PEOPLE_A_COLUMN} a column at least); name fewer "
            "covariates, or strata with fewer groups."
        )


def of_one_class(case: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """People of strata that have cases alone or controls alone: bool (n_people,)."""
    _, number = np.unique(np.asarray(strata, str), return_inverse=True)
    share = np.bincount(number, np.asarray(case, float)) / np.bincount(number)
    return ((share == 0) | (share == 1))[number]


def independent_columns(base: np.ndarray, columns: np.ndarray) -> list[int]:
    """Columns, from the left, that are linearly independent of `base` and the columns before."""
    basis, _ = np.linalg.qr(base)
    kept = []
    for k in range(columns.shape[1]):
        column = columns[:, k]
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)  # repeat to remove rounding errors
        length = float(np.linalg.norm(rest))
        if length > NOTHING_LEFT * max(float(np.linalg.norm(column)), 1.0):
            kept.append(k)
            basis = np.concatenate([basis, rest[:, None] / length], axis=1)
    return kept
