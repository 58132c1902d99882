"""The tree of splits of a scene's people, as the workflow finds it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from popdesic.communities.depth import Genotypes, split_trees
from popdesic.communities.splits import MOST_COMPONENTS, Split


def genotypes_of(
    genotypes: np.ndarray, chrom: np.ndarray, pos: np.ndarray, unrelated: np.ndarray | None = None
) -> Genotypes:
    """Genotypes (n_sites, n) of a scene, as `communities.depth` reads those of a study."""
    everyone = np.ones(genotypes.shape[1], bool)
    return Genotypes(
        lambda first, last: genotypes[first:last],
        pd.DataFrame({"chrom": chrom, "pos": pos}),
        everyone if unrelated is None else unrelated,
    )


def community_tree(
    scores: np.ndarray, genotypes: Genotypes, components: int = MOST_COMPONENTS
) -> Split:
    """Supported splits of people on the first of their components (n, k), with their depths."""
    return split_trees(scores[:, :components], genotypes, [np.arange(len(scores))])[0]
