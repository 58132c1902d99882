"""Join the tiles of all rows: distance matrices, or the nearest samples of everyone."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.store import join_rows

with logged(snakemake.log[0], snakemake.input) as log:
    counts = join_rows(
        snakemake.params.store,
        list(map(Path, snakemake.input.rows)),
        snakemake.params.cohorts,
        snakemake.params.founders,
        Path(snakemake.output.samples).parent,
        **snakemake.params.distance,
        threads=snakemake.threads,
    )
    log_counts(log, counts)
