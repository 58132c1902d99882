"""Draw figures of the statistics of populations."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.population import draw_population

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_population(
        Path(snakemake.input.tables[0]).parent,
        Path(snakemake.output[0]).parent,
        snakemake.params.names,
    )
    log.info("drawn: %s", ", ".join(names))
