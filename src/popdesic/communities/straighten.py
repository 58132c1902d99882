"""Coordinates in which curved continua are straight: PCoA of geodesics among nearest neighbours.

Along a chain of populations the leading principal components trace an arc (the horseshoe), and
their scores pile up at its ends even if samples are spread evenly. Geodesics follow the arc, so
that their principal coordinates (Isomap; Tenenbaum, de Silva and Langford 2000) spread as the
samples do.
Beyond LANDMARKS samples, geodesics from evenly spaced landmarks define the coordinates, and all
other samples are projected (de Silva and Tenenbaum 2002).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..components.scaling import principal_coordinates, require_finite
from ..geodesic.edges import Edges
from .near import near_others, nearest_to

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Neighbours of every sample.
NEIGHBORS = 15
#: Most samples from which geodesics run.
LANDMARKS = 600
#: How much longer a direct edge between parts may be than the longest on the way through others.
#: Along a row of equal steps distances among many components grow as the square root of the steps,
#: so that it is 1.4 times as long; between equal islands it differs by chance, up to a tenth.
SLACK = 1.15
#: Added to every distance in a graph, as a share of the largest: SciPy drops edges of length zero.
SMALLEST = 1e-9


def neighbor_graph(points: np.ndarray, neighbors: int = NEIGHBORS, threads: int = 1) -> csr_array:
    """Graph of nearest neighbours with one part only: symmetric distances, float64 (n, n).

    Two parts without a common edge are joined by the shortest edge between them, unless a way
    through other parts has only edges shorter by SLACK. So parts in a row stay a row, while parts
    that are equally far from each other stay so: joined by a tree alone they would become a row.

    Parameters
    ----------
    points : float64 array, (n, k)
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(points)
    k = min(neighbors, n - 1)
    columns, distances = near_others(points, k, threads)
    least = SMALLEST * (float(distances.max(initial=0)) or 1.0)
    rows = np.repeat(np.arange(n), k)
    lengths = np.maximum(distances.ravel(), least)
    graph = csr_array((lengths, (rows, columns.ravel())), (n, n))
    graph = graph.maximum(graph.T)
    parts, part = connected_components(graph, directed=False)
    if parts == 1:
        return graph
    rows, ends, lengths = _edges_between(points, part, parts, threads)
    more = csr_array((np.maximum(lengths, least), (rows, ends)), (n, n))
    return graph.maximum(more).maximum(more.T)


def _edges_between(
    points: np.ndarray, part: np.ndarray, parts: int, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges that join separate parts: the samples at both ends, and lengths."""
    from scipy.cluster.hierarchy import cophenet, linkage
    from scipy.spatial.distance import squareform

    lengths, starts, ends = np.zeros((3, parts, parts))
    members = [np.flatnonzero(part == own) for own in range(parts)]
    for other in range(1, parts):
        nearest, far = nearest_to(points, points[members[other]], threads)
        for own in range(other):
            first = members[own][far[members[own]].argmin()]
            lengths[own, other] = lengths[other, own] = far[first]
            starts[own, other], ends[own, other] = first, members[other][nearest[first]]
    # The longest edge on the way between two parts by the shortest edges that join all.
    needed = squareform(cophenet(linkage(squareform(lengths), "single")))
    joined = np.triu(lengths <= SLACK * needed, 1)
    return starts[joined].astype(np.int64), ends[joined].astype(np.int64), lengths[joined]


def straight_coordinates(points: np.ndarray, graph: csr_array, threads: int = 1) -> np.ndarray:
    """Principal coordinates of the geodesics in a graph of some points, float64 (n, k).

    Parameters
    ----------
    points : float64 array, (n, k)
        At least k + 2 samples.
    graph : sparse array, (n, n)
        From `neighbor_graph`.
    threads : int
        Of the geodesics.
    """
    from ..geodesic.block_paths_cpu import paths_from

    n, k = points.shape
    chosen = np.unique(np.linspace(0, n - 1, min(n, LANDMARKS)).astype(np.int64))
    lengths = paths_from(edges_of(graph), chosen, threads)
    among = lengths[:, chosen]
    among = np.minimum(among, among.T)  # sums in another order may differ in the last bit
    found, _ = principal_coordinates(among, k)
    if len(chosen) == n:
        return found
    others = np.setdiff1d(np.arange(n), chosen)
    coordinates = np.empty((n, found.shape[1]))
    coordinates[chosen] = found
    coordinates[others] = _project(lengths[:, others], among, found)
    return coordinates


def edges_of(graph: csr_array) -> Edges:
    """The edges of a graph, float64 (n, n), that lists each from both ends."""
    starts, ends = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    return Edges(starts, ends, np.ascontiguousarray(graph.data), np.zeros(graph.shape[0], bool))


def _project(lengths: np.ndarray, among: np.ndarray, found: np.ndarray) -> np.ndarray:
    """`scaling.project_coordinates` as one product, of the lengths (n_landmarks, m) to others."""
    require_finite(lengths)
    values = (found**2).sum(axis=0)
    axes = found / np.where(values > 0, values, np.inf)
    mean = (among**2).mean(axis=1)
    return 0.5 * (mean @ axes - np.square(lengths).T @ axes)
