"""Draw pairs by shared length and number of segments."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.ibd import draw_ibd

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_ibd(Path(snakemake.input.pairs), Path(snakemake.output[0]).parent)
    log.info("drawn: %s", ", ".join(names))
