"""Draw the map of the places, isolation by distance and barriers."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.geography import draw_geography

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_geography(
        Path(snakemake.input.summary).parent,
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        Path(snakemake.output[0]).parent,
        color_by=snakemake.params.color_by,
    )
    log.info("drawn: %s", ", ".join(names))
