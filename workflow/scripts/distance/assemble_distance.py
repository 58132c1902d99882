"""Assemble the distance matrices from the tiles of all pairs of cohorts."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.rows import read_tiles
from popdesic.distance.tiles import assemble_tiles

with logged(snakemake.log[0], snakemake.input) as log:
    counts = assemble_tiles(
        read_tiles(snakemake.input, ".npz"),
        list(snakemake.params.cohorts),
        Path(snakemake.output.samples).parent,
        metric=snakemake.params.metric,
        min_called=snakemake.params.min_called,
        on_uncomparable=snakemake.params.on_uncomparable,
        threads=snakemake.threads,
    )
    log_counts(log, counts)
