"""The tree of splits of a scene's people, as the workflow finds it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from popdesic.communities.depth import Genotypes, measure_depths
from popdesic.communities.splits import MOST_COMPONENTS, Split, split_each


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


def split_trees(
    points: np.ndarray, genotypes: Genotypes, drawn: list[np.ndarray], threads: int = 1
) -> list[Split]:
    """Trees of supported splits with their depths, one for each set of samples.

    `points` (n, k) lie on the significant components; `drawn`: ascending sample numbers.
    """
    found = split_each([points[own] for own in drawn], threads)
    return measure_depths(found, genotypes, drawn)


def community_tree(
    scores: np.ndarray, genotypes: Genotypes, components: int = MOST_COMPONENTS
) -> Split:
    """Supported splits of people on the first of their components (n, k), with their depths."""
    return split_trees(scores[:, :components], genotypes, [np.arange(len(scores))])[0]
