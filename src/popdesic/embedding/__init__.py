"""Maps of the samples: PCA, PCoA, UMAP, their frame and their quality."""
