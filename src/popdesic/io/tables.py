"""Result files: tables and matrices, written atomically and the same bytes every time."""

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
    """A TSV with a header row; numbers with six significant digits, NA where missing.

    Texts stand there as they are, without quotes; none may hold a tab or a line end.
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
    """A TSV as strings exactly as written, NA included."""
    return pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False, quoting=csv.QUOTE_NONE)


def write_npy(path: Path, array: np.ndarray) -> None:
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array)


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Uncompressed; numpy dates the members 1980, so the same arrays give the same bytes."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A gzipped text file to write, without name or time in its header."""
    with (
        atomic_path(path) as temporary,
        open(temporary, "wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=4, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text
