"""Estimate statistics of populations from counts of cohorts, join ancestry, and draw both."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.population.ancestry import join_cohorts
from popdesic.population.measure import measure_population
from popdesic.report.figures.population import draw_population

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
    for joined in snakemake.output.get("ancestry", []):
        join_cohorts([Path(path) for path in snakemake.input.ancestry], Path(joined))
    folder = Path(snakemake.output.summary).parent
    names = draw_population(folder, folder.parent / "figures", snakemake.params.figures)
    log.info("drawn: %s", ", ".join(names))
