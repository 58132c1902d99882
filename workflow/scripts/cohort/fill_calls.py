"""Fill missing genotypes of a cohort with imputed ones of sufficient quality."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.cohort.fill_calls import fill_calls
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    genome = genome_of_panel(Path(snakemake.input.counts))
    counts = fill_calls(
        Path(snakemake.input.genotypes[0]).with_suffix(""),
        [Path(path) for path in snakemake.input.imputed],
        [Path(path) for path in snakemake.input.quality],
        Path(snakemake.output[0]).with_suffix(""),
        cohort=snakemake.wildcards.cohort,
        min_r2=snakemake.params.min_r2,
        haploid=[*snakemake.params.haploid, *genome.x_contigs(snakemake.params.x_contigs)],
    )
    log_counts(log, counts)
