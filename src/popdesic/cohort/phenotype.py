"""Phenotypes of a sample sheet: 1 (case), 0 (control), a quantitative value, or unknown.

PLINK codes controls as 1, cases as 2 and missing as 0 or -9. A column of 1 and 2 is recoded; codes
for missing are refused, because they would count as values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..core.errors import UserError

#: Values for an unknown phenotype in a sheet.
UNKNOWN = ("NA", "")
#: PLINK's code for a missing phenotype.
PLINK_MISSING = -9.0
#: PLINK's codes for controls and cases, and ours.
PLINK_CODES = {1.0: "0", 2.0: "1"}


def recode_phenotype(samples: pd.DataFrame, shown: str) -> pd.Series:
    """Return the column `phenotype` of a sample sheet, with PLINK's 1/2 recoded to 0/1.

    Parameters
    ----------
    samples : DataFrame of str
        `sample`, `phenotype` and, if read from a file, `row`. NA and "" are unknown.
    shown : str
        Name of the sheet in error sentences.

    Returns
    -------
    Series of str
        As given, unless the known values are exactly 1 and 2: then 1 becomes "0" and 2 "1".

    Raises
    ------
    UserError
        A value is not a finite number; it is -9; or it is 0 in a column of PLINK's 1 and 2, where
        it means missing.
    """
    column = samples["phenotype"]
    number = {text: _number(text) for text in set(column.tolist()) if text not in UNKNOWN}
    kinds = set(number.values())
    coded = 2.0 in kinds and kinds <= {0.0, 1.0, 2.0}
    for text, value in number.items():
        if not math.isfinite(value):
            _refuse(samples, text, shown, "give 1 (case), 0 (control), a number or NA")
        if value == PLINK_MISSING:
            _refuse(samples, text, shown, "this is PLINK's code for missing: write NA instead")
        if value == 0 and coded:
            way = "beside 1 and 2 this is PLINK's code for missing: write NA instead (or 0 for "
            _refuse(samples, text, shown, f"{way}controls and 1 for cases in the whole column)")
    if kinds != set(PLINK_CODES):
        return column
    return column.map({text: PLINK_CODES[value] for text, value in number.items()}).fillna(column)


def of_phenotype(samples: pd.DataFrame, phenotype: str, shown: str) -> pd.DataFrame:
    """The rows of a sheet with the column `phenotype` as their phenotype, recoded; "": as they are.

    Raises
    ------
    UserError
        There is no such column, or as `recode_phenotype`.
    """
    if not phenotype:
        return samples
    if phenotype not in samples:
        raise UserError(
            f"config/config.yaml: epistasis.phenotypes names '{phenotype}', which is not a column "
            f"of {shown}; name columns of phenotypes."
        )
    renamed = samples.assign(phenotype=samples[phenotype])
    return renamed.assign(phenotype=recode_phenotype(renamed, f"{shown}, column {phenotype}"))


def known_numbers(column: pd.Series) -> np.ndarray:
    """Return a recoded column as numbers, float64 (n,), NaN where unknown."""
    return pd.to_numeric(column.where(~column.isin(UNKNOWN)), errors="coerce").to_numpy(float)


def is_quantitative(samples: pd.DataFrame, transform: str) -> bool:
    """Whether scans read the phenotype as a number: more than two values, not cut at the median."""
    if transform == "median" or "phenotype" not in samples:
        return False
    values = known_numbers(recode_phenotype(samples, "the sample sheet"))
    return len(np.unique(values[~np.isnan(values)])) > 2


def case_control(samples: pd.DataFrame, shown: str) -> pd.Series | None:
    """Class by sample: 0 control, 1 case; None unless the known phenotypes are exactly 0 and 1.

    Samples without a phenotype have no entry.

    Raises
    ------
    UserError
        As `recode_phenotype`.
    """
    if "phenotype" not in samples:
        return None
    values = pd.Series(known_numbers(recode_phenotype(samples, shown)), samples["sample"])
    known = values.dropna()
    return known.astype(np.int64) if set(known) == {0.0, 1.0} else None


def case_controls(
    samples: pd.DataFrame, phenotypes: Sequence[str], shown: str
) -> dict[str, pd.Series | None]:
    """`case_control` of each of some phenotypes; "" stands for `phenotype` alone."""
    return {
        name or "phenotype": case_control(of_phenotype(samples, name, shown), shown)
        for name in phenotypes
    }


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _refuse(samples: pd.DataFrame, text: str, shown: str, way_out: str) -> None:
    first = samples[samples["phenotype"] == text].iloc[0]
    where = f"{shown}, row {first['row']}" if "row" in samples else shown
    raise UserError(f"{where}: phenotype of sample '{first['sample']}' is '{text}'; {way_out}.")
