"""The founders' minimum spanning tree from their nearest samples."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.neighbor_lists import span_founders
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    host_bytes = snakemake.resources.host_memory_mb << 20
    counts = span_founders(
        list(map(Path, snakemake.input.rows)),
        folders_of(snakemake.input.planes),
        params.founders,
        Path(snakemake.output[0]),
        lambda need: select_backend(params.device, snakemake.threads, host_bytes, need),
        k=params.k,
        metric=params.metric,
        missing=params.missing,
        min_called=params.min_called,
        threads=snakemake.threads,
    )
    log_counts(log, counts)
