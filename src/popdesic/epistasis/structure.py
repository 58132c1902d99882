"""What population labels and principal components say about the phenotype, given the model.

If risk differs between populations, sites whose frequencies differ look associated, and pairs of
them can look like interactions. Strata, covariates and components in the null model are the remedy.
Each label is compared with the phenotype twice, by the F test of added columns in a linear
regression: given the strata alone, which is what permutations hold fixed, and given the whole null
model, which is what tests with covariates hold fixed. Silence means that the remedy works.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.phenotype import UNKNOWN
from ..core.tables import read_table
from .design import MOST_PCS, ComponentScores, Design, independent_columns

#: Columns of the sheet that name populations.
LABELS = ("population", "group", "cohort")
#: Largest p of a warning, over the number of comparisons.
LEVEL = 0.01


def structure_table(
    response: np.ndarray,
    design: Design,
    people: pd.DataFrame,
    axes: ComponentScores | None,
) -> pd.DataFrame:
    """Compare the phenotype with labels and components.

    Parameters
    ----------
    response : float64 array, (n_people,)
    design : Design
        Of the null model.
    people : DataFrame
        Rows of the sheet, in the order of the scan.
    axes : Axes, optional
        Components; the significant ones are compared together.

    Returns
    -------
    DataFrame
        `structure` (a column of the sheet, or `components`), `columns` it adds to the strata,
        `p_given_strata`, `p_given_model` (1 where the model contains it).
    """
    used = np.isfinite(design.values).all(axis=1)
    strata = [k for k, name in enumerate(design.names) if name.startswith("stratum=")]
    further: dict[str, np.ndarray] = {}
    for label in LABELS:
        if label in people:
            text = people[label].where(~people[label].isin(UNKNOWN), "NA")
            further[label] = pd.get_dummies(text).to_numpy(float)
    if axes is not None and axes.significant:
        place = {name: row for row, name in enumerate(axes.samples)}
        rows = [place[name] for name in people["sample"]]
        further["components"] = axes.scores[rows][:, : min(axes.significant, MOST_PCS)]
    found = []
    for name, columns in further.items():
        given_strata = _p_of(response[used], design.values[used][:, strata], columns[used])
        given_model = _p_of(response[used], design.values[used], columns[used])
        if given_strata[0]:
            found.append((name, *given_strata, given_model[1]))
    names = ["structure", "columns", "p_given_strata", "p_given_model"]
    return pd.DataFrame(found, columns=names)


def _p_of(y: np.ndarray, base: np.ndarray, columns: np.ndarray) -> tuple[int, float]:
    """Columns that are new beside `base`, and p of their F test; 0 and 1 if none is."""
    from scipy.special import fdtrc

    base = np.column_stack([np.ones(len(y)), base])
    base = base[:, [0, *(1 + k for k in independent_columns(base[:, :1], base[:, 1:]))]]
    added = columns[:, independent_columns(base, columns)]
    freedom = len(y) - base.shape[1] - added.shape[1]
    if not added.shape[1] or freedom < 1:
        return 0, 1.0
    squares = []
    for x in (base, np.concatenate([base, added], axis=1)):
        basis, _ = np.linalg.qr(x)
        rest = y - basis @ (basis.T @ y)
        squares.append(float(rest @ rest))
    gain = (squares[0] - squares[1]) / added.shape[1]
    left = max(squares[1], 1e-300) / freedom
    return added.shape[1], float(fdtrc(added.shape[1], freedom, gain / left))


def structure_warnings(table: pd.DataFrame | Path) -> list[str]:
    """Sentences for the log and the page; none where the null model accounts for the structure.

    `table`: of `structure_table`, or the path of epistasis/structure.tsv.
    """
    if isinstance(table, Path):
        table = read_table(table)
    said, level = [], LEVEL / max(len(table), 1)
    unknown = {"NA": np.nan}  # too few people
    for row in table.replace(unknown).itertuples():
        strata, model = float(row.p_given_strata), float(row.p_given_model)
        what = "principal components" if row.structure == "components" else row.structure
        if model < level:
            said.append(
                f"phenotype and {what} are associated given strata, covariates and components of "
                f"the null model (p = {model:.2g}): differences between populations can look like "
                "interactions; set epistasis.pcs or name covariates that remove them"
            )
        elif strata < level:
            said.append(
                f"phenotype and {what} are associated within the strata (p = {strata:.2g}), but "
                f"not given the null model (p = {model:.2g}): tests with covariates account for "
                "it, permutation p-values and ranks without covariates do not"
            )
    return said


def strata_warnings(samples: pd.DataFrame) -> list[str]:
    """Warnings about strata of one class; see `structure_warnings` for what strata leave."""
    table = pd.crosstab(samples["stratum"], samples["class"])
    if len(table) < 2:
        return []
    single = table.index[(table == 0).any(axis=1)].tolist()
    return [f"all of stratum {name} are of one class: it is never permuted" for name in single]
