"""Compare principal components of windows of sites along the genome."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.core.log import log_counts, logged
from popdesic.population.local_structure import measure_local_structure

with logged(snakemake.log[0], snakemake.input) as log:
    genome = genome_of_panel(Path(snakemake.input.counts))
    unrelated = snakemake.input.unrelated
    about = measure_local_structure(
        [Path(path).with_suffix("") for path in snakemake.input.genotypes],
        Path(snakemake.input.panel),
        Path(unrelated[0]) if unrelated else None,
        x_contigs=genome.x_contigs(snakemake.params.x_contigs),
        seed=snakemake.params.seed,
        table_out=Path(snakemake.output.table),
        summary_out=Path(snakemake.output.summary),
    )
    log_counts(log, about)
