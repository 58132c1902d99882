"""The edges that geodesics may use, all pairs or nearest neighbours, and their weights.

In the complete graph every pair has a direct edge (Fermat distances as published); in the graph of
nearest neighbours long direct steps are forbidden. There, alpha = 1 gives the geodesics of Isomap
(Tenenbaum, de Silva and Langford 2000), and a number of neighbours as large as the sample gives
the complete graph: one family.

The founders define who is near. Every sample has a radius, its distance to its k-th nearest
founder; two samples are joined if their distance is at most the larger of their radii. The edges of
the founders' minimum spanning tree are added, so that the founders are connected whatever k is. An
edge between two samples thus depends on these two and the founders alone: new cohorts add edges and
never remove one, which is what lets a closure be continued. The same holds for weights: those that
are corrected for density use the radii of their two samples, see `weights.corrected_weights`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.files import read_json
from .weights import corrected_weights, fermat_distances, power_weights

#: Rows in memory at a time.
BLOCK_ROWS = 512
#: Rows whose nearest founders are sorted out together.
RADII_ROWS = 32


@dataclass(frozen=True)
class Graph:
    """A kind of graph and the weights of its edges.

    Attributes
    ----------
    kind : {'complete', 'knn', 'shared'}
        ``shared``: pairs at a finite distance, which need not connect everyone.
    neighbors : int
        Nearest founders that a sample is joined to, at least, in ``knn``; and the number of
        founders within its radius, where weights are corrected. 0 if neither applies.
    density : {'keep', 'correct'}
        ``keep``: weights d**alpha, so that lengths are shorter where more people were sampled.
        ``correct``: weights that do not depend on it.
    """

    kind: str = "complete"
    neighbors: int = 0
    density: str = "keep"

    def edge_weights(
        self, distances: np.ndarray, founders: np.ndarray, alpha: float, threads: int = 1
    ) -> np.ndarray:
        """Weights of the edges, float64 (n, n); infinite between samples without an edge.

        Parameters
        ----------
        distances : float64 array, (n, n)
            Symmetric, zero diagonal; infinite for pairs that cannot be compared.
        founders : bool array, (n,)
        alpha : float
        threads : int
            Changes no byte.

        Raises
        ------
        UserError
            A finite distance has no finite weight.
        """
        if self.density == "correct":
            radii = founder_radii(distances, founders, self.neighbors, apart=True)
            weights = corrected_weights(distances, radii, alpha)
        else:
            weights = power_weights(distances, alpha, threads)
        return self.keep_edges(weights, distances, founders)

    def distances(self, lengths: np.ndarray, alpha: float) -> np.ndarray:
        """Lengths of paths in the unit of a distance, float64.

        Sample Fermat distances, ``lengths ** (1 / alpha)``; corrected lengths have that unit.
        """
        return lengths if self.density == "correct" else fermat_distances(lengths, alpha)

    def keep_edges(
        self, weights: np.ndarray, distances: np.ndarray, founders: np.ndarray
    ) -> np.ndarray:
        """Weights of the edges; infinite between samples without an edge.

        Parameters
        ----------
        weights, distances : float64 arrays, (n, n)
        founders : bool array, (n,)

        Returns
        -------
        float64 array, (n, n)
            `weights` itself for the graphs ``complete`` and ``shared``.
        """
        if self.kind != "knn":
            return weights
        return np.where(neighbor_edges(distances, founders, self.neighbors), weights, np.inf)


#: Every pair has an edge.
COMPLETE = Graph()
#: Pairs that share segments have an edge.
SHARED = Graph("shared")


def chosen_graph(wanted: dict, alpha: str, choice: Path | None, space: str) -> tuple[float, Graph]:
    """Exponent and graph of the geodesics of a space.

    Parameters
    ----------
    wanted : dict
        `kind`, `neighbors` and `density` of the configuration.
    alpha : str
        A number, or ``auto`` for what `choice`, `geodesic/choice.json`, says.
    space : str
        In ``ibd`` the graph is that of shared segments, and ``auto`` stands for 1: there lengths
        are degrees, which add up.
    """
    if space == "ibd":
        return (1.0 if alpha == "auto" else float(alpha)), SHARED
    if alpha != "auto":
        return float(alpha), Graph(**wanted)
    chosen = read_json(choice)[space]
    own = wanted["neighbors"] if wanted["density"] == "correct" else 0
    neighbors = chosen["neighbors"] or own
    return float(chosen["alpha"]), Graph(chosen["graph"], neighbors, wanted["density"])


def neighbor_edges(distances: np.ndarray, founders: np.ndarray, k: int) -> np.ndarray:
    """Pairs that the graph of nearest neighbours joins: bool (n, n), True on the diagonal.

    Ties at a radius are all joined, so the order of samples plays no role.

    Parameters
    ----------
    distances : float64 array, (n, n)
        Symmetric; infinite for pairs that cannot be compared, which are never joined.
    founders : bool array, (n,)
    k : int
        With fewer other founders, all of them are neighbours.
    """
    radii = founder_radii(distances, founders, k)
    edges = np.empty(distances.shape, bool)
    for first in range(0, len(distances), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        edges[rows] = distances[rows] <= np.maximum(radii[rows, None], radii)
    edges &= np.isfinite(distances)
    who = np.flatnonzero(founders)
    tree = who[spanning_tree(distances[np.ix_(who, who)])]
    edges[tree[:, 0], tree[:, 1]] = edges[tree[:, 1], tree[:, 0]] = True
    np.fill_diagonal(edges, True)
    return edges


def founder_radii(
    distances: np.ndarray, founders: np.ndarray, k: int, *, apart: bool = False
) -> np.ndarray:
    """Distance of every sample to its k-th nearest founder other than itself, float64 (n,).

    A sample that can be compared with fewer than k founders takes the farthest of them; with none,
    its radius is 0. `apart`: only founders at a distance above zero count. Duplicates of a sample,
    however many, then do not change its radius, and it is 0 only if no founder differs.
    """
    who = np.flatnonzero(founders)
    radii = np.zeros(len(distances))
    if not len(who):
        return radii
    place = np.full(len(distances), -1)
    place[who] = np.arange(len(who))
    k = min(k, len(who))
    for first in range(0, len(distances), RADII_ROWS):
        far = distances[first : first + RADII_ROWS, who]
        own = place[first : first + RADII_ROWS]
        far[own >= 0, own[own >= 0]] = np.inf
        far[~(np.isfinite(far) & ((far > 0) | (not apart)))] = np.inf
        near = np.sort(np.partition(far, k - 1, axis=1)[:, :k], axis=1)
        counted = np.isfinite(near).sum(axis=1)
        rows = np.flatnonzero(counted)
        radii[first + rows] = near[rows, counted[rows] - 1]
    return radii


def spanning_tree(distances: np.ndarray) -> np.ndarray:
    """Edges of the minimum spanning forest, int64 (n_edges, 2), by Prim's algorithm.

    Dense and exact for zero distances too, which SciPy's sparse graphs take for missing edges.
    Equal distances are ordered by the smaller and then by the larger number of their two samples,
    so that there is one such forest, whatever the algorithm (`distance.founder_tree`).

    Parameters
    ----------
    distances : float64 array, (n, n)
        Infinite where there is no edge.
    """
    from .spanning_cpu import spanning_edges

    return spanning_edges(np.ascontiguousarray(distances, np.float64))


def longest_paths(weights: np.ndarray, founders: np.ndarray) -> tuple[float, float]:
    """Upper bounds of the shortest paths' lengths: among founders only, and among everyone.

    Twice the greatest length from one sample of a connected part, the largest of all parts; paths
    among nearest neighbours can be longer than any edge, so edges alone do not bound them.

    Parameters
    ----------
    weights : float64 array, (n, n)
        Symmetric; infinite where there is no edge.
    founders : bool array, (n,)
    """
    who = np.flatnonzero(founders)
    among = _longest(weights[np.ix_(who, who)])
    return among, (among if founders.all() else _longest(weights))


def _longest(weights: np.ndarray) -> float:
    upper = np.triu(np.isfinite(weights), 1)
    return longest_paths_of(len(weights), np.argwhere(upper), weights[upper])


def longest_paths_of(n: int, ends: np.ndarray, weights: np.ndarray) -> float:
    """`longest_paths` of edges, int64 (n_edges, 2), that are listed once each."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, dijkstra

    # An explicit zero is an edge; SciPy's sparse graphs keep it.
    graph = csr_array((weights, (ends[:, 0], ends[:, 1])), (n, n))
    _, part = connected_components(graph, directed=False)
    _, first = np.unique(part, return_index=True)
    lengths = dijkstra(graph, directed=False, indices=first)
    return 2 * float(lengths[np.isfinite(lengths)].max(initial=0.0))
