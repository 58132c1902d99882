"""Names of the axes of each kind of map."""

from __future__ import annotations

#: Names of the axes of each kind of map, a number after them.
AXES = {"pca": "PC", "pcoa": "PCo", "umap": "UMAP", "densmap": "densMAP", "tsne": "tSNE"}
