"""Read the checked sample sheet: populations, sexes, parents, rows in matrix order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import read_table
from .parents import NOBODY
from .phenotype import recode_phenotype
from .sheet_text import read_sheet

SEX_CODES = {"1": "M", "2": "F", "0": "NA", "": "NA"}
#: Values of the columns `exclude` and `founder` that mean yes, in lower case.
YES = ("yes", "true", "1")


#: Column with the cohort of the sheet, of samples whose column `cohort` names a batch of cohorts.
SHEET_COHORT = "sheet_cohort"


def read_samples(path: Path, shown: str | None = None) -> pd.DataFrame:
    """Read the sample sheet, with `row` and standard codes: sex M, F or NA, phenotype 0 or 1.

    Excluded samples have no row (`split_excluded`).
    """
    shown = str(path) if shown is None else shown
    table, _ = split_excluded(read_sheet(path, shown))
    if "sex" in table:
        table["sex"] = table.sex.replace(SEX_CODES)
    if "phenotype" in table:
        table["phenotype"] = recode_phenotype(table, shown)
    return table


def split_excluded(sheet: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split a sheet by its column `exclude` into samples that stay and samples that leave.

    The samples that stay are those of a sheet that never listed the others: the column `exclude` is
    gone, and an excluded father or mother is unknown. Every reader of the sheet goes through here.

    Parameters
    ----------
    sheet : DataFrame
        As `read_sheet` gives it; without a column `exclude` all samples stay.

    Returns
    -------
    kept, excluded : DataFrames
        Rows in the order of the sheet.
    """
    if "exclude" not in sheet:
        return sheet, sheet.iloc[:0]
    leaves = sheet.exclude.str.lower().isin(YES)
    kept = sheet[~leaves].drop(columns="exclude").reset_index(drop=True)
    gone = set(sheet["sample"][leaves])
    for parent in {"father", "mother"} & set(kept.columns):
        kept[parent] = kept[parent].where(~kept[parent].isin(gone), "")
    return kept, sheet[leaves].reset_index(drop=True)


def excluded_samples(sheet: Path) -> set[str]:
    """Return the names of the samples that the sheet excludes."""
    return set(split_excluded(read_sheet(sheet, str(sheet)))[1]["sample"])


def populations(sheet: Path) -> dict[str, str]:
    """Return the population of each sample in the sheet; NA if it has none."""
    return column_of(sheet, "population")


def column_of(sheet: Path, column: str) -> dict[str, str]:
    """Return what a column of the sheet says of each sample; NA where it says nothing."""
    table = read_samples(sheet)
    values = table[column] if column in table else ["NA"] * len(table)
    return {name: value or "NA" for name, value in zip(table["sample"], values, strict=True)}


def samples_in_order(sheet: Path, cohorts: list[str]) -> pd.DataFrame:
    """Return the sheet's rows by cohort in sample order, then by name; all strings."""
    table = read_samples(sheet).drop(columns="row")
    rank = {cohort: i for i, cohort in enumerate(cohorts)}
    keys = list(zip(map(rank.get, table.cohort.tolist()), table["sample"].tolist(), strict=True))
    return table.iloc[sorted(range(len(table)), key=keys.__getitem__)].reset_index(drop=True)


def pedigree(sheet: Path) -> dict[str, tuple[str, str]]:
    """Return (father, mother) of each sample with a known parent; "" where unknown."""
    table = read_samples(sheet)
    parents = [
        [("" if name in NOBODY else name) for name in table[column]]
        if column in table
        else [""] * len(table)
        for column in ("father", "mother")
    ]
    rows = zip(table["sample"], *parents, strict=True)
    return {name: (father, mother) for name, father, mother in rows if father or mother}


def sexes(sheet: Path) -> dict[str, str]:
    """Return the sex, M or F, of each sample for which the sheet states it."""
    table = read_samples(sheet)
    if "sex" not in table:
        return {}
    pairs = zip(table["sample"], table.sex, strict=True)
    return {name: sex for name, sex in pairs if sex in ("M", "F")}


def describe_samples(order: Path, sheet: Path) -> pd.DataFrame:
    """Return the sheet's rows for the samples of a matrix, in the order of the matrix.

    Returns
    -------
    DataFrame
        `sample`, `cohort`, then the other columns of the sheet, all strings; of samples that were
        read in batches also `sheet_cohort`.
    """
    return join_sheet(read_table(order), read_samples(sheet))


def join_sheet(table: pd.DataFrame, sheet: pd.DataFrame) -> pd.DataFrame:
    """Append the columns of the sheet to a table of samples that has a column `cohort`.

    Where that names a batch of cohorts, the column `sheet_cohort` has the cohort of the sheet.
    """
    own = [name for name in table.columns if name != "sample"]
    described = sheet.rename(columns={"cohort": SHEET_COHORT} if SHEET_COHORT not in sheet else {})
    described = described.drop(columns=["row", *own], errors="ignore")
    joined = table.merge(described, on="sample", how="left", validate="one_to_one")
    if SHEET_COHORT not in sheet and (joined[SHEET_COHORT] == joined.cohort).all():
        joined = joined.drop(columns=SHEET_COHORT)
    return joined


#: Values for unknown in a sheet.
UNKNOWN = ("", "NA")


def unrelated_founders(names: list[pd.Series], unrelated: Path | None) -> list[np.ndarray]:
    """Which samples of each cohort are unrelated founders: bool arrays, all True without a table.

    `unrelated`: `panel/unrelated.tsv`.
    """
    if unrelated is None:
        return [np.ones(len(own), bool) for own in names]
    table = read_table(unrelated)
    chosen = set(table["sample"][table.unrelated == "yes"])
    return [own.isin(chosen).to_numpy() for own in names]


def departed_cohorts(folder: Path, order: Iterable[str]) -> list[str]:
    """Cohorts whose decoded genotypes lie in the results although no sheet has them, sorted."""
    decoded = folder / "results/cohorts"
    found = {path.name for path in decoded.iterdir()} if decoded.is_dir() else set()
    return sorted(name for name in found - set(order) if not name.startswith("."))
