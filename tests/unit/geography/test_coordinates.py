"""Coordinates of the sample sheet: what is accepted, and what is refused in which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.study import make_cohorts, read_config, write_study

from popdesic.core.errors import UserError
from popdesic.geography.coordinates import (
    PLANE,
    SPHERE,
    check_coordinates,
    coordinate_columns,
    has_places,
    read_coordinates,
    remark_on_origin,
)
from popdesic.study.validation import validate_study


def sheet(**columns: list[str]) -> pd.DataFrame:
    n = len(next(iter(columns.values())))
    return pd.DataFrame(
        {"row": range(2, n + 2), "sample": [f"s{k}" for k in range(n)]} | columns, dtype=object
    )


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"latitude": ["1"]}, ["row 1", "'latitude'", "no column 'longitude'"]),
        ({"y": ["1"]}, ["row 1", "'y'", "no column 'x'", "rename"]),
        (
            {"latitude": ["1", "2"], "longitude": ["3", "NA"]},
            ["row 3", "'NA'", "both"],
        ),
        ({"x": [""], "y": ["3"]}, ["row 2", "x of sample 's0' is ''", "NA for both"]),
        ({"latitude": ["95"], "longitude": ["200"]}, ["row 2", "'95'", "-90 to 90"]),
        ({"latitude": ["120"], "longitude": ["50"]}, ["'120'", "longitude is '50'", "exchange"]),
        ({"latitude": ["-95"], "longitude": ["170"]}, ["'-95'", "-90 to 90"]),
        ({"latitude": ["5"], "longitude": ["200.5"]}, ["'200.5'", "write -159.5"]),
        ({"latitude": ["5"], "longitude": ["-181"]}, ["'-181'", "-180 to 180"]),
        ({"latitude": ["52,5"], "longitude": ["13"]}, ["'52,5'", "decimal point: 52.5"]),
        ({"latitude": ["52°30'N"], "longitude": ["13"]}, ["decimal degrees"]),
        ({"latitude": ["inf"], "longitude": ["13"]}, ["'inf'", "decimal degrees"]),
        ({"latitude": ["1e999"], "longitude": ["13"]}, ["'1e999'"]),
        ({"latitude": ["1_0"], "longitude": ["13"]}, ["'1_0'"]),
        ({"x": ["left"], "y": ["13"]}, ["'left'", "a number or NA", "rename"]),
        (
            {"x": ["NA", "1"], "y": ["NA", "1"], "latitude": ["1", "NA"], "longitude": ["1", ""]},
            ["row 3", "x and y", "row 2 has latitude", "one system"],
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(columns, words):
    with pytest.raises(UserError) as error:
        check_coordinates(sheet(**columns), "config/samples.tsv")
    for word in ["config/samples.tsv", *words]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "columns",
    [
        {"other": ["1"]},
        {
            "latitude": ["-90", "90", "+0.5", "NA", ""],
            "longitude": ["-180", "180", "1e1", "", "NA"],
        },
        {"x": ["1e6", "-.5"], "y": ["0", "7."]},
        # A pair of columns that is never used does not mix systems.
        {"x": ["1"], "y": ["2"], "latitude": ["NA"], "longitude": ["NA"]},
    ],
)
def test_what_is_right_passes(columns):
    check_coordinates(sheet(**columns), "config/samples.tsv")


def test_numbers_are_read_and_the_two_ends_of_a_meridian_meet():
    table = sheet(latitude=["1.5", "NA", "90", "0", "-0"], longitude=["180", "", "77", "-180", "0"])
    assert coordinate_columns(table) == SPHERE
    found = read_coordinates(table, SPHERE)
    expected = [[1.5, -180], [np.nan, np.nan], [90, 0], [0, -180], [0, 0]]
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[4, 0])
    unused = sheet(latitude=["NA"], longitude=["NA"], x=["1"], y=["2"])
    assert coordinate_columns(unused) == PLANE
    assert coordinate_columns(sheet(latitude=["NA"], longitude=["NA"])) is None


def test_three_different_places_are_needed():
    assert not has_places(sheet(population=["P", "Q", "R"]))
    assert not has_places(sheet(x=["1", "1.0", "2", "NA"], y=["1", "1", "2", "NA"]))
    assert has_places(sheet(x=["1", "3", "2"], y=["1", "1", "2"]))


def test_null_island_is_remarked():
    table = sheet(latitude=["0", "0.0", "1"], longitude=["0", "0", "0"])
    (remark,) = remark_on_origin(table, "s.tsv")
    assert "2 samples" in remark and "NA" in remark
    assert not remark_on_origin(sheet(x=["0"], y=["0"]), "s.tsv")


def test_a_study_with_a_wrong_coordinate_is_refused_before_any_job(tmp_path):
    folder = write_study(tmp_path, make_cohorts())
    path = folder / "config/samples.tsv"
    lines = path.read_text().splitlines()
    lines = [f"{line}\t{10 + k % 5}\t20" for k, line in enumerate(lines)]
    lines[0] = lines[0].replace("\t10\t20", "\tlatitude\tlongitude")
    path.write_text("\n".join(lines) + "\n")
    _, study, remarks = validate_study(read_config(folder), folder)
    assert has_places(study.samples) and not remarks
    lines[7] = lines[7].rsplit("\t", 2)[0] + "\t120\t50"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        UserError, match=r"config/samples.tsv, row 8: latitude of sample .* swapped"
    ):
        validate_study(read_config(folder), folder)
