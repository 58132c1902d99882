"""Sheets as text: tab-separated tables with a header, read as written.

Nothing is interpreted. Ambiguous or invisible content is refused, with its row.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError, shorten
from ..core.files import is_file, path_exists
from ..core.schemas import load_schema

#: Columns that results add to those of the sheet: the same name would appear twice.
RESERVED = ("row", "call_rate", "heterozygosity", "keep", "left_out")
#: Coordinate columns in the tables of maps.
COORDINATE = re.compile(r"(PC|PCo|UMAP|densMAP|tSNE)[0-9]+")
#: Common synonyms of column names; only the names in the schema have a meaning.
OTHER_NAMES = {
    "population": ("pop", "populations", "popname", "population_name"),
    "group": ("super_population", "superpopulation", "super_pop", "superpop", "groups"),
    "sex": ("gender", "sexe", "sex_code"),
    "phenotype": ("pheno", "phenotypes", "affection", "affection_status", "case_control"),
    "exclude": ("excluded", "exclusion", "withdrawn", "remove", "removed"),
    "father": ("dad", "father_id", "paternal_id", "pat", "sire"),
    "mother": ("mom", "mum", "mother_id", "maternal_id", "mat", "dam"),
    "latitude": ("lat", "lattitude"),
    "longitude": ("lon", "long", "lng", "longtitude"),
}
#: Similarity, from 0 to 1, above which a column name may be a misspelling.
ALIKE = 0.82
#: Control characters and line separators, which are invisible and not allowed in cells.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_LINE_END = re.compile("\r\n|\r|\n")
#: First bytes of files that are not plain text, and their kind.
NO_TEXT = {
    b"PK\x03\x04": "a spreadsheet",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"\x1f\x8b": "compressed",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


def read_sheet(path: Path, shown: str) -> pd.DataFrame:
    """Read a TSV as strings, nothing interpreted, with `row` = line number in the file.

    Lines end in LF, CRLF or CR; blank lines are skipped; spaces around values are removed.

    Raises
    ------
    UserError
        The file is missing, not UTF-8 text, or not a table with a name for each column.
    """
    text = read_sheet_text(path, shown)
    if plain := _split_plain(text):
        header, columns = plain
        _check_header(header, [], shown)
        numbers = np.arange(2, len(columns[0]) + 2)
        return pd.DataFrame(
            {"row": numbers}
            | {n: pd.Series(c, dtype=str) for n, c in zip(header, columns, strict=True)}
        )
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise UserError(f"{shown} is empty; it needs a header row and at least one row.")
    rows = [(number, line.split("\t")) for number, line in lines]
    numbers, cells = [n for n, _ in rows[1:]], [values for _, values in rows[1:]]
    header = [name.strip(" ") for name in rows[0][1]]
    _check_header(header, cells, shown)
    for number, values in zip(numbers, cells, strict=True):
        if len(values) != len(header):
            over = [value.strip() for value in values[len(header) :]]
            way_out = "columns are separated by single tabs."
            if over and not any(over):
                way_out = "the last ones are empty, so delete the empty columns of the spreadsheet."
            raise UserError(
                f"{shown}, row {number}: {len(values)} columns where the header has {len(header)}; "
                f"{way_out}"
            )
    if not cells:
        raise UserError(f"{shown} has a header but no rows; add at least one.")
    columns = zip(header, zip(*cells, strict=True), strict=True)
    return pd.DataFrame(
        {"row": numbers}
        | {name: _stripped(name, column, numbers, shown) for name, column in columns}
    )


def _split_plain(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Header and columns of a text in which there is nothing to strip, skip or refuse.

    None for any other text, which is then read line by line. A sheet of a million rows is read in a
    quarter of the time; equal values of a column share one object.
    """
    text = text.removesuffix("\n")
    at_borders = (" \t", "\t ", " \n", "\n ", "\n\n", "\n\t", '"', "\r")
    if not text.isascii() or any(pair in text for pair in at_borders) or text != text.strip():
        return None
    header = text[: text.find("\n")].split("\t")
    raw = np.frombuffer(text.encode(), np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    tabs = np.searchsorted(np.flatnonzero(raw == ord("\t")), [*ends, len(raw)])
    if not len(ends) or "" in header or (np.diff(tabs, prepend=0) != len(header) - 1).any():
        return None
    cells = text.replace("\n", "\t").split("\t")[len(header) :]
    columns = []
    for k in range(len(header)):
        column, pool = cells[k :: len(header)], {}
        columns.append(list(map(pool.setdefault, column, column)))
    return header, columns


def read_sheet_text(path: Path, shown: str) -> str:
    if not is_file(path):
        there = "is not a file" if path_exists(path) else "does not exist"
        raise UserError(f"{shown} {there}; create it or correct its path in the config.")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{shown} cannot be read ({error.strerror}); correct its permissions."
        ) from None
    for start, kind in NO_TEXT.items():
        if raw.startswith(start):
            raise UserError(f"{shown} is {kind}; save it as tab-separated text in UTF-8.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = len(_LINE_END.findall(raw[: error.start].decode("utf-8", "replace"))) + 1
        raise UserError(
            f"{shown}, row {row}: not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from None
    if found := _CONTROL.search(text):
        row = len(_LINE_END.findall(text, 0, found.start())) + 1
        raise UserError(
            f"{shown}, row {row}: the control character U+{ord(found[0]):04X} is not allowed in a "
            "table; delete it, or save the sheet as UTF-8 text."
        )
    return text


def _check_header(header: list[str], cells: list[list[str]], shown: str) -> None:
    """Refuse columns without a name or with a reserved or repeated name."""
    repeated = [name for name in header if name and header.count(name) > 1]
    if repeated:
        raise UserError(f"{shown}, row 1: column '{repeated[0]}' appears twice; rename one.")
    if "" in header:
        number = header.index("")
        empty = not any(values[number].strip() for values in cells if len(values) > number)
        raise UserError(
            f"{shown}, row 1: column {number + 1} has no name"
            f"{' and no values; delete the empty column' if empty else '; name it'}."
        )
    for name in header:
        if problem := _unseen(name):
            raise UserError(f"{shown}, row 1: the column name '{name}' {problem}.")
        if name in RESERVED or COORDINATE.fullmatch(name):
            raise UserError(
                f"{shown}, row 1: the column name '{name}' is reserved, because the results have "
                f"a column of this name; rename it (reserved are {', '.join(RESERVED)} and "
                "coordinates such as PC1, PCo1, UMAP1)."
            )
    if len(header) == 1:
        raise UserError(
            f"{shown}, row 1: only one column, '{shorten(header[0])}'; columns are separated by "
            "tabs, not by spaces or commas."
        )


def _unseen(text: str) -> str:
    """Describe an invisible character at an end of a text, or quotes around it; else ""."""
    for letter, where in ((text[:1], "begins"), (text[-1:], "ends")):
        if letter and unicodedata.category(letter) in ("Zs", "Cf"):
            return f"{where} with U+{ord(letter):04X}, which is invisible; delete it"
    if len(text) > 1 and text[0] == text[-1] == '"':
        return "is in quotes; save the sheet without quotes around its cells"
    return ""


def _stripped(name: str, column: tuple[str, ...], rows: list[int], shown: str) -> pd.Series:
    """Return a column without spaces around its values; equal values share one object."""
    distinct = {value: value.strip(" ") for value in set(column)}
    # ASCII text has no invisible characters, and most sheets are ASCII.
    unusual = (value for value, text in distinct.items() if not text.isascii() or text[:1] == '"')
    problems = {value: problem for value in unusual if (problem := _unseen(distinct[value]))}
    if problems:
        k = next(k for k, value in enumerate(column) if value in problems)
        raise UserError(
            f"{shown}, row {rows[k]}: {name} is '{shorten(distinct[column[k]])}', which "
            f"{problems[column[k]]}."
        )
    return pd.Series(list(map(distinct.__getitem__, column)), dtype=str)


def unrecognised_columns(columns: Iterable[str], shown: str) -> list[str]:
    """Return a remark for each column of the sample sheet that may be a misspelt known column."""
    meant = [name for name in load_schema("samples")["properties"] if name not in columns]
    others = {other: name for name, some in OTHER_NAMES.items() for other in some}
    remarks = []
    for column in columns:
        if column in load_schema("samples")["properties"]:
            continue
        word = re.sub(r"[\s.-]+", "_", column.casefold())[:100]
        near = others.get(word) or next(
            iter(difflib.get_close_matches(word, meant, n=1, cutoff=ALIKE)), None
        )
        if near in meant:
            remarks.append(
                f"{shown}, row 1: the column '{shorten(column)}' is read as a label of your own; "
                f"if '{near}' is meant, rename it (recognised are "
                f"{', '.join(load_schema('samples')['properties'])})."
            )
    return remarks
