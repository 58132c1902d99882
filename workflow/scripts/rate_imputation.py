"""Measure how well Beagle imputes each site of a window of one cohort."""

from pathlib import Path

from popdesic.cohort.beagle import Beagle
from popdesic.cohort.imputation_quality import measure_quality
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    counts = measure_quality(
        Path(snakemake.input.raw[0]).with_suffix(""),
        Path(snakemake.input.samples),
        Path(snakemake.input.panel),
        Path(snakemake.input.windows),
        int(snakemake.wildcards.window),
        Path(snakemake.output[0]),
        cohort=snakemake.wildcards.cohort,
        settings=Beagle(
            threads=params.threads,
            memory_mb=params.memory_mb,
            seed=params.seed,
            reference=Path(params.reference) if params.reference else None,
            map=Path(params.map) if params.map else None,
        ),
    )
    log_counts(log, counts)
