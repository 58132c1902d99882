"""Measure kinship, identity and contamination between one cohort and others."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance.fill_rows import update_row
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.relatives.cohorts import Limits, row_work
from popdesic.relatives.resolution import load_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    folders = folders_of(snakemake.input.planes)
    work = row_work(
        Path(snakemake.output[0]),
        list(map(tuple, params.pairs)),
        folders,
        Path(snakemake.input.panel),
        Limits(**params.limits, resolution=load_resolution(Path(snakemake.input.resolution))),
        params.code,
    )

    def backend(need):
        return select_backend(params.device, snakemake.threads, device_bytes=need)

    log_counts(log, update_row(work, folders, backend))
