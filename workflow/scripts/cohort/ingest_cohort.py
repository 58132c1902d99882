"""Decode one cohort's genotype files to PLINK files."""

from pathlib import Path

from popdesic.cohort.contigs import haploid_policies
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.samples import excluded_samples
from popdesic.core.log import log_counts, logged
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import header_contigs

with logged(snakemake.log[0], snakemake.input) as log:
    counts = ingest_cohort(
        snakemake.params.sources,
        Path(snakemake.output[0]).with_suffix(""),
        haploid=haploid_policies(
            snakemake.params.haploid,
            snakemake.params.excluded_contigs,
            header_contigs(snakemake.params.sources),
        ),
        filters=CallFilters.parse(snakemake.params.filters),
        listed=snakemake.params.names,
        excluded=excluded_samples(Path(snakemake.params.sheet)),
        fasta=next(map(Path, snakemake.input.get("fasta", [])), None),
        threads=snakemake.threads,
    )
    log_counts(log, counts.as_dict())
    for remark in counts.remarks:
        log.info(remark)
