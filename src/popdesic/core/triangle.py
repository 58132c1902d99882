"""Symmetric matrices on disk by their upper triangle.

The file is one-dimensional `.npy` of runs of BLOCK rows, each from the run's first column to the
last one. Rows of the whole matrix are put together when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .files import atomic_path, require_space

#: Rows of a run: of columns that are read as rows, a cache holds the lines.
BLOCK = 256


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
    n = len(matrix)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        require_space(path, triangle_size(n) * matrix.itemsize)
        descr = np.lib.format.dtype_to_descr(matrix.dtype)
        about = {"descr": descr, "fortran_order": False, "shape": (triangle_size(n),)}
        np.lib.format.write_array_header_1_0(file, about)
        for first, last, _ in _runs(n):
            file.write(np.ascontiguousarray(matrix[first:last, first:]).data)


class Triangle:
    """A matrix that `write_triangle` wrote, memory-mapped; `rows` gives rows of the whole."""

    def __init__(self, path: Path, n: int) -> None:
        stored = np.load(path, mmap_mode="r")
        if stored.shape != (triangle_size(n),):
            raise ValueError(f"{path} does not hold a matrix of {n} samples")
        self.dtype, self._n = stored.dtype, n
        self._blocks = [
            stored[start : start + (last - first) * (n - first)].reshape(last - first, n - first)
            for first, last, start in _runs(n)
        ]

    def rows(self, which: np.ndarray) -> np.ndarray:
        """Rows (len(which), n), in the stored number type."""
        out = np.empty((len(which), self._n), self.dtype)
        of_run = which // BLOCK
        for run in np.unique(of_run).tolist():
            places = _as_slice(np.flatnonzero(of_run == run))
            rows = _as_slice(which[places] - run * BLOCK)
            out[places, run * BLOCK :] = self._blocks[run][rows]
            for earlier, block in enumerate(self._blocks[:run]):
                first = earlier * BLOCK
                columns = block[:, (run - earlier) * BLOCK : (run - earlier + 1) * BLOCK]
                out[places, first : first + BLOCK] = columns[:, rows].T
        return out

    def whole(self) -> np.ndarray:
        """The matrix, (n, n)."""
        return self.rows(np.arange(self._n))


def _as_slice(numbers: np.ndarray) -> np.ndarray | slice:
    """Consecutive numbers as a slice, which copies nothing; others as they are."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers
