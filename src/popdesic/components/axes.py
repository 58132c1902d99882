"""Names of the axes of each kind of map, and numbers of samples that decide how maps are made."""

from __future__ import annotations

#: Prefix of the axis names of each kind of map; a number follows.
AXES = {"pca": "PC", "pcoa": "PCo", "umap": "UMAP", "densmap": "densMAP", "tsne": "tSNE"}
#: Samples that define the axes of the PCA up to which their matrix of all pairs is made. CPU-s of
#: passes and matrix, axes and noise: 3.8 and 10.5 for 1 000 people x 20 000 sites, 8.4 and 32.4 for
#: 2 000; 9.4 and 31.4 for 1 500 x 100 000. Of fewer people, noise that takes all its rounds turns
#: this round: 23.6 and 9.2 for 600 x 100 000. A GPU makes the passes, if there is one: the stage
#: takes it 1.7 s for 1 100 x 20 000 and 2.0 for 1 600 x 100 000, 8 threads 5.4 and 9.5.
MOST_DENSE = 1000
#: Samples of which a matrix is made where missing genotypes ask for it (`large_pca`).
MOST_MATRIX = 10_000
#: Points of all UMAPs of a job above which they are laid out on a GPU. Six maps of 8 000 points
#: take 3.5 s of eight threads, and 0.8 s with a GPU, of which its driver takes 0.4 to start.
MANY_POINTS = 20_000
