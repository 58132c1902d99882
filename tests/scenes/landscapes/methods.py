"""Ways to measure distances of a scene's people: ours, and Isomap as the peer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

import popdesic
from popdesic.cohort.prune_options import parse_pruning
from popdesic.cohort.site_planes import site_planes
from popdesic.components.axis_sites import choose_sites
from popdesic.components.noise_null import significant_axes
from popdesic.components.relationship import relationship_among
from popdesic.engine.select import cpu_backend
from popdesic.study.configuration import fill_config

from .scenes import Scene

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
    density : {'keep', 'correct'}
        Whether weights are corrected for the density of sampling; lengths then need no root.
    """

    kind: str
    alpha: float = 1.0
    neighbors: int = NEIGHBORS
    components: int = COMPONENTS
    density: str = "keep"

    def __str__(self) -> str:
        name = self.kind
        if name == "knn":
            name += f" {self.neighbors}"
        if self.kind in ("Fermat", "knn"):
            name += f" {self.alpha:g}"
        if self.density == "correct":
            name += f" correct {self.neighbors}"
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
        if self.kind == "PCs":
            return plain
        graph = "knn" if self.kind == "knn" else "complete"
        return popdesic.shortest_paths(
            plain,
            self.alpha,
            graph=graph,
            neighbors=self.neighbors,
            density=self.density,
            device="cpu",
        ).lengths


def significant_scores(drawn: Scene, threads: int = 2) -> np.ndarray:
    """Scores on the significant components, as the workflow finds them by default, (n, k).

    From sites that LD pruning keeps; k may be 0.
    """
    n = drawn.genotypes.shape[1]
    sites = pd.DataFrame({"chrom": drawn.chrom, "pos": drawn.pos})
    pruning = parse_pruning(fill_config({})["embedding"]["ld_prune"], "embedding.ld_prune")
    chosen = choose_sites(
        lambda first, last: site_planes(drawn.genotypes[first:last]),
        sites,
        cpu_backend(threads),
        pruning=pruning,
        regions=[],
    )
    genotypes = drawn.genotypes[chosen.rows]

    def read(first: int, last: int) -> np.ndarray:
        return genotypes[first:last]

    relationship = relationship_among(read, [n], chosen.af, threads)
    used = sites.iloc[chosen.rows]
    axes, tests, _ = significant_axes(
        relationship, read, [n], chosen.af, used, "auto", threads=threads
    )
    everyone = np.ones(n, bool)
    nobody = np.empty((0, n)), np.empty(0)
    return axes.place(everyone, *nobody)[:, : tests.count]


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
