"""Impute a cohort by copying from the haplotypes of a frozen reference."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.copy_cohort import copy_cohort
from popdesic.cohort.copy_haplotypes import CopyOptions
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    given, params = snakemake.input, snakemake.params
    counts = copy_cohort(
        Path(given.raw).with_suffix(""),
        Path(given.samples),
        Path(given.panel),
        Path(given.reference[0]),
        {name: Path(path) for name, path in snakemake.output.items()},
        CopyOptions(seed=params.seed, threads=snakemake.threads),
        absent=Absent(*params.absent),
    )
    log_counts(log, counts)
