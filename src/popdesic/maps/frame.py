"""Stable maps: a frame of the founders, in which later samples are placed.

In stable mode (`embedding.stable`) a map is fitted on the closure of the founders alone. Every
later sample is placed separately, from its direct weights to the founders and that closure. Other
newcomers play no part, and all operations are on its own row, so its position is bit-identical
whichever other samples arrived.
"""

from __future__ import annotations

import numpy as np

#: Exponent of UMAP's membership strengths in the mean of the neighbours' positions. Plain
#: strengths (1) pull a sample to the centre of its neighbours; measured on HapMap3
#: (tests/golden/test_maps.py).
SHARPNESS = 3

#: What `register` measures.
DISPLACEMENTS = (
    *("disparity", "median_displacement", "largest_displacement"),
    *("founder_median", "newcomer_median"),
)


def place_among(lengths: np.ndarray, places: np.ndarray, neighbors: int) -> np.ndarray:
    """Position newcomers on a map: mean of their nearest founders, weighted by UMAP's strengths.

    The strength of a neighbour at distance d is exp(-(d - rho) / sigma), rho the nearest distance
    and sigma such that the strengths add up to log2(k) (McInnes et al. 2018, section 3.1).

    Parameters
    ----------
    lengths : float64 array, (m, n_founders)
    places : float64 array, (n_founders, n_axes)
    neighbors : int
        Number of neighbours that the map was made with, the sample itself included.

    Returns
    -------
    float64 array, (m, n_axes)
    """
    k = max(1, min(neighbors, len(places)) - 1)
    found = np.empty((len(lengths), places.shape[1]))
    for row, far in enumerate(np.asarray(lengths, np.float64)):
        near = np.argsort(far, kind="stable")[:k]
        near = near[np.isfinite(far[near])]
        beyond = far[near] - far[near[0]]
        weights = _strengths(beyond) ** SHARPNESS
        found[row] = (weights[:, None] * places[near]).sum(axis=0) / weights.sum()
    return found


def _strengths(beyond: np.ndarray) -> np.ndarray:
    """UMAP's membership strengths from distances beyond the nearest one, (k,), float64 (k,)."""
    target = np.log2(len(beyond) + 1)
    low, high, sigma = 0.0, np.inf, float(beyond.max()) or 1.0
    for _ in range(64):
        if np.exp(-beyond / sigma).sum() > target:
            high = sigma
        else:
            low = sigma
        sigma = 2 * sigma if np.isinf(high) else (low + high) / 2
        if sigma <= np.finfo(np.float64).tiny or not np.isfinite(sigma):
            return (beyond == 0).astype(np.float64)
    return np.exp(-beyond / sigma)


def register(
    points: np.ndarray, frame: np.ndarray, among: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    """Align a map to a frame (rotate, mirror, shift, scale) and measure the remaining displacement.

    Procrustes on the founders (Gower 1975). Displacements are shares of the frame's radius, which
    is the root mean square distance of its founders from their centroid.

    Parameters
    ----------
    points, frame : float64 arrays, (n, k)
    among : bool array, (n,)
        Founders.

    Returns
    -------
    moved : float64 array, (n, k)
    about : dict
        `disparity` (share of the founders' variance that the alignment leaves unexplained),
        `median_displacement` and `largest_displacement` of all samples, `founder_median`,
        `newcomer_median`.
    """
    from scipy.spatial import procrustes

    target, source = frame[among], points[among]
    middle, own = target.mean(axis=0), source.mean(axis=0)
    u, values, v = np.linalg.svd((source - own).T @ (target - middle))
    scale = values.sum() / (((source - own) ** 2).sum() or 1.0)
    moved = (points - own) @ (u @ v) * scale + middle
    radius = float(np.sqrt(((target - middle) ** 2).sum(axis=1).mean())) or 1.0
    far = np.sqrt(((moved - frame) ** 2).sum(axis=1)) / radius
    degenerate = not (np.ptp(source, axis=0).any() and np.ptp(target, axis=0).any())
    about = {
        "disparity": float("nan") if degenerate else float(procrustes(target, source)[2]),
        "median_displacement": float(np.median(far)),
        "largest_displacement": float(far.max()),
        "founder_median": float(np.median(far[among])),
        "newcomer_median": float(np.median(far[~among])) if not among.all() else 0.0,
    }
    return moved, {name: round(value, 6) for name, value in about.items()}
