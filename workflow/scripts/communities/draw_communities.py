"""Draw the figures of the communities."""

from pathlib import Path

from popdesic.communities.agreement import compare_labels
from popdesic.core.log import logged
from popdesic.report.figures.communities import draw_communities

with logged(snakemake.log[0], snakemake.input) as log:
    compare_labels(
        Path(snakemake.input.partition),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        Path(snakemake.output.agreement),
    )
    names = draw_communities(
        Path(snakemake.input.lengths),
        Path(snakemake.input.partition),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        Path(snakemake.output.png[0]).parent,
        color_by=snakemake.params.color_by,
        tree=next(map(Path, snakemake.input.get("tree", [])), None),
        title=snakemake.params.title,
        landmarks=next(map(Path, snakemake.input.get("landmarks", [])), None),
        processes=snakemake.threads,
    )
    log.info("drawn: %s", ", ".join(names))
