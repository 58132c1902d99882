"""Freeze a phased reference as one file."""

from pathlib import Path

from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    counts = freeze_haplotypes(
        Path(params.reference), Path(snakemake.output[0]), params.map, threads=snakemake.threads
    )
    log_counts(log, counts)
