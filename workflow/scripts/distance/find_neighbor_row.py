"""Find the nearest samples of one cohort and of others in each other."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.distance.fill_rows import update_row
from popdesic.distance.landmarks import landmarks_of_cohorts
from popdesic.distance.neighbors import row_work
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    host_bytes = snakemake.resources.host_memory_mb << 20
    about = zip(params.founders, snakemake.input.founders, strict=True)
    sizes = {cohort: len(read_json(Path(path))["samples"]) for cohort, path in about}
    folders = folders_of(snakemake.input.planes)
    work = row_work(
        Path(snakemake.output[0]),
        list(map(tuple, params.pairs)),
        folders,
        k=params.k,
        metric=params.metric,
        missing=params.missing,
        min_called=params.min_called,
        landmarks=landmarks_of_cohorts(sizes),
        code=params.code,
    )

    def backend(need):
        return select_backend(params.device, snakemake.threads, host_bytes, need)

    log_counts(log, update_row(work, folders, backend))
