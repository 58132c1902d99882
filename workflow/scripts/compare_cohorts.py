"""Measure kinship, identity and contamination between one cohort and others."""

from pathlib import Path

from popdesic.compare.cohorts import Limits, compare_row
from popdesic.compare.resolution import load_resolution
from popdesic.distance.rows import folders_of
from popdesic.engine.select import select_backend
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    counts = compare_row(
        Path(snakemake.output[0]),
        list(map(tuple, params.pairs)),
        folders_of(snakemake.input.planes),
        Path(snakemake.input.panel),
        lambda need: select_backend(params.device, snakemake.threads, device_bytes=need),
        Limits(**params.limits, resolution=load_resolution(Path(snakemake.input.resolution))),
        params.code,
    )
    log_counts(log, counts)
