"""Draw the power of the epistasis scans by number of people."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.epistasis_zoom import draw_power

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_power(
        Path(snakemake.input[0]),
        snakemake.params.models,
        Path(snakemake.output[0]).parent,
        snakemake.wildcards.get("phenotype", ""),
    )
    log.info("drawn: %s", ", ".join(names))
