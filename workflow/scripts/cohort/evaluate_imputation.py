"""Hide called genotypes of a window, impute them with each requested method, compare."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.accuracy import evaluate_window
from popdesic.cohort.beagle import beagle_settings
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, wildcards = snakemake.params, snakemake.wildcards
    mem_mb = snakemake.resources.mem_mb
    counts = evaluate_window(
        Path(snakemake.input.raw).with_suffix(""),
        Path(snakemake.input.samples),
        Path(snakemake.input.panel),
        Path(snakemake.input.windows),
        int(wildcards.window),
        Path(snakemake.output[0]),
        cohort=wildcards.cohort,
        seed=params.seed,
        methods=params.methods,
        settings=beagle_settings(mem_mb, params.seed, params.reference, params.map),
        absent=Absent(*params.absent),
    )
    log_counts(log, counts)
