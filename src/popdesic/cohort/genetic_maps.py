"""Genetic maps: tables for LD windows in cM, and PLINK maps for Beagle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from ..io.errors import UserError, shorten
from ..io.text import rows_of

#: Required columns of a table for `compare.ld.map`, in any order.
LD_COLUMNS = ("chrom", "pos", "cm")
#: Largest position in VCF and BCF.
MOST_POSITION = 2**31 - 1


def parse_ld_map(text: str, shown: str) -> pd.DataFrame:
    """Parse the table of `compare.ld.map`: whitespace-separated columns with a header.

    Returns
    -------
    DataFrame
        `chrom` (str), `pos` (int64), `cm` (float64, finite), `row` in the file.

    Raises
    ------
    UserError
        A column is missing, a row has more or fewer columns than the header, a position is not
        an integer, or a centimorgan value is not finite.
    """
    rows = list(rows_of(text))
    header = rows[0][1] if rows else []
    if not set(LD_COLUMNS) <= set(header):
        raise UserError(
            f"{shown}, row {rows[0][0] if rows else 1}: a genetic map needs the columns chrom, pos "
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
    """Refuse a contig's rows (`pos`, `cm`, `row`) if a value is below the previous one."""
    for column in ("pos", "cm"):
        values = table[column].to_numpy()
        falls = np.flatnonzero(np.diff(values) < 0)
        if len(falls):
            k = falls[0] + 1
            raise UserError(
                f"{shown}, row {table.row.iloc[k]}: {column} of contig '{contig}' is {values[k]:g} "
                f"after {values[k - 1]:g}, but must not decrease; sort or correct the map."
            )


def parse_plink_map(
    text: str, shown: str, wanted: Callable[[str], bool] = lambda contig: True
) -> pd.DataFrame:
    """Parse a PLINK map: chromosome, identifier, centimorgans, position, no header.

    Lines that begin with '#' and a header as first line are skipped.

    Parameters
    ----------
    wanted : callable
        Whether to read a contig; rows of others are not checked.

    Returns
    -------
    DataFrame
        `chrom`, `cm`, `pos`, `row`.

    Raises
    ------
    UserError
        A row does not have four columns, or a number is not valid.
    """
    kept = []
    for number, words in rows_of(text):
        if words[0].startswith("#") or not wanted(words[0]):
            continue
        if len(words) != 4:
            raise UserError(
                f"{shown}, row {number}: a PLINK map has four columns (chromosome, identifier, "
                f"centimorgans, position), this row has {len(words)}; correct it."
            )
        if number == 1 and _is_word(words[2]) and _is_word(words[3]):
            continue  # the header
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
    """Parse finite numbers as float64; positions must be integers from 0 to MOST_POSITION."""
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
