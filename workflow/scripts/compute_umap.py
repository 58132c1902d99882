"""UMAP of the geodesic distances of one space."""

from pathlib import Path

from popdesic.embedding import compute_umap
from popdesic.log import logged

with logged(snakemake.log[0]) as log:
    for lengths, table in zip(snakemake.input.lengths, snakemake.output, strict=True):
        compute_umap(
            Path(lengths),
            Path(snakemake.input.samples),
            Path(snakemake.params.sheet),
            neighbors=snakemake.params.neighbors,
            min_dist=snakemake.params.min_dist,
            seed=snakemake.params.seed,
            out=Path(table),
        )
        log.info("%s written", table)
