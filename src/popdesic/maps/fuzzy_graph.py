"""UMAP's weighted neighbour graph: the fuzzy simplicial set of exact nearest neighbours.

McInnes, Healy and Melville 2018, section 3.1, with the constants of umap-learn. It is computed in
float64, and distances enter only as ratios: their unit changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks

#: Least sigma, as a share of the mean distance to neighbours (umap-learn's MIN_K_DIST_SCALE).
LEAST_SIGMA = 1e-3
#: Halvings of the interval that holds a sigma: beyond the precision of float64.
HALVINGS = 64
#: Samples of a task. Every step of its search is a dozen calls of NumPy, which threads make one
#: after the other: of tasks of 1 024 samples, 16 threads took 10 s for a million where one takes 4.
ROWS_OF_TASK = 1 << 16


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


def membership_strengths(far: np.ndarray, threads: int = 1) -> np.ndarray:
    """How strongly each sample belongs to the neighbourhood of another, in its own view.

    exp(-(d - rho) / sigma), rho the distance to the nearest neighbour that is not at 0, and sigma
    such that a sample's strengths add up to log2(k + 1); 1 up to rho.

    Parameters
    ----------
    far : float64 array, (n, k)
        Finite distances to the k nearest others, ascending.
    threads : int
        Changes no byte.

    Returns
    -------
    float64 array, (n, k)
        In [0, 1].
    """
    n, k = far.shape
    # the sample itself, at 0, counts as a neighbour
    everyone = far.sum() / (n * (k + 1)) if n else 0.0
    found = np.empty((n, k))

    def measure(first: int, last: int) -> None:
        found[first:last] = _strengths_of_rows(far[first:last], everyone)

    run_tasks(measure, chunks(n, ROWS_OF_TASK), threads)
    return found


def _strengths_of_rows(far: np.ndarray, everyone: float) -> np.ndarray:
    """`membership_strengths` of some samples; `everyone`: mean distance of all."""
    n, k = far.shape
    positive = np.where(far > 0, far, np.inf).min(axis=1, initial=np.inf)
    rho = np.where(np.isfinite(positive), positive, 0.0)
    beyond = np.maximum(far - rho[:, None], 0)
    target = np.log2(k + 1)
    low, high = np.zeros(n), np.full(n, np.inf)
    sigma, out, within = beyond.max(axis=1, initial=0.0), np.empty((n, k)), beyond <= 0
    for _ in range(HALVINGS):
        above = _strengths(beyond, sigma, out, within).sum(axis=1) > target
        high, low = np.where(above, sigma, high), np.where(above, low, sigma)
        with np.errstate(over="ignore"):
            halved = np.where(np.isinf(high), 2 * sigma, (low + high) / 2)
        if (halved == sigma).all():
            break
        sigma = halved
    mean = far.sum(axis=1) / (k + 1)
    mean[rho == 0] = everyone
    return _strengths(beyond, np.maximum(sigma, LEAST_SIGMA * mean), out, within)


def _strengths(
    beyond: np.ndarray, sigma: np.ndarray, out: np.ndarray, within: np.ndarray
) -> np.ndarray:
    """In `out`, without new memory at every step; `within`: where it is 1 whatever sigma is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        np.divide(beyond, -sigma[:, None], out=out)
        np.exp(out, out=out)
    np.copyto(out, 1.0, where=within)
    return out


def fuzzy_graph(near: np.ndarray, far: np.ndarray, least: float, threads: int = 1) -> FuzzyGraph:
    """The fuzzy union of all samples' neighbourhoods: p + q - p q of the two views of a pair.

    Parameters
    ----------
    near : int64 array, (n, k)
        The k nearest others of each sample, without itself.
    far : float64 array, (n, k)
        Their distances, finite and ascending.
    least : float
        Edges of a smaller weight, relative to the largest, are left out.
    threads : int
        Changes no byte.
    """
    from .neighbor_union_cpu import unite_neighbors  # imports numba

    strengths = membership_strengths(far, threads)
    return FuzzyGraph(*unite_neighbors(near, strengths, least, threads))
