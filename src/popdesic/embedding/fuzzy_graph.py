"""UMAP's weighted neighbour graph: the fuzzy simplicial set of exact nearest neighbours.

McInnes, Healy and Melville 2018, section 3.1, with the constants of umap-learn. It is computed in
float64, and distances enter only as ratios: their unit changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Least sigma, as a share of the mean distance to neighbours (umap-learn's MIN_K_DIST_SCALE).
LEAST_SIGMA = 1e-3
#: Halvings of the interval that holds a sigma: beyond the precision of float64.
HALVINGS = 64


@dataclass(frozen=True)
class FuzzyGraph:
    """A symmetric graph in rows (CSR).

    Attributes
    ----------
    starts : int64 array, (n + 1,)
        The edges of sample i are starts[i] to starts[i + 1].
    ends : int64 array, (n_edges,)
        Other end of each edge, ascending within a row. Each edge is in the rows of both its ends.
    weights : float64 array, (n_edges,)
        In (0, 1].
    """

    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray


def membership_strengths(far: np.ndarray) -> np.ndarray:
    """How strongly each sample belongs to the neighbourhood of another, in its own view.

    exp(-(d - rho) / sigma), rho the distance to the nearest neighbour that is not at 0, and sigma
    such that a sample's strengths add up to log2(k + 1); 1 up to rho.

    Parameters
    ----------
    far : float64 array, (n, k)
        Finite distances to the k nearest others, ascending.

    Returns
    -------
    float64 array, (n, k)
        In [0, 1].
    """
    n, k = far.shape
    positive = np.where(far > 0, far, np.inf).min(axis=1, initial=np.inf)
    rho = np.where(np.isfinite(positive), positive, 0.0)
    beyond = np.maximum(far - rho[:, None], 0)
    target = np.log2(k + 1)
    low, high = np.zeros(n), np.full(n, np.inf)
    sigma = beyond.max(axis=1, initial=0.0)
    for _ in range(HALVINGS):
        above = _strengths(beyond, sigma).sum(axis=1) > target
        high, low = np.where(above, sigma, high), np.where(above, low, sigma)
        with np.errstate(over="ignore"):
            sigma = np.where(np.isinf(high), 2 * sigma, (low + high) / 2)
    # the sample itself, at 0, counts as a neighbour
    mean = far.sum(axis=1) / (k + 1)
    mean[rho == 0] = far.sum() / (n * (k + 1))
    return _strengths(beyond, np.maximum(sigma, LEAST_SIGMA * mean))


def _strengths(beyond: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        found = np.exp(-beyond / sigma[:, None])
    return np.where(beyond > 0, found, 1.0)


def fuzzy_graph(near: np.ndarray, far: np.ndarray, least: float) -> FuzzyGraph:
    """The fuzzy union of all samples' neighbourhoods: p + q - p q of the two views of a pair.

    Parameters
    ----------
    near : int64 array, (n, k)
        The k nearest others of each sample, without itself.
    far : float64 array, (n, k)
        Their distances, finite and ascending.
    least : float
        Edges of a smaller weight, relative to the largest, are left out.
    """
    n, k = near.shape
    rows = np.repeat(np.arange(n), k)
    ends, weights = near.ravel(), membership_strengths(far).ravel()
    order = np.argsort(rows * n + ends)
    keys, weights = (rows * n + ends)[order], weights[order]
    back = keys % n * n + keys // n
    place = np.minimum(np.searchsorted(keys, back), max(0, len(keys) - 1))
    mutual = keys[place] == back
    other = np.where(mutual, weights[place], 0.0)
    union = weights + other - weights * other
    keys, union = np.append(keys, back[~mutual]), np.append(union, union[~mutual])
    kept = union >= least * union.max(initial=0.0)
    keys, union = keys[kept], union[kept]
    order = np.argsort(keys)
    keys, union = keys[order], union[order]
    starts = np.searchsorted(keys, np.arange(n + 1) * n)
    return FuzzyGraph(starts.astype(np.int64), keys % n, union)
