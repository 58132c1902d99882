"""Compute integer distances between the samples of two cohorts."""

from pathlib import Path

from popdesic.distance.tiles import measure_tile
from popdesic.engine.select import select_backend
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend(
        snakemake.params.device, snakemake.threads, snakemake.resources.host_memory_mb << 20
    )
    log.info("device: %s", backend.describe())
    counts = measure_tile(
        Path(snakemake.input.a[0]).parent,
        Path(snakemake.input.b[0]).parent,
        Path(snakemake.output[0]),
        backend,
        metric=snakemake.params.metric,
        missing=snakemake.params.missing,
        part=snakemake.params.part,
        parts=snakemake.params.parts,
    )
    log_counts(log, counts)
