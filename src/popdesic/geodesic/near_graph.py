"""The graph of geodesics from lists of nearest neighbours, without a matrix of all pairs.

``knn`` is the graph of `graph.neighbor_edges`, exactly, wherever a sample's list reaches beyond its
radius. Of ``complete`` only the edges in the lists and those of the founders' minimum spanning tree
are kept, so that paths lead from one cluster to the next (`near_paths` adds direct weights).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..distance.landmarks import Neighbors
from .edges import Edges
from .graph import Graph, longest_paths_of
from .weights import Number, corrected_edges, fitting_number, power_weights


@dataclass(frozen=True)
class NearGraph:
    """Edges of a study, each once, and their weights.

    Attributes
    ----------
    n : int
        Samples.
    ends : int64 array, (n_edges, 2)
        The smaller number first, ordered.
    distances, weights : float64 arrays, (n_edges,)
    radii : float64 array, (n,)
        Of `graph.density`; empty if weights are not corrected.
    short : int
        Samples whose lists may end before their radius: they may lack edges.
    """

    n: int
    ends: np.ndarray
    distances: np.ndarray
    weights: np.ndarray
    radii: np.ndarray
    short: int

    def number(self, founders: np.ndarray) -> Number:
        """The number type ``auto`` of these weights, see `weights.choose_number`."""
        finite = self.weights[self.weights > 0]
        if not finite.size:
            return Number("float64", 1.0, 0.0)
        inner = founders[self.ends].all(axis=1)
        among = longest_paths_of(self.n, self.ends[inner], self.weights[inner])
        everyone = among
        if not founders.all():
            everyone = longest_paths_of(self.n, self.ends, self.weights)
        return fitting_number([finite], among, everyone, "auto", self.n)

    def edges(self, number: Number, blocked: np.ndarray) -> Edges:
        """Both directions of every edge, with weights as this type stores them."""
        return Edges.of_pairs(self.n, self.ends, number.store(self.weights), blocked)

    def parts(self) -> np.ndarray:
        """Number of each sample's connected part, (n,)."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ones = np.ones(len(self.ends))
        graph = coo_array((ones, (self.ends[:, 0], self.ends[:, 1])), (self.n, self.n))
        return connected_components(graph, directed=False)[1]


def build_near_graph(
    lists: Neighbors, founders: np.ndarray, graph: Graph, alpha: float
) -> NearGraph:
    """The graph of a study.

    Parameters
    ----------
    lists : Neighbors
    founders : bool array, (n,)
    graph : Graph
    alpha : float

    Raises
    ------
    UserError
        A finite distance has no finite weight.
    """
    n, k = lists.index.shape
    ends = np.stack([np.repeat(np.arange(n), k), lists.index.ravel().astype(np.int64)], axis=1)
    far, short = lists.distance.ravel(), np.zeros(n, bool)
    near = np.isfinite(far)
    if graph.kind == "knn":
        radii, short = radii_of_lists(lists, founders, graph.neighbors)
        near &= (lists.distance <= radii[:, None]).ravel()
    ends = np.sort(np.concatenate([ends[near], lists.tree]), axis=1)
    far = np.concatenate([far[near], lists.tree_lengths])
    _, first = np.unique(ends[:, 0] * n + ends[:, 1], return_index=True)
    ends, far = ends[first], far[first]
    radii = np.empty(0)
    if graph.density == "correct":
        radii, also = radii_of_lists(lists, founders, graph.neighbors, apart=True)
        weights = corrected_edges(far, radii[ends[:, 0]], radii[ends[:, 1]], alpha)
        short = short | also
    else:
        weights = power_weights(far, alpha)
    return NearGraph(n, ends, far, weights, radii, int(short.sum()))


def radii_of_lists(
    lists: Neighbors, founders: np.ndarray, k: int, *, apart: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """`graph.founder_radii` from lists of neighbours.

    Returns
    -------
    radii : float64 array, (n,)
        Where a list has fewer than k founders, though there are more, its last distance.
    short : bool array, (n,)
        Samples whose lists end before their radius, or at it: others may be as near.
    """
    far = lists.distance
    n, width = far.shape
    counted = founders[lists.index] & np.isfinite(far) & ((far > 0) | (not apart))
    rank = np.cumsum(counted, axis=1)
    reached = rank[:, -1] if width else np.zeros(n, np.int64)
    whole = width >= n - 1
    wanted = np.minimum(k, reached)
    place = (rank >= np.maximum(wanted, 1)[:, None]).argmax(axis=1) if width else reached
    radii = np.where(wanted > 0, far[np.arange(n), place] if width else 0.0, 0.0)
    if whole:
        return radii, np.zeros(n, bool)
    last = np.where(np.isfinite(far), far, -np.inf).max(axis=1)
    radii = np.where(reached < k, last, radii)
    return radii, (reached < k) if apart else radii >= far[:, -1]
