"""Principal coordinates: classical scaling of distances."""

from __future__ import annotations

import numpy as np

from ..core.errors import UserError
from ..core.threads import one_blas_thread, run_tasks
from .eigen import few_eigenpairs, row_blocks


def require_finite(distances: np.ndarray) -> None:
    if not np.isfinite(distances).all():
        raise UserError(
            "results/geodesic: some pairs have no finite geodesic, so they have no common map; "
            "set distance.on_uncomparable to drop."
        )


@one_blas_thread
def principal_coordinates(distances: np.ndarray, n_components: int, threads: int = 1):
    """Principal coordinates (PCoA, classical scaling) of a distance matrix.

    Parameters
    ----------
    distances : float array, (n, n)
        Or what gives rows as one does, such as `geodesic.lengths.Lengths`.
    threads : int
        Changes no byte.

    Returns
    -------
    coordinates : float64 array, (n, n_components)
    explained : float64 array, (n_components,)
        Eigenvalues divided by the trace, the sum of all eigenvalues. Non-Euclidean distances have
        negative eigenvalues too, so the shares can add up to more than one.

    Raises
    ------
    UserError
        A distance is infinite.
    """
    centred = _centred(distances, threads)
    k = min(n_components, len(centred) - 1)
    total = np.trace(centred)
    values, vectors = few_eigenpairs(centred, k, threads)
    values = np.maximum(values, 0.0)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    return vectors * np.sign(largest) * np.sqrt(values), values / (total if total > 0 else 1.0)


def _centred(distances: np.ndarray, threads: int) -> np.ndarray:
    """Squared distances, doubly centred, times -1/2: float64 (n, n)."""
    centred = np.empty(distances.shape)
    blocks = row_blocks(len(centred))
    means = np.empty(len(centred))

    def square(first: int, last: int) -> None:
        rows = distances[first:last].astype(np.float64)
        require_finite(rows)
        np.multiply(rows, rows, out=centred[first:last])

    def average(first: int, last: int) -> None:
        means[first:last] = centred[:, first:last].mean(axis=0)

    def centre(first: int, last: int) -> None:
        rows = centred[first:last]
        rows -= means
        rows -= rows.mean(axis=1)[:, None]
        rows *= -0.5

    for work in (square, average, centre):
        run_tasks(work, blocks, threads)
    return centred


def project_coordinates(
    lengths: np.ndarray, distances: np.ndarray, coordinates: np.ndarray
) -> np.ndarray:
    """Principal coordinates of newcomers (Gower 1968), each from its own row only.

    Parameters
    ----------
    lengths : float64 array, (m, n)
        From newcomers to the samples whose `distances` (n, n) gave `coordinates` (n, k).

    Returns
    -------
    float64 array, (m, k)
    """
    require_finite(lengths)
    mean = (distances**2).mean(axis=1)
    values = (coordinates**2).sum(axis=0)
    axes = np.ascontiguousarray((coordinates / np.where(values > 0, values, np.inf)).T)
    found = np.empty((len(lengths), coordinates.shape[1]))
    for row, far in enumerate(lengths):
        found[row] = (axes * (0.5 * (mean - far**2))).sum(axis=1)
    return found
