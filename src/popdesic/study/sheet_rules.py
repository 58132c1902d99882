"""What cells, columns and names of the sheets may be; each fault is one sentence (`UserError`)."""

from __future__ import annotations

import difflib
import re
import sys

import pandas as pd

from ..core.errors import UserError, shorten, suggestion

#: Export formats whose readers split names at spaces.
SPACELESS_FORMATS = ("plink", "mibs", "king", "phylip", "eigenvec")


def check_columns(sheet: pd.DataFrame, schema: dict, shown: str) -> None:
    """Check the names of a sheet's columns, and its values by the rule of each column.

    Parameters
    ----------
    sheet : DataFrame
        `row`, the number in the file, and the columns of the sheet, all texts.
    schema : dict
        JSON schema of a row (`core.schemas.load_schema`).
    shown : str
        What messages call the sheet.

    Raises
    ------
    UserError
        A column is missing or unknown; or the first value, by row, that its rule does not allow.
    """
    columns = [column for column in sheet.columns if column != "row"]
    for column in schema["required"]:
        if column not in columns:
            near = difflib.get_close_matches(column, columns, n=1, cutoff=0.5)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            raise UserError(
                f"{shown}, row 1: column '{column}' is missing{hint}; found: {', '.join(columns)}."
            )
    if not schema["additionalProperties"]:
        for column in columns:
            if column not in schema["properties"]:
                raise UserError(
                    f"{shown}, row 1: '{column}' is not a column of this sheet"
                    f"{suggestion(column, schema['properties'])}"
                )
    first, wrong = len(sheet), ""
    for column, rule in schema["properties"].items():
        if column in columns:
            # Check distinct values only: a sheet of a million rows has few, except names.
            bad = _violating(set(sheet[column].tolist()), rule)
            row = int(sheet[column].isin(bad).to_numpy().argmax()) if bad else first
            first, wrong = (row, column) if row < first else (first, wrong)
    if wrong:
        rule, value = schema["properties"][wrong], shorten(sheet[wrong].iloc[first])
        expected = rule["description"].rstrip(".")
        if "enum" in rule:
            expected = f"one of {', '.join(choice for choice in rule['enum'] if choice)}"
        raise UserError(
            f"{shown}, row {sheet.row.iloc[first]}: {wrong} is '{value}'; expected: {expected}."
        )


def _violating(values: set[str], rule: dict) -> list[str]:
    """The texts that violate their column's schema, by its lengths, `enum` and `pattern`."""
    least, most = rule.get("minLength", 0), rule.get("maxLength", sys.maxsize)
    bad = [value for value in values if not least <= len(value) <= most]
    if "enum" in rule:
        bad += values.difference(rule["enum"])
    if "pattern" in rule:
        fits = re.compile(rule["pattern"]).search
        bad += [value for value in values if fits(value) is None]
    return bad


def require_distinct_names(sheet: pd.DataFrame, shown: str) -> None:
    """Refuse names that differ only in case: some file systems treat `EUR` and `eur` as equal."""
    first: dict[str, tuple[str, int]] = {}
    for name, row in zip(sheet.cohort, sheet.row, strict=True):
        other, its_row = first.setdefault(name.casefold(), (name, row))
        if other != name:
            raise UserError(
                f"{shown}, row {row}: cohort '{name}' differs from '{other}' in row {its_row} only "
                "in case, and some file systems would mix up their files; rename it."
            )


def refuse_empty_cohorts(kept: pd.DataFrame, excluded: pd.DataFrame, shown: str, cohorts: str):
    """Refuse a cohort of which every sample is excluded."""
    present = set(kept.cohort.unique())
    for cohort, rows in excluded.groupby("cohort").row:
        if cohort not in present:
            raise UserError(
                f"{shown}, row {rows.iloc[0]}: exclude leaves no sample of cohort '{cohort}' "
                f"({len(rows)} of {len(rows)} excluded); delete the cohort's row in {cohorts} and "
                "its rows here, or keep a sample."
            )


def check_exported_names(samples: pd.DataFrame, config: dict) -> None:
    """Refuse sample names with spaces if an export format cannot represent them."""
    formats = [name for name in SPACELESS_FORMATS if name in config["export"]["formats"]]
    if not formats:  # stop early: every job reads the sheets, which may have a million rows
        return
    for row, name in zip(samples.row, samples["sample"], strict=True):
        if any(letter.isspace() for letter in name):
            raise UserError(
                f"{config['samples']}, row {row}: sample '{name}' has a space in its name, which "
                f"export.formats '{formats[0]}' cannot represent; remove {', '.join(formats)} from "
                "export.formats or rename the sample in its file and here."
            )
