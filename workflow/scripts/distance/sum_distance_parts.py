"""Sum the parts of a row of tiles, whose sites were split among several jobs."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.measure_row import sum_row
from popdesic.distance.rows import folders_of

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    counts = sum_row(
        Path(snakemake.output[0]),
        list(map(Path, snakemake.input.parts)),
        list(map(tuple, params.pairs)),
        folders_of(snakemake.input.planes),
        metric=params.metric,
        missing=params.missing,
        code=params.code,
    )
    log_counts(log, counts)
