"""Encode one cohort on the panel."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.encode import encode_cohort
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    counts = encode_cohort(
        Path(snakemake.input.raw).with_suffix(""),
        Path(snakemake.input.samples),
        Path(snakemake.input.panel),
        Path(snakemake.output.planes[0]).parent,
        impute=snakemake.params.impute,
        cohort=snakemake.wildcards.cohort,
        threads=snakemake.threads,
        imputed=[Path(path) for path in snakemake.input.get("imputed", [])],
        absent=Absent(*snakemake.params.absent),
    )
    log_counts(log, counts)
