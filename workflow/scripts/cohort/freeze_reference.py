"""Freeze what is copied from as one file: a phased reference, or the founders of the study."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.copy_haplotypes import CopyOptions
from popdesic.cohort.freeze_founders import freeze_founders
from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    given, params, out = snakemake.input, snakemake.params, Path(snakemake.output[0])
    if params.reference:
        reference = Path(params.reference)
        counts = freeze_haplotypes(reference, out, params.map, threads=snakemake.threads)
    else:
        counts = freeze_founders(
            [Path(raw).with_suffix("") for raw in given.raws],
            [Path(table) for table in given.tables],
            Path(given.panel[0]),
            out,
            params.map,
            CopyOptions(seed=params.seed, threads=snakemake.threads),
            [Absent(*own) for own in params.absent],
        )
    log_counts(log, counts)
