"""Statistics of one cohort's samples and sites."""

from pathlib import Path

from popdesic.log import log_counts, logged
from popdesic.qc import summarize_cohort
from popdesic.sheets import populations

with logged(snakemake.log[0]) as log:
    counts = summarize_cohort(
        Path(snakemake.input[0]).with_suffix(""),
        populations(Path(snakemake.params.sheet)),
        Path(snakemake.output.sites),
        Path(snakemake.output.samples),
        min_sample_call_rate=snakemake.params.min_sample_call_rate,
        threads=snakemake.threads,
    )
    log_counts(log, counts)
