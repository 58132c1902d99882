"""Find segments of identity by descent between one cohort and others."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.ibd.cohorts import measure_rows

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    out = Path(snakemake.output[0])
    counts = measure_rows(
        {out: list(map(tuple, params.pairs[out.parent.name]))},
        folders_of(snakemake.input.planes),
        Path(snakemake.input.genome),
        Path(snakemake.input.panel),
        lambda need: select_backend(params.device, snakemake.threads, device_bytes=need),
        params.tile_code,
    )
    log_counts(log, counts)
