"""Result files: tables and matrices, written atomically and byte for byte reproducible."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from .files import atomic_path


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a TSV with a header row; floats with six significant digits, NA where missing.

    Strings are written without quotes, so none may contain a tab or a line end.
    """
    with atomic_path(path) as temporary:
        table.to_csv(
            temporary,
            sep="\t",
            index=False,
            float_format="%.6g",
            na_rep="NA",
            quoting=csv.QUOTE_NONE,
        )


def read_table(path: Path) -> pd.DataFrame:
    """Read a TSV as strings exactly as written; NA stays a string."""
    return pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False, quoting=csv.QUOTE_NONE)


def write_npy(path: Path, array: np.ndarray) -> None:
    """Write an array as .npy."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array)


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write an uncompressed .npz; numpy dates members 1980, so equal arrays give equal bytes."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
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
