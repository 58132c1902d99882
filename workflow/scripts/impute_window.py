"""Impute one window of a cohort with Beagle."""

from pathlib import Path

from popdesic.cohort.beagle import Beagle, impute_window
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    counts = impute_window(
        Path(snakemake.input.raw[0]).with_suffix(""),
        Path(snakemake.input.samples),
        Path(snakemake.input.panel),
        Path(snakemake.input.windows),
        int(snakemake.wildcards.window),
        Path(snakemake.output[0]).with_suffix(""),
        Beagle(
            threads=params.threads,
            memory_mb=params.memory_mb,
            seed=params.seed,
            reference=Path(params.reference) if params.reference else None,
            map=Path(params.map) if params.map else None,
        ),
    )
    log_counts(log, counts)
