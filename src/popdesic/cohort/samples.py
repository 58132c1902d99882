"""What the checked sample sheet says: populations, sexes, parents, rows in a matrix's order."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..io.tables import read_table
from .parents import NOBODY
from .phenotype import recode_phenotype
from .sheet_text import read_sheet

SEX_CODES = {"1": "M", "2": "F", "0": "NA", "": "NA"}


def read_samples(path: Path, shown: str | None = None) -> pd.DataFrame:
    """The sample sheet, with `row`, its codes as ours: sex M, F or NA, phenotype 0 and 1."""
    shown = str(path) if shown is None else shown
    table = read_sheet(path, shown)
    if "sex" in table:
        table["sex"] = table.sex.replace(SEX_CODES)
    if "phenotype" in table:
        table["phenotype"] = recode_phenotype(table, shown)
    return table


def populations(sheet: Path) -> dict[str, str]:
    """Population of each sample in the sheet; NA where it has none."""
    table = read_samples(sheet)
    column = table.population if "population" in table else ["NA"] * len(table)
    return {name: value or "NA" for name, value in zip(table["sample"], column, strict=True)}


def samples_in_order(sheet: Path, cohorts: list[str]) -> pd.DataFrame:
    """The sheet's rows by cohort in sample order, then by name; all strings."""
    table = read_samples(sheet).drop(columns="row")
    rank = {cohort: i for i, cohort in enumerate(cohorts)}
    keys = list(zip(map(rank.get, table.cohort.tolist()), table["sample"].tolist(), strict=True))
    return table.iloc[sorted(range(len(table)), key=keys.__getitem__)].reset_index(drop=True)


def pedigree(sheet: Path) -> dict[str, tuple[str, str]]:
    """(father, mother) of each sample that has one in the sheet; "" where not known."""
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
    """M or F of each sample whose sex the sheet knows."""
    table = read_samples(sheet)
    if "sex" not in table:
        return {}
    pairs = zip(table["sample"], table.sex, strict=True)
    return {name: sex for name, sex in pairs if sex in ("M", "F")}


def describe_samples(order: Path, sheet: Path) -> pd.DataFrame:
    """What the sheet says of the samples of a matrix, in the matrix's order.

    Returns
    -------
    DataFrame
        `sample`, `cohort`, then the sheet's further columns, all strings.
    """
    described = read_samples(sheet).drop(columns=["row", "cohort"])
    return read_table(order).merge(described, on="sample", how="left", validate="one_to_one")


#: Values that mean "not known" in a sheet.
UNKNOWN = ("", "NA")
