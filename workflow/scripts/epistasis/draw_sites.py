"""Draw the Manhattan and quantile plots of the main effects."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.sites_scan import draw_sites

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_sites(
        Path(snakemake.input[0]),
        Path(snakemake.output[0]).parent,
        snakemake.wildcards.get("phenotype", ""),
    )
    log.info("drawn: %s", ", ".join(names))
