"""Tables as text, beside pandas."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from popdesic.core import tables
from popdesic.core.tables import (
    CHUNK_ROWS,
    read_columns,
    read_rows,
    read_table,
    write_rows,
    write_table,
    writing_table,
)


def drawn(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    some = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "name": rng.choice(["a", "größer", '"quoted"', ""], n),
            "pos": rng.integers(0, 10**9, n),
            "f": rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
            "g": np.where(some, np.nan, rng.random(n)),
            "single": rng.random(n).astype(np.float32),
            "inf": np.where(some, -np.inf, 0.0),
            "flag": some,
            "text": np.where(some, None, "x"),
            "mixed": pd.Series(([1, 2.5, "z", None, np.nan] * n)[:n], dtype=object),
            "small": rng.integers(0, 9, n).astype(np.int8),
            "kind": pd.Categorical(rng.choice(["u", "v"], n)),
        }
    )


@pytest.mark.parametrize("n", [0, 1, 3, CHUNK_ROWS + 1])
@pytest.mark.parametrize("floats", ["%.6g", "%.17g"])
def test_rows_are_those_of_pandas(n, floats):
    table, found = drawn(n), io.StringIO()
    write_rows(found, table, floats, header=True)
    options = {"sep": "\t", "index": False, "na_rep": "NA", "quoting": csv.QUOTE_NONE}
    assert found.getvalue() == table.to_csv(float_format=floats, **options)


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "a\rb"])
def test_text_that_would_break_a_line_is_refused(text):
    with pytest.raises(ValueError, match="contains a"):
        write_rows(io.StringIO(), pd.DataFrame({"x": ["a", text], "y": [1, 2]}))


def test_a_table_in_parts(tmp_path):
    table = drawn(10).astype(object).fillna("NA").astype(str)
    with writing_table(tmp_path / "t.tsv") as write:
        write(table[:4])
        write(table[4:])
    assert read_table(tmp_path / "t.tsv").equals(table)


@pytest.mark.parametrize("piece", [1, 2, 5, 1 << 20])
def test_some_rows_are_those_of_the_table(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(tables, "PIECE", piece)
    path = tmp_path / "t.tsv"
    table = pd.DataFrame({"sample": ["a", "né", "NA", ""], "x": [1.5, 2.0, 3.0, 4.0]})
    write_table(path, table)
    whole = read_table(path)
    for rows in ([0], [1, 3], [3, 0, 2], []):
        found = read_rows(path, np.array(rows, int))
        pd.testing.assert_frame_equal(found, whole.iloc[rows].reset_index(drop=True))
    with pytest.raises(IndexError):
        read_rows(path, np.array([4]))


@pytest.mark.parametrize("n", [0, 1, 50])
def test_columns_are_those_of_the_table(tmp_path, n):
    write_table(tmp_path / "t.tsv", drawn(n))
    table = read_table(tmp_path / "t.tsv")
    expected = {name: table[name].tolist() for name in table}
    assert read_columns(tmp_path / "t.tsv") == expected
