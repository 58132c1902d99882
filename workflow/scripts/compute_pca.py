"""Compute the PCA of the genotypes, with axes from the founders."""

from pathlib import Path

from popdesic.embedding.pca import compute_pca
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    statistics = compute_pca(
        [Path(bed).with_suffix("") for bed in snakemake.input.genotypes],
        Path(snakemake.input.axes),
        Path(snakemake.input.about),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        table_out=Path(snakemake.output.table),
        scores_out=Path(snakemake.output.scores),
        statistics_out=Path(snakemake.output.statistics),
        threads=snakemake.threads,
    )
    log_counts(log, statistics)
