"""The nearest samples of everyone on principal components, without a matrix of all pairs."""

from __future__ import annotations

import numpy as np

from ..distance.find_nearest import nearest_points
from ..engine.backend import Backend


def nearest_on_components(
    scores: np.ndarray, k: int, backend: Backend
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest other samples of every sample by Euclidean distance of their scores. Exact.

    Parameters
    ----------
    scores : float64 array, (n, m)
        Finite. Coordinates that are to count alike must be scaled by the caller.
    k : int
        At most 256; all others where there are fewer.

    Returns
    -------
    neighbors : int32 array, (n, k)
        Nearest first by the squared distance, summed in float64 in the order of the components;
        ties in sample order. The same for any backend and number of threads.
    distances : float64 array, (n, k)

    Raises
    ------
    ValueError
        Scores that are not finite, or a larger k.
    """
    found = nearest_points(backend, scores, k)
    return found.index, found.distance
