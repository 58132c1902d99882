"""Result files: tables and matrices, written atomically and byte for byte reproducible."""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from .files import atomic_path, require_space

#: Rows that are formatted at once.
CHUNK_ROWS = 16_384
#: Bytes of a text whose lines are counted at once.
PIECE = 1 << 20


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a TSV with a header row; floats with six significant digits, NA where missing.

    Strings are written without quotes, so none may contain a tab or a line end.
    """
    with writing_table(path) as write:
        write(table)


@contextmanager
def writing_table(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """`write_table` in parts: a function that writes one part; the first decides the header."""
    with atomic_path(path) as temporary, open_lines(temporary) as file:
        parts = 0

        def write(part: pd.DataFrame) -> None:
            nonlocal parts
            write_rows(file, part, header=not parts)
            parts += 1

        yield write


def open_lines(path: Path) -> TextIO:
    """Open a text file for writing, the same on every system."""
    return open(path, "w", encoding="utf-8", newline="\n")


def write_rows(
    file: TextIO, table: pd.DataFrame, floats: str = "%.6g", *, header: bool = False
) -> None:
    """Write the rows of a table as lines of tab-separated text, NA where a value is missing.

    The same text as `DataFrame.to_csv`, several times as fast: each line is one `%` operation.

    Parameters
    ----------
    floats : str
        Format of floating-point numbers.
    header : bool
        Whether the names of the columns come first.

    Raises
    ------
    ValueError
        A string contains a tab or a line end.
    """
    if header:
        file.write("\t".join(table.columns) + "\n")
    for first in range(0, len(table), CHUNK_ROWS):
        part = table.iloc[first : first + CHUNK_ROWS]
        formats, columns = zip(*(_formatted(part[name], floats) for name in part), strict=True)
        line = "\t".join(formats) + "\n"
        text = "".join(map(line.__mod__, zip(*columns, strict=True)))
        if text.count("\t") != len(part) * (len(formats) - 1) or "\r" in text:
            raise ValueError(f"a string in {', '.join(part)} contains a tab or a line end")
        if text.count("\n") != len(part):
            raise ValueError(f"a string in {', '.join(part)} contains a line end")
        file.write(text)


def text_of_rows(table: pd.DataFrame, floats: str = "%.6g", *, header: bool = False) -> str:
    """The text that `write_rows` writes."""
    text = io.StringIO()
    write_rows(text, table, floats, header=header)
    return text.getvalue()


def _formatted(column: pd.Series, floats: str) -> tuple[str, list]:
    """Format and values of a column."""
    missing = column.isna().to_numpy()
    number = column.dtype.kind == "f"
    if not missing.any():
        return floats if number else "%s", column.tolist()
    shown = (floats if number else "%s").__mod__
    pairs = zip(column.tolist(), missing.tolist(), strict=True)
    return "%s", ["NA" if absent else shown(value) for value, absent in pairs]


def read_table(path: Path | io.BytesIO) -> pd.DataFrame:
    """Read a TSV as strings exactly as written; NA stays a string."""
    return pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False, quoting=csv.QUOTE_NONE)


def read_columns(path: Path) -> dict[str, list[str]]:
    """Columns of a TSV that `write_table` wrote: the texts that `read_table` gives, sooner."""
    header, _, text = path.read_text("utf-8").partition("\n")
    names = header.split("\t")
    cells = text.replace("\n", "\t").split("\t")[:-1]  # the last line ends too
    return {name: cells[k :: len(names)] for k, name in enumerate(names)}


def read_rows(path: Path, rows: np.ndarray) -> pd.DataFrame:
    """Some rows of a TSV that `write_table` wrote, as `read_table` gives them.

    The others are not parsed, which takes a second for each 300 000 of them.

    Parameters
    ----------
    rows : int array
        Numbers of the rows, from 0 on. IndexError: there is no such row.
    """
    text = np.fromfile(path, np.uint8)
    ends = _line_ends(text, np.unique(np.concatenate([[0], rows, rows + 1])).astype(int))
    chosen = [text[ends[row] : ends[row + 1]] for row in rows.tolist()]
    lines = np.concatenate([text[: ends[0]], *chosen]).tobytes()
    return read_table(io.BytesIO(lines))


def _line_ends(text: np.ndarray, numbers: np.ndarray) -> dict[int, int]:
    """Where some lines of a text end, by their numbers, which ascend from 0; there the next begin.

    Ends are counted piece by piece, and sought only in the pieces that hold these.
    """
    is_end = text == ord("\n")
    pieces = [is_end[first : first + PIECE] for first in range(0, len(text), PIECE)]
    before = np.cumsum([0, *map(np.count_nonzero, pieces)])
    if numbers[-1] >= before[-1]:
        raise IndexError(f"line {numbers[-1]} of {before[-1]}")
    which, found = np.searchsorted(before, numbers, "right") - 1, {}
    for piece in np.unique(which).tolist():
        own = numbers[which == piece]
        ends = PIECE * piece + np.flatnonzero(pieces[piece])[own - before[piece]] + 1
        found |= zip(own.tolist(), ends.tolist(), strict=True)
    return found


def write_npy(path: Path, array: np.ndarray) -> None:
    """Write an array as .npy."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        require_space(path, array.nbytes)
        np.save(file, array)


@contextmanager
def writing_npy(
    path: Path, shape: tuple[int, ...], dtype: np.dtype
) -> Iterator[Callable[[np.ndarray], None]]:
    """`write_npy` in parts: a function that writes the next rows.

    Raises
    ------
    ValueError
        The parts do not make up an array of this shape.
    """
    size = math.prod(shape) * dtype.itemsize
    about = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        require_space(path, size)
        np.lib.format.write_array_header_1_0(file, about)
        start = file.tell()

        def write(part: np.ndarray) -> None:
            file.write(np.ascontiguousarray(part, dtype).data)

        yield write
        if file.tell() - start != size:
            raise ValueError(f"{path}: {file.tell() - start} bytes for an array of {size}")


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write an uncompressed .npz; numpy dates members 1980, so equal arrays give equal bytes."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        require_space(path, sum(np.asarray(a).nbytes for a in arrays.values()))
        np.savez(file, **arrays)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a gzipped text file for writing, without name or time in its header."""
    with (
        atomic_path(path) as temporary,
        open(temporary, "wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=4, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text
