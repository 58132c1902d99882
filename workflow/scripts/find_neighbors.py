"""Find the nearest samples of everyone, and the distances of landmarks to everyone."""

from pathlib import Path

from popdesic.distance.neighbors import write_neighbors
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    host_bytes = snakemake.resources.host_memory_mb << 20
    folders = folders_of(snakemake.input.planes)
    backend = select_backend(params.device, snakemake.threads, host_bytes)
    log.info("device: %s", backend.describe())
    counts = write_neighbors(
        [folders[cohort] for cohort in params.cohorts],
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
