"""Geodesics of a study on disk: each number once, and read as sample Fermat distances.

A closure is symmetric, so its file has the upper triangle (`core.triangle`). What is stored is the
closure in fixed point, which a later run can continue (`insertion.py`), and lengths are made of it.
Of a closure that is never continued it is the lengths themselves, float32. Nothing is stored of
plain distances between points, nor of a closure that another alpha of the study has too: the file
then names the one that has the numbers. A JSON file beside it says which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.files import content_key, read_json
from ..core.tables import write_npy
from ..core.triangle import Triangle
from ..distance.matrix import rows_at_once, rows_between
from ..io.sites import chunks
from .graph import Graph
from .weights import Number

#: Pairs that nothing connects are drawn at least so many times as far apart as all others.
APART = 2.0
#: Number type of lengths that are stored as they are.
LENGTHS = Number("float32", 1.0, 0.0)
#: Number type of distances that are kept as they are.
EXACT = Number("float64", 1.0, 0.0)
#: Rows of a symmetric matrix, (len(which), n).
Rows = Callable[[np.ndarray], np.ndarray]


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
        set apart (`lengths_apart`); 0 elsewhere.
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
            lengths = np.empty(found.shape, np.float32)
            for first, last in chunks(len(which), rows_at_once(len(self))):
                lengths[first:last] = self._values(found[first:last], which[first:last])
            found = lengths
        return found if asked.ndim else found[0]

    def _values(self, stored: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Lengths of some rows in float64."""
        found = self.graph.distances(self.number.value(stored), self.alpha)
        if self.longest:
            row, column = np.nonzero(np.isinf(found))
            found[row, column] = lengths_apart(which[row], column, self.longest)
        return found


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
    if "same_as" in about:
        return open_lengths(path.with_name(about["same_as"]))
    if "points" in about:
        points = np.load(path.parent / about["points"])[:, : about["pcs"]]
        shape, graph = (len(points), len(points)), Graph(**about["graph"])
        return Lengths(rows_between(points), shape, EXACT, graph, about["alpha"])
    number = LENGTHS if about["dtype"] == "float32" else Number(about["dtype"], about["scale"], 0.0)
    stored, graph = Triangle(path), Graph(**about["graph"])
    rows = stored.__getitem__
    return Lengths(rows, stored.shape, number, graph, about["alpha"], about["longest"])


def refer_to(path: Path, other: Path) -> None:
    """Write a closure's file without numbers: name and content of the one that has them."""
    text = f"{other.name} {content_key(other)}\n"
    write_npy(path, np.frombuffer(text.encode(), np.uint8))


def lengths_apart(one: np.ndarray, two: np.ndarray, longest: float) -> np.ndarray:
    """Lengths that `set_apart` gives to pairs that nothing connects, float64.

    one, two : int arrays
        Numbers of both samples of each pair.
    """
    ends = np.sort(np.stack([one, two], axis=1), axis=1).astype(np.uint64)
    mixed = ends[:, 0] * np.uint64(0x9E3779B97F4A7C15) + ends[:, 1]  # SplitMix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    share = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
    return longest * (APART + share)


def set_apart(distances: np.ndarray) -> tuple[np.ndarray, float]:
    """Distances of a map in which nobody is infinitely far.

    A pair that nothing connects gets APART to APART + 1 times the longest distance, by the numbers
    of its two samples. If all such pairs were equally far, whoever has few relatives would have
    the first samples of the study for neighbours.

    Parameters
    ----------
    distances : float64 array, (n, n)
        Symmetric, zero diagonal.

    Returns
    -------
    distances : float64 array, (n, n)
        `distances` itself where all are finite.
    apart : float
        The least distance of such pairs.
    """
    finite = np.isfinite(distances)
    longest = float(distances.max(where=finite, initial=0.0)) or 1.0
    if finite.all():
        return distances, APART * longest
    filled = distances.copy()
    filled[~finite] = lengths_apart(*np.nonzero(~finite), longest)
    return filled, APART * longest
