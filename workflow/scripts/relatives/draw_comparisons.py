"""Draw the figures of kinship and LD."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.compare import draw_comparisons

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_comparisons(
        {name: Path(path) for name, path in snakemake.input.items()},
        Path(snakemake.output[0]).parent,
    )
    log.info("drawn: %s", ", ".join(names))
