"""Compare a cohort's alleles with a reference genome."""

from pathlib import Path

from popdesic.cohort.reference_check import check_reference
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    counts = check_reference(
        Path(snakemake.input.raw).with_suffix(""),
        Path(snakemake.input.fasta),
        Path(snakemake.output[0]),
    )
    log_counts(log, counts)
