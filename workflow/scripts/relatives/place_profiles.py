"""Encode a file of query profiles or mixtures on the panel."""

from pathlib import Path

from popdesic.cohort.contigs import haploid_policies
from popdesic.core.log import log_counts, logged
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import header_contigs
from popdesic.relatives.queries import place_profiles

with logged(snakemake.log[0], snakemake.input) as log:
    counts = place_profiles(
        Path(snakemake.params.source),
        Path(snakemake.input.panel),
        Path(snakemake.output[0]).parent,
        haploid=haploid_policies(
            snakemake.params.haploid,
            snakemake.params.excluded_contigs,
            header_contigs([snakemake.params.source]),
        ),
        filters=CallFilters.parse(snakemake.params.filters),
        threads=snakemake.threads,
    )
    log_counts(log, counts)
