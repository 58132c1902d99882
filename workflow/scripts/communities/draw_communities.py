"""Draw the figures of the communities."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.report.figures.communities import draw_communities

with logged(snakemake.log[0], snakemake.input) as log:
    names = draw_communities(
        Path(snakemake.input.lengths),
        Path(snakemake.input.partition),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        Path(snakemake.output[0]).parent,
        color_by=snakemake.params.color_by,
        tree=next(map(Path, snakemake.input.get("tree", [])), None),
        title=snakemake.params.title,
        landmarks=next(map(Path, snakemake.input.get("landmarks", [])), None),
        processes=snakemake.threads,
    )
    log.info("drawn: %s", ", ".join(names))
