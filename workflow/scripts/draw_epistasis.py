"""Draw the figures of the epistasis scans."""

from pathlib import Path

from popdesic.io.log import logged
from popdesic.report.figures.epistasis import draw_epistasis

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_epistasis(
        Path(snakemake.input.hits[0]).parents[1],
        snakemake.params.orders,
        Path(snakemake.output[0]).parent,
    )
    log.info("drawn: %s", ", ".join(names))
