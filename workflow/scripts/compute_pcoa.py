"""PCoA of the geodesic distances of one space."""

from pathlib import Path

from popdesic.embedding import compute_pcoa
from popdesic.log import log_counts, logged

with logged(snakemake.log[0]) as log:
    for lengths, table, statistics in zip(
        snakemake.input.lengths, snakemake.output.tables, snakemake.output.statistics, strict=True
    ):
        found = compute_pcoa(
            Path(lengths),
            Path(snakemake.input.samples),
            Path(snakemake.params.sheet),
            components=snakemake.params.components,
            table_out=Path(table),
            statistics_out=Path(statistics),
        )
        log.info("%s", lengths)
        log_counts(log, found)
