"""Genetic maps: the tables of LD windows in cM, and PLINK's, which Beagle reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from ..io.errors import UserError, shorten
from ..io.text import rows_of

#: Columns that a table for `compare.ld.map` has, among others and in any order.
LD_COLUMNS = ("chrom", "pos", "cm")
#: Largest position: what VCF and BCF can hold.
MOST_POSITION = 2**31 - 1


def parse_ld_map(text: str, shown: str) -> pd.DataFrame:
    """The table of `compare.ld.map`: columns separated by blanks, a header that names them.

    Returns
    -------
    DataFrame
        `chrom` (str), `pos` (int64), `cm` (float64, finite), `row` in the file.

    Raises
    ------
    UserError
        A column is missing, a row has more or fewer than the header, a position is no whole
        number, or a centimorgan no finite one.
    """
    rows = list(rows_of(text))
    header = rows[0][1] if rows else []
    if not set(LD_COLUMNS) <= set(header):
        raise UserError(
            f"{shown}, row {rows[0][0] if rows else 1}: a genetic map has the columns chrom, pos "
            f"and cm; found: {shorten(', '.join(header)) or 'none'}."
        )
    for number, words in rows[1:]:
        if len(words) != len(header):
            raise UserError(
                f"{shown}, row {number}: {len(words)} columns where the header has {len(header)}; "
                "correct the row."
            )
    if len(rows) < 2:
        raise UserError(f"{shown} has a header but no rows; give the map or set it to null.")
    numbers = [number for number, _ in rows[1:]]
    columns = dict(zip(header, zip(*(words for _, words in rows[1:]), strict=True), strict=True))
    return pd.DataFrame(
        {
            "chrom": columns["chrom"],
            "pos": _numbers(columns["pos"], numbers, "pos", shown).astype(np.int64),
            "cm": _numbers(columns["cm"], numbers, "cm", shown),
            "row": numbers,
        }
    )


def require_rising(table: pd.DataFrame, contig: str, shown: str) -> None:
    """Refuse a contig's rows (`pos`, `cm`, `row`) where a value is below the one before it."""
    for column in ("pos", "cm"):
        values = table[column].to_numpy()
        falls = np.flatnonzero(np.diff(values) < 0)
        if len(falls):
            k = falls[0] + 1
            raise UserError(
                f"{shown}, row {table.row.iloc[k]}: {column} of contig '{contig}' is {values[k]:g} "
                f"after {values[k - 1]:g}, but must not fall; sort or correct the map."
            )


def parse_plink_map(
    text: str, shown: str, wanted: Callable[[str], bool] = lambda contig: True
) -> pd.DataFrame:
    """Rows of a PLINK map: chromosome, identifier, centimorgans, position, no header.

    Lines that begin with '#', and a first line with words for both numbers, are no rows.

    Parameters
    ----------
    wanted : callable
        Which contigs to take; others are not looked at.

    Returns
    -------
    DataFrame
        `chrom`, `cm`, `pos`, `row`.

    Raises
    ------
    UserError
        A row has not four columns, or a number that is none.
    """
    kept = []
    for number, words in rows_of(text):
        if words[0].startswith("#") or not wanted(words[0]):
            continue
        if len(words) != 4:
            raise UserError(
                f"{shown}, row {number}: a genetic map of PLINK has four columns (chromosome, "
                f"identifier, centimorgans, position), here are {len(words)}; correct it."
            )
        if number == 1 and _is_word(words[2]) and _is_word(words[3]):
            continue  # names of columns
        kept.append((number, words))
    numbers = [number for number, _ in kept]
    chrom, _, cm, pos = zip(*(words for _, words in kept), strict=True) if kept else ([],) * 4
    return pd.DataFrame(
        {
            "chrom": list(chrom),
            "cm": _numbers(cm, numbers, "centimorgans", shown),
            "pos": _numbers(pos, numbers, "position", shown).astype(np.int64),
            "row": numbers,
        }
    )


def _numbers(texts: Iterable[str], rows: list[int], name: str, shown: str) -> np.ndarray:
    """Finite numbers, float64; positions whole and between 0 and MOST_POSITION."""
    texts = list(texts)
    whole = name.startswith("pos")
    try:
        values = np.array(texts, dtype=np.float64) if texts else np.empty(0)
    except ValueError:
        values = np.array([float(text) if _is_number(text) else np.nan for text in texts])
    good = np.isfinite(values)
    if whole:
        good &= (values >= 0) & (values <= MOST_POSITION) & (values == np.floor(values))
    if not good.all():
        k = int(np.argmin(good))
        what = "a whole number below 2**31" if whole else "a finite number"
        raise UserError(
            f"{shown}, row {rows[k]}: {name} is '{shorten(texts[k])}', but must be {what}; correct "
            "the row."
        )
    return values


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_word(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return True
    return False
