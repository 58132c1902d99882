"""Compute integer distances between the samples of one cohort and those of others."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.measure_row import measure_row
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    host_bytes = snakemake.resources.host_memory_mb << 20
    counts = measure_row(
        Path(snakemake.output[0]),
        list(map(tuple, params.pairs)),
        folders_of(snakemake.input.planes),
        lambda need: select_backend(params.device, snakemake.threads, host_bytes, need),
        metric=params.metric,
        missing=params.missing,
        code=params.code,
        part=params.part,
        parts=params.parts,
        whole=Path("results/distance/tiles", snakemake.wildcards.row, "row.json"),
    )
    log_counts(log, counts)
