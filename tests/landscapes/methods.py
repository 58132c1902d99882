"""Ways to measure distances of a scene's people: ours, and Isomap as the peer."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

import popdesic

#: Principal components of which plain distances are taken, what the workflow takes by default.
COMPONENTS = 8
#: Neighbours of Isomap, the peer.
NEIGHBORS = 15


class People:
    """A scene's people as an analysis sees them: genotypes, components, plain distances."""

    def __init__(self, genotypes: np.ndarray, components: int = COMPONENTS) -> None:
        self.genotypes = genotypes
        self.scores = popdesic.pca(genotypes.T, n_components=components).scores
        self.plain = squareform(pdist(self.scores))

    def of_genotypes(self) -> np.ndarray:
        """Euclidean distances of genotypes."""
        return popdesic.pairwise_distance(self.genotypes.T, device="cpu")

    def fermat(self, alpha: float) -> np.ndarray:
        """Lengths Σd^α of shortest paths in the complete graph of the components."""
        return popdesic.shortest_paths(self.plain, alpha, device="cpu").lengths

    def among_neighbors(self, k: int, alpha: float) -> np.ndarray:
        """Lengths Σd^α of shortest paths among `k` nearest neighbours."""
        return knn_lengths(self.plain, k, alpha)

    def isomap(self) -> np.ndarray:
        """Geodesics of scikit-learn's Isomap."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it joins separate parts by itself
            return Isomap(n_neighbors=NEIGHBORS).fit(self.scores).dist_matrix_


def knn_lengths(distances: np.ndarray, k: int, alpha: float) -> np.ndarray:
    """Shortest paths over edges d^alpha between nearest neighbours, by SciPy's Dijkstra.

    Two samples are joined if one is among the `k` nearest of the other, or if the minimum spanning
    tree joins them, so that everybody is connected. No two samples may be at distance 0.
    """
    n = len(distances)
    near = np.argsort(distances, axis=1, kind="stable")[:, 1 : k + 1]
    joined = minimum_spanning_tree(csr_array(distances)).toarray() > 0
    joined[np.arange(n)[:, None], near] = True
    weights = np.where(joined | joined.T, distances**alpha, 0.0)
    return dijkstra(csr_array(weights), directed=False)


def ways(neighbors: tuple[int, ...], alphas: tuple[float, ...]) -> dict[str, Callable]:
    """Name and function of `People` of everything that is compared."""
    found: dict[str, Callable[[People], np.ndarray]] = {
        "PCs": lambda people: people.plain,
        "genotypes": People.of_genotypes,
        f"Isomap {NEIGHBORS}": People.isomap,
    }
    for alpha in alphas:
        found[f"Fermat {alpha:g}"] = lambda people, alpha=alpha: people.fermat(alpha)
    for k in neighbors:
        for alpha in (1.0, 1.5, 2.0):
            found[f"knn {k} {alpha:g}"] = lambda people, k=k, alpha=alpha: people.among_neighbors(
                k, alpha
            )
    return found
