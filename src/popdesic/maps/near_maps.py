"""Of a study without a matrix of all pairs: neighbours on components, and PCoA by landmarks.

Landmark MDS (de Silva and Tenenbaum 2004): the landmarks' lengths among each other define the axes,
and everyone else is placed by the lengths to them. Landmarks are founders, so newcomers move no
axis.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..cohort.samples import describe_samples
from ..components.scaling import principal_coordinates, project_coordinates
from ..components.tables import write_embedding, write_statistics
from ..core.tables import read_table, write_npy, write_npz
from ..core.threads import run_tasks
from ..distance.founder_tree import Outside, neighbors_of_points
from ..distance.landmarks import LandmarkRows, read_landmarks
from ..distance.matrix import rows_of_points
from ..engine.backend import Backend
from ..io.sites import chunks
from .neighbors import nearest_on_components
from .pcoa import compute_pcoa

#: Samples that are placed at a time.
PLACED_ROWS = 4096
#: Rows of distances of points in memory at a time.
POINT_ROWS = 16


def write_component_neighbors(
    points: np.ndarray,
    order: Path,
    founders: set[str],
    backend: Backend,
    *,
    k: int,
    out: Path,
    landmarks_out: Path,
) -> dict[str, int]:
    """Write the nearest samples of everyone on principal components, and rows of landmarks.

    Parameters
    ----------
    points : float64 array, (n, m)
        Scores (`matrix.leading_scores`).
    order : Path
        `distance/samples.tsv`.
    founders : set of str
        Names of the founder cohorts.
    k : int
    out, landmarks_out : Path
        `embedding/neighbors.npz` and `embedding/landmarks.npy`, as those of `distance/`.

    Returns
    -------
    dict
        Samples, components, neighbours of each, landmarks.
    """
    cohorts = read_table(order).cohort.tolist()
    index, distance = nearest_on_components(points, k, backend)
    lists = neighbors_of_points(
        index, distance, cohorts, founders, lambda who: _outside(points[who], backend.threads)
    )
    write_npz(out, **vars(lists))
    rows = np.empty((len(lists.landmarks), len(points)), np.float32)
    distances = rows_of_points(points)

    def measure(first: int, last: int) -> None:
        rows[first:last] = distances(lists.landmarks[first:last])

    run_tasks(measure, chunks(len(rows), POINT_ROWS), backend.threads)
    write_npy(landmarks_out, rows)
    n, m = points.shape
    return {
        "samples": n,
        "components": m,
        "neighbours of each": index.shape[1],
        "landmarks": len(lists.landmarks),
    }


def _outside(points: np.ndarray, threads: int) -> Outside:
    """Where the tree of these founders looks for the nearest one outside a part."""
    from .outside_points_cpu import nearest_outside  # numba starts slowly

    return lambda which, part, best: nearest_outside(points, which, part, best, threads)


def place_by_landmarks(rows: LandmarkRows, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of everyone by landmark MDS, float64 (n, k), and the axes' shares of variance.

    Raises
    ------
    UserError
        A length is infinite.
    """
    among = rows.among().matrix
    own, explained = principal_coordinates(among, components)
    placed = np.empty((rows.matrix.shape[1], own.shape[1]))
    for first, last in chunks(len(placed), PLACED_ROWS):
        lengths = np.ascontiguousarray(rows.matrix[:, first:last].T, np.float64)
        placed[first:last] = project_coordinates(lengths, among, own)
    placed[rows.landmarks] = own
    return placed, explained


def study_pcoa(
    lengths: Path,
    lists: Path | None,
    order: Path,
    sheet: Path,
    *,
    components: int,
    table_out: Path,
    statistics_out: Path,
    **options: Any,
) -> dict:
    """PCoA of one geodesic distance of a study: by landmarks if there are lists of neighbours.

    Parameters
    ----------
    lengths, lists : Path
        Lengths between all pairs and None; or of the landmarks that `lists` names to everyone.
    options
        Of `pcoa.compute_pcoa`.
    """
    written = {"components": components, "table_out": table_out, "statistics_out": statistics_out}
    if lists is None:
        return compute_pcoa(lengths, order, sheet, **written, **options)
    with np.load(lists) as found:
        rows = read_landmarks(lengths, found["landmarks"])
    return compute_landmark_pcoa(rows, order, sheet, **written)


def compute_landmark_pcoa(
    rows: LandmarkRows,
    order: Path,
    sheet: Path,
    *,
    components: int,
    table_out: Path,
    statistics_out: Path,
) -> dict:
    """PCoA of one geodesic distance by landmarks: table, and variance among the landmarks."""
    coordinates, explained = place_by_landmarks(rows, components)
    write_embedding(table_out, describe_samples(order, sheet), coordinates, "PCo")
    return write_statistics(statistics_out, explained, len(rows.landmarks))
