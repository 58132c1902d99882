"""Measure the drift of each cohort from the panel."""

from pathlib import Path

from popdesic.cohort.drift import measure_drift
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    drift = measure_drift(
        dict(zip(snakemake.params.cohorts, map(Path, snakemake.input.sites), strict=True)),
        Path(snakemake.input.panel),
        set(snakemake.params.founders),
        Path(snakemake.output[0]),
    )
    log.info("\n%s", drift.to_string(index=False))
