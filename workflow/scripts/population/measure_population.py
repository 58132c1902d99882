"""Estimate diversity, differentiation and f-statistics of populations from counts of cohorts."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.population.measure import measure_population

with logged(snakemake.log[0], snakemake.input) as log:
    about = measure_population(
        [Path(path) for path in snakemake.input.counts],
        [Path(path) for path in snakemake.input.samples],
        [Path(path) for path in snakemake.input.get("runs", [])],
        Path(snakemake.input.panel),
        Path(snakemake.output.summary).parent,
        **snakemake.params.options,
        threads=snakemake.threads,
    )
    log_counts(log, about)
