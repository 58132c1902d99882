"""Symmetric matrices on disk: the upper triangle alone, read as rows of the whole.

The file is a one-dimensional `.npy` of runs of BLOCK rows, each from the run's first column to the
last one. Rows of the whole matrix are put together when they are read. Of int32 numbers that lie
within a range of 16 bits (`narrow`), the file has uint16 and, in its last four entries, the int64
that is added to them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .files import atomic_path, require_space

#: Rows of a run: of columns that are read as rows, a cache holds the lines.
BLOCK = 256
#: Entries of uint16 that hold an int64.
TAIL = 4


def _runs(n: int) -> Iterator[tuple[int, int, int]]:
    """First and last row of each run, and where its numbers begin in the file."""
    start = 0
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        yield first, last, start
        start += (last - first) * (n - first)


def triangle_size(n: int) -> int:
    """Numbers in the file of a matrix of so many rows."""
    return sum((last - first) * (n - first) for first, last, _ in _runs(n))


def write_triangle(path: Path, matrix: np.ndarray) -> None:
    """Write the upper triangle of a symmetric matrix, (n, n), in the matrix's number type."""
    n, least = len(matrix), least_of_narrow(matrix)
    dtype = matrix.dtype if least is None else np.dtype(np.uint16)
    size = triangle_size(n) + (0 if least is None else TAIL)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        require_space(path, size * dtype.itemsize)
        descr = np.lib.format.dtype_to_descr(dtype)
        about = {"descr": descr, "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(file, about)
        for first, last, _ in _runs(n):
            part = matrix[first:last, first:]
            file.write(np.ascontiguousarray(narrow(part, least)).data)
        if least is not None:
            file.write(np.int64(least).tobytes())


def least_of_narrow(matrix: np.ndarray) -> int | None:
    """The least of int32 numbers that lie within a range of 16 bits; None for others."""
    if matrix.dtype != np.int32 or not matrix.size:
        return None
    least = int(matrix.min())
    return least if int(matrix.max()) - least <= np.iinfo(np.uint16).max else None


def narrow(matrix: np.ndarray, least: int | None) -> np.ndarray:
    """Numbers less `least`, as uint16; as they are if it is None."""
    return matrix if least is None else (matrix - np.int32(least)).astype(np.uint16)


def upper_triangle(matrix: np.ndarray) -> np.ndarray:
    """The runs of a matrix, (n, n), that `write_triangle` writes, as a 1-D array."""
    return np.concatenate([matrix[a:b, a:].reshape(-1) for a, b, _ in _runs(len(matrix))])


class Triangle:
    """A matrix that `write_triangle` wrote, memory-mapped; ``triangle[rows]`` are rows of (n, n).

    Parameters
    ----------
    source : Path or 1-D array
        The file, or an `upper_triangle`.

    Raises
    ------
    ValueError
        The file holds something else.
    """

    def __init__(self, source: Path | np.ndarray) -> None:
        stored = np.load(source, mmap_mode="r") if isinstance(source, Path) else source
        self.dtype, self._least = stored.dtype, 0
        if stored.dtype == np.uint16:
            self._least = int.from_bytes(stored[-TAIL:].tobytes(), "little", signed=True)
            self.dtype, stored = np.dtype(np.int32), stored[:-TAIL]
        n = bisect_left(range(math.isqrt(2 * stored.size) + 1), stored.size, key=triangle_size)
        if stored.ndim != 1 or triangle_size(n) != stored.size:
            raise ValueError(f"{source} does not hold the triangle of a matrix")
        self.shape, self._n = (n, n), n
        self._blocks = [
            stored[start : start + (last - first) * (n - first)].reshape(last - first, n - first)
            for first, last, start in _runs(n)
        ]

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        which = np.arange(self._n)[rows]
        out = np.empty((len(which), self._n), self.dtype)
        of_run = which // BLOCK
        for run in np.unique(of_run).tolist():
            places = _as_slice(np.flatnonzero(of_run == run))
            own = _as_slice(which[places] - run * BLOCK)
            out[places, run * BLOCK :] = self._blocks[run][own]
            for earlier, block in enumerate(self._blocks[:run]):
                first = earlier * BLOCK
                columns = block[:, (run - earlier) * BLOCK : (run - earlier + 1) * BLOCK]
                out[places, first : first + BLOCK] = columns[:, own].T
        if self._least:
            out += self.dtype.type(self._least)
        return out


def _as_slice(numbers: np.ndarray) -> np.ndarray | slice:
    """Consecutive numbers as a slice, which copies nothing; others as they are."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def open_symmetric(path: Path) -> Triangle | np.ndarray:
    """A symmetric matrix of a file of its triangle, or of `.npy` (n, n)."""
    stored = np.load(path, mmap_mode="r")
    return Triangle(path) if stored.ndim == 1 else stored


def whole(stored: np.ndarray) -> np.ndarray:
    """The matrix of an `upper_triangle`; a matrix as it is."""
    return Triangle(stored)[:] if stored.ndim == 1 else stored
