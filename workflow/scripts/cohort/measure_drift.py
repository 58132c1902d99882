"""Measure the drift of each cohort from the panel."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.drift import measure_drift
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, given = snakemake.params, snakemake.input
    drift = measure_drift(
        dict(zip(params.cohorts, map(Path, given.sites), strict=True)),
        Path(given.panel),
        set(params.founders),
        Path(snakemake.output[0]),
        genotypes={
            cohort: (Path(file).with_suffix(""), Path(table))
            for cohort, file, table in zip(params.cohorts, given.raw, given.samples, strict=True)
        },
        absent={
            cohort: Absent(*said)
            for cohort, said in zip(params.cohorts, params.absent, strict=True)
        },
    )
    log.info("\n%s", drift.to_string(index=False))
