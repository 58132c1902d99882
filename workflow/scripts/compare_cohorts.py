"""Measure kinship, identity and contamination between the samples of two cohorts."""

from pathlib import Path

from popdesic.compare.cohorts import Limits, compare_cohorts
from popdesic.compare.resolution import load_resolution
from popdesic.engine.select import select_backend
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend(snakemake.params.device, snakemake.threads)
    log.info("device: %s", backend.describe())
    counts = compare_cohorts(
        Path(snakemake.input.a[0]).parent,
        Path(snakemake.input.b[0]).parent,
        Path(snakemake.input.panel),
        {name: Path(path) for name, path in snakemake.output.items()},
        backend,
        Limits(
            **snakemake.params.limits,
            resolution=load_resolution(Path(snakemake.input.resolution)),
        ),
    )
    log_counts(log, counts)
