"""Join the nearest samples of all rows, and the distances of landmarks to everyone."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.neighbor_lists import join_neighbors

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    counts = join_neighbors(
        list(map(Path, snakemake.input.rows)),
        Path(snakemake.input.tree),
        params.cohorts,
        params.founders,
        Path(snakemake.output.neighbors),
        Path(snakemake.output.landmarks),
        k=params.k,
        min_called=params.min_called,
        on_uncomparable=params.on_uncomparable,
        threads=snakemake.threads,
    )
    log_counts(log, counts)
