"""Coordinates in which curved continua are straight: PCoA of geodesics among nearest neighbours.

Along a chain of populations the leading principal components trace an arc (the horseshoe), and
their scores pile up at its ends even if samples are spread evenly. Geodesics follow the arc, so
that their principal coordinates (Isomap; Tenenbaum, de Silva and Langford 2000) spread as the
samples do.
Beyond LANDMARKS samples, geodesics from evenly spaced landmarks define the coordinates, and all
other samples are projected (de Silva and Tenenbaum 2002).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from ..embedding.pcoa import principal_coordinates, project_coordinates

#: Neighbours of every sample.
NEIGHBORS = 15
#: Most samples from which geodesics run.
LANDMARKS = 1_500
#: Added to every distance in a graph, as a share of the largest: SciPy drops edges of length zero.
SMALLEST = 1e-9


def neighbor_graph(points: np.ndarray, neighbors: int = NEIGHBORS) -> csr_array:
    """Graph of nearest neighbours with one part only: symmetric distances, float64 (n, n).

    Parts without a common edge are joined by the shortest edge from each to any other, repeatedly.

    Parameters
    ----------
    points : float64 array, (n, k)
    """
    n = len(points)
    k = min(neighbors, n - 1)
    distances, columns = cKDTree(points).query(points, k + 1)
    distances, columns = distances.reshape(n, -1), columns.reshape(n, -1)
    least = SMALLEST * (float(distances.max()) or 1.0)
    rows = np.repeat(np.arange(n), k + 1)
    apart = rows != columns.ravel()
    lengths = np.maximum(distances.ravel(), least)
    graph = csr_array((lengths[apart], (rows[apart], columns.ravel()[apart])), (n, n))
    graph = graph.maximum(graph.T)
    while True:
        parts, part = connected_components(graph, directed=False)
        if parts == 1:
            return graph
        edges = [_shortest_edge(points, part == own) for own in range(parts)]
        found = np.array([[i, j] for i, j, _ in edges])
        lengths = np.maximum([length for *_, length in edges], least)
        more = csr_array((lengths, (found[:, 0], found[:, 1])), (n, n))
        more.sum_duplicates()
        graph = graph.maximum(more).maximum(more.T)


def _shortest_edge(points: np.ndarray, inside: np.ndarray) -> tuple[int, int, float]:
    """The shortest edge that leaves a part: its two samples, and its length."""
    own, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    length, nearest = cKDTree(points[others]).query(points[own])
    first = int(length.argmin())
    return int(own[first]), int(others[nearest[first]]), float(length[first])


def straight_coordinates(points: np.ndarray, graph: csr_array) -> np.ndarray:
    """Principal coordinates of the geodesics in a graph of some points, float64 (n, k).

    Parameters
    ----------
    points : float64 array, (n, k)
        At least k + 2 samples.
    graph : sparse array, (n, n)
        From `neighbor_graph`.
    """
    n, k = points.shape
    chosen = np.unique(np.linspace(0, n - 1, min(n, LANDMARKS)).astype(np.int64))
    lengths = dijkstra(graph, directed=False, indices=chosen)
    among = lengths[:, chosen]
    among = np.minimum(among, among.T)  # sums in another order may differ in the last bit
    found, _ = principal_coordinates(among, k)
    if len(chosen) == n:
        return found
    others = np.setdiff1d(np.arange(n), chosen)
    coordinates = np.empty((n, found.shape[1]))
    coordinates[chosen] = found
    coordinates[others] = project_coordinates(
        np.ascontiguousarray(lengths[:, others].T), among, found
    )
    return coordinates
