"""Names of the axes of each kind of map."""

from __future__ import annotations

#: Prefix of the axis names of each kind of map; a number follows.
AXES = {"pca": "PC", "pcoa": "PCo", "umap": "UMAP", "densmap": "densMAP", "tsne": "tSNE"}
