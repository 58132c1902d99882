"""Fit ancestry components to the unrelated founders."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.core.log import log_counts, logged
from popdesic.population.ancestry import fit_ancestry

with logged(snakemake.log[0], snakemake.input) as log:
    genome = genome_of_panel(Path(snakemake.input.counts))
    about = fit_ancestry(
        [Path(path).with_suffix("") for path in snakemake.input.genotypes],
        Path(snakemake.input.panel),
        Path(snakemake.input.axes),
        x_contigs=genome.x_contigs(snakemake.params.x_contigs),
        **snakemake.params.options,
        model_out=Path(snakemake.output.model),
        validation_out=Path(snakemake.output.validation),
        over_k_out=Path(snakemake.output.over_k),
        summary_out=Path(snakemake.output.summary),
        threads=snakemake.threads,
    )
    if "reason" in about:
        log.warning("population.ancestry: %s", about["reason"])
        print(f"population.ancestry: {about['reason']}.")
    log_counts(log, {key: about[key] for key in ("people", "sites", "k")})
