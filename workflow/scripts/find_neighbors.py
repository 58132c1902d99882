"""Find the nearest samples of everyone, and the distances of landmarks to everyone."""

from pathlib import Path

from popdesic.distance.neighbors import device_need, write_neighbors
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    host_bytes = snakemake.resources.host_memory_mb << 20
    found = folders_of(snakemake.input.planes)
    folders = [found[cohort] for cohort in params.cohorts]
    need = device_need(folders, params.k, params.metric)
    backend = select_backend(params.device, snakemake.threads, host_bytes, need)
    log.info("device: %s", backend.describe())
    counts = write_neighbors(
        folders,
        Path(snakemake.output.neighbors),
        backend,
        k=params.k,
        metric=params.metric,
        missing=params.missing,
        min_called=params.min_called,
        on_uncomparable=params.on_uncomparable,
        founders=params.founders,
        landmarks_out=Path(snakemake.output.landmarks),
        code=params.code,
    )
    log_counts(log, counts)
