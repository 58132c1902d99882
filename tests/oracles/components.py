"""PCA of a whole relationship matrix, for tests that have one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from popdesic.cohort.site_alleles import read_cohorts
from popdesic.components.pca import axes_of
from popdesic.components.relationship import relationship_among


def cohort_relationship(prefixes: list[Path], af: np.ndarray, threads: int = 1) -> np.ndarray:
    """Relationship of all samples of cohorts on the panel, float64 (n, n)."""
    read, sizes = read_cohorts(prefixes)
    return relationship_among(read, sizes, af, threads)


def principal_components(
    relationship: np.ndarray, founders: np.ndarray, components: int | str
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of everyone (n, k), axes from the founders, and shares of variance explained (k,)."""
    axes, _ = axes_of(relationship[np.ix_(founders, founders)], components)
    rows, own = relationship[np.ix_(~founders, founders)], np.diag(relationship)[~founders]
    return axes.place(founders, rows, own), axes.explained[: axes.k]
