"""How well samples that do not define the axes find their place, for tests and benchmarks."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from popdesic.components.pca import Axes


def plain_scores(axes: Axes, founders: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Scores by the plain projection, which shrinks: rows times U / sqrt(L), float64 (n, k)."""
    leading, values = axes.vectors[:, : axes.k], axes.values[: axes.k]
    scores = np.empty((len(founders), axes.k))
    scores[founders] = leading * np.sqrt(values)
    scores[~founders] = rows @ (leading / np.sqrt(values))
    return scores


def population_slopes(scores: np.ndarray, founders: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Slope of newcomers' population means on the founders', of each axis; 1 is no shrinkage.

    Through the origin; a population counts as often as it has newcomers.
    """
    over, under = 0.0, 0.0
    for name in np.unique(label):
        old, new = founders & (label == name), ~founders & (label == name)
        if old.any() and new.any():
            mean = scores[old].mean(axis=0)
            over = over + new.sum() * mean * scores[new].mean(axis=0)
            under = under + new.sum() * mean**2
    return over / under


def newcomer_neighbors(scores: np.ndarray, founders: np.ndarray, k: int = 15) -> float:
    """Share of newcomers among the k nearest of a newcomer; by chance their share of all others."""
    new = np.flatnonzero(~founders)
    distances = cdist(scores[new], scores)
    distances[np.arange(len(new)), new] = np.inf
    near = np.argsort(distances, axis=1)[:, :k]
    return float((~founders)[near].mean())
