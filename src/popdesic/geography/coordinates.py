"""Coordinates in the sample sheet: `latitude` and `longitude`, or `x` and `y`.

Every job parses the sheets, so this module imports nothing slow.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd

from ..core.errors import UserError, shorten

#: Arrangements of the places, and landscapes drawn without barriers.
PERMUTATIONS = 999

#: Pairs of columns: degrees (WGS84), and a plane in any unit.
SPHERE, PLANE = ("latitude", "longitude"), ("x", "y")
#: Fewest different places that an analysis needs.
LEAST_PLACES = 3
#: Fewest places of a test of isolation by distance; fewer are described.
LEAST_TESTED = 10
#: Values for unknown in a sheet.
UNKNOWN = ("", "NA")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def coordinate_columns(samples: pd.DataFrame) -> tuple[str, str] | None:
    """The pair of columns that tells where samples live; None if no sample has a place."""
    for pair in (SPHERE, PLANE):
        if set(pair) <= set(samples.columns) and not samples[pair[0]].isin(UNKNOWN).all():
            return pair
    return None


def read_coordinates(samples: pd.DataFrame, columns: tuple[str, str]) -> np.ndarray:
    """Coordinates as numbers, float64 (n, 2), NaN where unknown, longitudes from -180 up to 180.

    Parameters
    ----------
    samples : DataFrame of str
        Rows of a checked sheet.
    columns : (str, str)
        From `coordinate_columns`.
    """
    numbers = np.column_stack(
        [
            pd.to_numeric(samples[column].where(~samples[column].isin(UNKNOWN))).to_numpy(float)
            for column in columns
        ]
    )
    if columns == SPHERE:
        numbers[numbers[:, 1] == 180.0, 1] = -180.0  # the same meridian
        numbers[np.abs(numbers[:, 0]) == 90.0, 1] = 0.0  # all longitudes meet in a pole
    return numbers + 0.0  # no negative zero


def has_places(samples: pd.DataFrame) -> bool:
    """Whether the samples come from at least LEAST_PLACES different places."""
    columns = coordinate_columns(samples)
    if columns is None:
        return False
    distinct = samples[list(columns)].drop_duplicates()
    found = read_coordinates(distinct, columns)
    return len(np.unique(found[~np.isnan(found[:, 0])], axis=0)) >= LEAST_PLACES


def check_coordinates(sheet: pd.DataFrame, shown: str) -> None:
    """Check the coordinates of a sample sheet.

    Parameters
    ----------
    sheet : DataFrame of str
        With `row`.
    shown : str
        Name of the sheet in error sentences.

    Raises
    ------
    UserError
        One column of a pair without the other, in the header or in a row; both systems; a value
        that is not a number or, in degrees, out of range.
    """
    for pair in (SPHERE, PLANE):
        present = [column for column in pair if column in sheet]
        if len(present) == 1:
            other = pair[1 - pair.index(present[0])]
            raise UserError(
                f"{shown}, row 1: column '{present[0]}' has no column '{other}' beside it; add it, "
                f"or rename '{present[0]}' if it holds no coordinates."
            )
        if present:
            _check_pair(sheet, pair, shown)
    first = {}
    for pair in (SPHERE, PLANE):
        if set(pair) <= set(sheet.columns):
            known = ~sheet[pair[0]].isin(UNKNOWN).to_numpy()
            if known.any():
                first[pair] = sheet.row.iloc[int(known.argmax())]
    if len(first) == 2:
        raise UserError(
            f"{shown}, row {first[PLANE]}: x and y are given, but row {first[SPHERE]} has latitude "
            "and longitude; use one system for the whole study."
        )


def _check_pair(sheet: pd.DataFrame, pair: tuple[str, str], shown: str) -> None:
    """Check the values of a pair; each distinct pair once, because many samples share a place."""
    columns = [sheet[column].tolist() for column in pair]
    problems = {
        values: problem
        for values in set(zip(*columns, strict=True))
        if (problem := _problem(values, pair))
    }
    if not problems:
        return
    for row, name, values in zip(
        sheet.row, sheet["sample"], zip(*columns, strict=True), strict=True
    ):
        if values in problems:
            column, way_out = problems[values]
            value = shorten(values[pair.index(column)])
            raise UserError(
                f"{shown}, row {row}: {column} of sample '{shorten(name)}' is '{value}'; {way_out}."
            )


def _problem(values: tuple[str, str], pair: tuple[str, str]) -> tuple[str, str] | None:
    """Column and way out of what is wrong with a pair of values, if anything is."""
    known = [value not in UNKNOWN for value in values]
    if not any(known):
        return None
    if not all(known):
        missing = known.index(False)
        return pair[missing], f"give it, as {pair[1 - missing]} is known, or write NA for both"
    for column, value in zip(pair, values, strict=True):
        if not _NUMBER.fullmatch(value) or not math.isfinite(float(value)):
            return column, _way_to_a_number(column, value)
    if pair == PLANE:
        return None
    latitude, longitude = map(float, values)
    if abs(latitude) > 90 and abs(longitude) <= 90 and abs(latitude) <= 180:
        return (
            "latitude",
            f"latitudes lie between -90 and 90, and longitude is '{shorten(values[1])}': exchange "
            "the two columns if they are swapped",
        )
    if abs(latitude) > 90:
        return "latitude", "write degrees north of the equator, from -90 to 90, or NA"
    if 180 < longitude <= 360:
        return "longitude", f"count from -180 to 180, east positive: write {longitude - 360:g}"
    if abs(longitude) > 180:
        return "longitude", "write degrees east of Greenwich, from -180 to 180, or NA"
    return None


def _way_to_a_number(column: str, value: str) -> str:
    if _NUMBER.fullmatch(value.replace(",", ".", 1)):
        return f"write a decimal point: {value.replace(',', '.', 1)}"
    if column in SPHERE:
        return "write decimal degrees such as 52.52 or -0.13 (south and west negative), or NA"
    return f"write a number or NA, or rename the columns if '{column}' holds no coordinates"


def remark_on_origin(samples: pd.DataFrame, shown: str) -> list[str]:
    """A remark if samples lie at exactly 0, 0 degrees, which often stands for unknown."""
    columns = coordinate_columns(samples)
    if columns != SPHERE:
        return []
    count = int((read_coordinates(samples, columns) == 0).all(axis=1).sum())
    if not count:
        return []
    return [
        f"{shown}: {count} samples lie at latitude 0, longitude 0, in the Gulf of Guinea; if their "
        "place is unknown, write NA for both."
    ]
