"""Sum the parts of one tile, whose sites were split among several jobs."""

from pathlib import Path

from popdesic.distance.tiles import sum_parts
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    log_counts(log, sum_parts(list(map(Path, snakemake.input)), Path(snakemake.output[0])))
