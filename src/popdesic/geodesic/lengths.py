"""Geodesics of a study on disk: each number once, and read as sample Fermat distances.

A closure is symmetric, so its file has the upper triangle: one-dimensional `.npy` of runs of BLOCK
rows, each from the run's first column to the last one. Rows of the whole matrix are put together
when they are read. What is stored is the closure in fixed point, which a later run can continue
(`insertion.py`), and lengths are made of it. Of a closure that is never continued it is the lengths
themselves, float32. A JSON file beside it says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.files import atomic_path, read_json, require_space
from ..distance.matrix import lengths_apart
from .graph import Graph
from .weights import Number

#: Rows of a run: of columns that are read as rows, a cache holds the lines.
BLOCK = 256
#: Number type of lengths that are stored as they are.
LENGTHS = Number("float32", 1.0, 0.0)
#: Rows of a symmetric matrix, (len(which), n).
Rows = Callable[[np.ndarray], np.ndarray]


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


@dataclass(frozen=True)
class Lengths:
    """Sample Fermat distances of all pairs, made of a closure as rows are asked for.

    ``lengths[rows]`` is float32, as of an array (n, n).

    Attributes
    ----------
    stored : callable
        Rows of the closure in `number`.
    shape : (int, int)
    number, graph, alpha
        What the closure was computed with.
    longest : float
        The longest finite length in the graph ``shared``, where pairs that nothing connects are
        set apart (`distance.matrix.lengths_apart`); 0 elsewhere.
    """

    stored: Rows
    shape: tuple[int, int]
    number: Number
    graph: Graph
    alpha: float
    longest: float = 0.0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice | np.ndarray) -> np.ndarray:
        asked = np.arange(len(self))[rows]
        which = np.atleast_1d(asked)
        found = self.stored(which)
        if self.number is not LENGTHS:
            found = self.graph.distances(self.number.value(found), self.alpha)
            if self.longest:
                row, column = np.nonzero(np.isinf(found))
                found[row, column] = lengths_apart(which[row], column, self.longest)
            found = found.astype(np.float32)
        return found if asked.ndim else found[0]


def open_lengths(path: Path) -> Lengths | np.ndarray:
    """Geodesics of a study.

    Parameters
    ----------
    path : Path
        ``geodesic/{space}/alpha{alpha}.json``, or the closure's file that it names, which has its
        description beside it; or `.npy` (n, n).
    """
    if path.suffix == ".json":
        path = path.parent / read_json(path)["closure"]
    if not path.with_suffix(".json").is_file():
        return np.load(path, mmap_mode="r")
    about = read_json(path.with_suffix(".json"))
    number = LENGTHS if about["dtype"] == "float32" else Number(about["dtype"], about["scale"], 0.0)
    n = about["n_samples"]
    graph = Graph(**about["graph"])
    rows = Triangle(path, n).rows
    return Lengths(rows, (n, n), number, graph, about["alpha"], about["longest"])
