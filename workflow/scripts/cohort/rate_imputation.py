"""Measure how well Beagle imputes each site of a window of one cohort."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.beagle import beagle_settings
from popdesic.cohort.imputation_quality import measure_quality
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    mem_mb = snakemake.resources.mem_mb
    counts = measure_quality(
        Path(snakemake.input.raw).with_suffix(""),
        Path(snakemake.input.samples),
        Path(snakemake.input.panel),
        Path(snakemake.input.windows),
        int(snakemake.wildcards.window),
        Path(snakemake.output[0]),
        cohort=snakemake.wildcards.cohort,
        settings=beagle_settings(mem_mb, params.seed, params.reference, params.map),
        absent=Absent(*params.absent),
    )
    log_counts(log, counts)
