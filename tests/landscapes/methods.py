"""Ways to measure distances of a scene's people: ours, and Isomap as the peer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

import popdesic

#: Principal components of which distances are taken, what the workflow takes by default.
COMPONENTS = 8
#: Nearest neighbours, of Isomap as of ours.
NEIGHBORS = 15


class People:
    """A scene's people as an analysis sees them: genotypes (n_sites, n) and components."""

    def __init__(self, genotypes: np.ndarray) -> None:
        self.genotypes = genotypes
        self.scores = popdesic.pca(genotypes.T, n_components=COMPONENTS).scores

    def plain(self, components: int = COMPONENTS) -> np.ndarray:
        """Euclidean distances of the first principal components."""
        return squareform(pdist(self.scores[:, :components]))


@dataclass(frozen=True)
class Way:
    """A way to measure distances.

    Attributes
    ----------
    kind : {'PCs', 'genotypes', 'Isomap', 'Fermat', 'knn'}
        Plain distances of components or of genotypes; scikit-learn's geodesics; shortest paths in
        the complete graph of components, or among nearest neighbours.
    alpha : float
        Edges weigh d^alpha.
    neighbors, components : int
    """

    kind: str
    alpha: float = 1.0
    neighbors: int = NEIGHBORS
    components: int = COMPONENTS

    def __str__(self) -> str:
        name = self.kind
        if name == "knn":
            name += f" {self.neighbors}"
        if self.kind in ("Fermat", "knn"):
            name += f" {self.alpha:g}"
        return name if self.components == COMPONENTS else f"{name} ({self.components})"

    def lengths(self, people: People) -> np.ndarray:
        """Distances, or lengths Σd^α of shortest paths, (n, n)."""
        if self.kind == "genotypes":
            return popdesic.pairwise_distance(people.genotypes.T, device="cpu")
        if self.kind == "Isomap":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it joins separate parts by itself
                found = Isomap(n_neighbors=self.neighbors).fit(people.scores[:, : self.components])
            return found.dist_matrix_
        plain = people.plain(self.components)
        if self.kind == "Fermat":
            return popdesic.shortest_paths(plain, self.alpha, device="cpu").lengths
        return knn_lengths(plain, self.neighbors, self.alpha) if self.kind == "knn" else plain


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


#: What nothing should be worse than: what was plain until now, and the geodesics of others.
PLAIN, PEER = Way("PCs"), Way("Isomap")
#: Isomap's geodesics as we measure them: separate parts are joined by the minimum spanning tree.
NEAREST = Way("knn")
#: Everything that is compared.
WAYS = (
    PLAIN,
    Way("genotypes"),
    PEER,
    *(Way("Fermat", alpha) for alpha in (1.5, 2.0, 4.0, 8.0)),
    *(Way("knn", alpha, k) for k in (10, 15) for alpha in (1.0, 1.5, 2.0)),
)
#: The same with other numbers of components.
FEWER = tuple(Way(kind, components=k) for kind in ("PCs", "knn") for k in (1, 2, 4, 8))
