"""Open the distances of a study with or without a matrix of all pairs."""

from __future__ import annotations

from pathlib import Path

from .landmarks import NearDistances, read_landmarks, read_neighbors
from .matrix import Distances


def open_distances(
    folder: Path, *, sparse: bool, metric: str, n_sites: int, min_called: int
) -> Distances | NearDistances:
    """The distances below `results/distance`, of a study with or without all pairs."""
    if not sparse:
        return Distances(folder, metric, n_sites, min_called)
    lists = read_neighbors(folder / "neighbors.npz")
    return NearDistances(lists, read_landmarks(folder / "landmarks.npy", lists.landmarks, metric))
