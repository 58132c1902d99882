"""PCoA of geodesics: classical multidimensional scaling, optionally with axes of the founders."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cohort.samples import describe_samples
from ..engine.threads import one_blas_thread
from ..io.errors import UserError
from ..io.files import write_json
from .eigen import leading_eigenpairs
from .frame import register
from .tables import write_embedding, write_statistics


def require_finite(distances: np.ndarray) -> None:
    if not np.isfinite(distances).all():
        raise UserError(
            "results/geodesic: some pairs have no finite geodesic, so they have no common map; "
            "set distance.on_uncomparable to drop."
        )


@one_blas_thread
def principal_coordinates(distances: np.ndarray, n_components: int):
    """Principal coordinates (PCoA, classical scaling) of a distance matrix.

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
    require_finite(distances)
    centred = distances**2
    centred -= centred.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    centred *= -0.5
    k = min(n_components, len(centred) - 1)
    total = np.trace(centred)
    values, vectors = leading_eigenpairs(centred, k)
    values = np.maximum(values, 0.0)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    return vectors * np.sign(largest) * np.sqrt(values), values / (total if total > 0 else 1.0)


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


def compute_pcoa(
    lengths: Path,
    order: Path,
    sheet: Path,
    *,
    components: int,
    table_out: Path,
    statistics_out: Path,
    frame: Path | None = None,
    founders: set[str] | None = None,
    refit_out: Path | None = None,
) -> dict:
    """PCoA of one geodesic distance: table and variance explained.

    With `frame`, lengths to the founders (n, n_founders), the founders define the axes and all
    other samples are projected. The PCoA of everyone is aligned to that map and written to
    `refit_out`, with a JSON of the displacements.
    """
    samples = describe_samples(order, sheet)
    matrix = np.load(lengths).astype(np.float64)
    coordinates, explained = principal_coordinates(matrix, components)
    if frame:
        among = samples.cohort.isin(founders).to_numpy()
        near = np.load(frame).astype(np.float64)
        own, explained = principal_coordinates(near[among], components)
        fixed = np.empty((len(samples), own.shape[1]))
        fixed[among] = own
        fixed[~among] = project_coordinates(near[~among], near[among], own)
        moved, about = register(coordinates[:, : own.shape[1]], fixed, among)
        write_embedding(refit_out, samples, moved, "PCo")
        write_json(refit_out.with_suffix(".json"), about)
        coordinates = fixed
    write_embedding(table_out, samples, coordinates, "PCo")
    return write_statistics(statistics_out, explained, len(coordinates))
