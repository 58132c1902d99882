"""Landmarks: some founders, and the distances of everyone to them; lists of neighbours.

A study without a matrix of all pairs keeps these rows of it. Maps, their quality and figures are
computed from them. Founders alone are landmarks: a newcomer adds a column and changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

#: Most landmarks: a million samples then have a file of 4 GB.
MOST_LANDMARKS = 1_000


def choose_landmarks(cohorts: Sequence[str], founders: set[str]) -> np.ndarray:
    """Row numbers of at most MOST_LANDMARKS founders, evenly spaced in sample order: int64.

    `cohorts`: of every sample; `founders`: names of the founder cohorts.
    """
    who = np.flatnonzero(np.isin(np.asarray(cohorts, str), sorted(founders)))
    if not len(who):
        return who
    chosen = np.linspace(0, len(who) - 1, min(len(who), MOST_LANDMARKS))
    return who[np.unique(chosen.astype(np.int64))]


def landmarks_of_cohorts(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Landmarks of each founder cohort, numbered in it, int64.

    `sizes`: samples of every founder cohort, in sample order.
    """
    names = np.repeat(np.array(list(sizes), str), list(sizes.values()))
    chosen, starts = choose_landmarks(names, set(sizes)), np.cumsum([0, *sizes.values()])
    return {
        cohort: chosen[(chosen >= first) & (chosen < last)] - first
        for cohort, first, last in zip(sizes, starts[:-1], starts[1:], strict=True)
    }


@dataclass(frozen=True)
class LandmarkRows:
    """Rows of a matrix of all pairs that are there: those of landmarks.

    Stands in for `matrix.Distances` where rows are sampled.

    Attributes
    ----------
    matrix : float32 array, (L, n)
        May be a memory map.
    landmarks : int64 array, (L,)
        Row number of each in sample order, rising.
    metric : str
        Of plain distances.
    """

    matrix: np.ndarray
    landmarks: np.ndarray
    metric: str = ""

    def rows(self, which: np.ndarray) -> np.ndarray:
        """float64 (len(which), n) of landmarks. ValueError: a sample is none."""
        place = np.searchsorted(self.landmarks, which)
        if (place >= len(self.landmarks)).any() or (self.landmarks[place] != which).any():
            raise ValueError("rows of samples that are no landmarks do not exist")
        return np.asarray(self.matrix[place], np.float64)

    def among(self) -> AmongLandmarks:
        """Distances of the landmarks to each other."""
        inner = np.ascontiguousarray(self.matrix[:, self.landmarks], np.float64)
        return AmongLandmarks(inner, self.metric)


@dataclass(frozen=True)
class AmongLandmarks:
    """The matrix of the landmarks alone, with the methods of `matrix.Distances`."""

    matrix: np.ndarray
    metric: str = ""

    def __len__(self) -> int:
        return len(self.matrix)

    def rows(self, which: np.ndarray) -> np.ndarray:
        return self.matrix[which]

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All rows, with their numbers."""
        yield np.arange(len(self)), self.matrix

    def probe(self) -> np.ndarray:
        """Finite distances of different landmarks."""
        other = ~np.eye(len(self), dtype=bool)
        return self.matrix[other & np.isfinite(self.matrix)]


def read_landmarks(rows: Path, landmarks: np.ndarray, metric: str = "") -> LandmarkRows:
    """Rows of a file `landmarks*.npy`, memory-mapped."""
    return LandmarkRows(np.load(rows, mmap_mode="r"), landmarks, metric)


@dataclass(frozen=True)
class Neighbors:
    """Lists of neighbours, and what of the founders goes with them.

    Attributes
    ----------
    index : int32 array, (n, k)
    distance : float64 array, (n, k)
        Nearest first.
    landmarks : int64 array, (L,)
    tree, tree_lengths : arrays
        From `founder_tree`.
    """

    index: np.ndarray
    distance: np.ndarray
    landmarks: np.ndarray
    tree: np.ndarray
    tree_lengths: np.ndarray


def read_neighbors(path: Path) -> Neighbors:
    """`distance/neighbors.npz` of a study."""
    with np.load(path) as found:
        return Neighbors(*(found[field.name] for field in fields(Neighbors)))


@dataclass(frozen=True)
class NearDistances:
    """Nearest neighbours of everyone, and rows of landmarks, where others read `matrix.Distances`.

    Attributes
    ----------
    lists : Neighbors
    landmarks : LandmarkRows
    """

    lists: Neighbors
    landmarks: LandmarkRows

    def closest(self, n_pairs: int) -> list[tuple[float, int, int]]:
        """Distance and both numbers of the closest pairs at a finite distance, closest first.

        As many as are asked for, if that is at most the neighbours of each sample.
        """
        n, k = self.lists.index.shape
        own = np.repeat(np.arange(n), k)
        other, far = self.lists.index.ravel(), self.lists.distance.ravel()
        chosen = np.flatnonzero(np.isfinite(far) & (own < other))
        chosen = chosen[np.lexsort((other[chosen], own[chosen], far[chosen]))][:n_pairs]
        return [(float(far[i]), int(own[i]), int(other[i])) for i in chosen]

    def probe(self) -> np.ndarray:
        """Finite distances of different landmarks."""
        return self.landmarks.among().probe()
