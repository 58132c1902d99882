"""Names of the axes of each kind of map, and how many samples the PCA makes a matrix of."""

from __future__ import annotations

#: Prefix of the axis names of each kind of map; a number follows.
AXES = {"pca": "PC", "pcoa": "PCo", "umap": "UMAP", "densmap": "densMAP", "tsne": "tSNE"}
#: Samples that define the axes of the PCA up to which their matrix of all pairs is made: there it
#: costs less than passes over the genotypes (tests/bench/bench_pca.py).
MOST_DENSE = 1500
#: Samples of which a matrix is made where missing genotypes ask for it (`large_pca`).
MOST_MATRIX = 10_000
