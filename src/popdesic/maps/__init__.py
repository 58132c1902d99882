"""Maps of the samples from distances and geodesics: PCoA, UMAP, densMAP, and their quality."""
