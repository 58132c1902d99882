"""Decode the genotype files of one cohort, or of a batch of small ones, to PLINK files."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.contigs import haploid_policies
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.samples import excluded_samples
from popdesic.core.log import log_counts, logged
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import header_contigs

with logged(snakemake.log[0], snakemake.input) as log:
    params, prefix = snakemake.params, Path(snakemake.output[0]).with_suffix("")
    excluded = excluded_samples(Path(params.sheet))

    def decode(cohort: str, out: Path):
        sources, names = params.cohorts[cohort]
        return ingest_cohort(
            sources,
            out,
            haploid=haploid_policies(
                params.haploid, params.excluded_contigs, header_contigs(sources)
            ),
            filters=CallFilters.parse(params.filters),
            listed=names,
            excluded=excluded,
            fasta=next(map(Path, snakemake.input.get("fasta", [])), None),
            threads=snakemake.threads,
        )

    cohorts = list(params.cohorts)
    if cohorts == [snakemake.wildcards.cohort]:
        found = decode(cohorts[0], prefix)
        counts, remarks = found.as_dict(), found.remarks
    else:
        from popdesic.cohort.batch import ingest_batch

        how = {"founders": params.founder, "absent": Absent(*params.absent)}
        counts, remarks = ingest_batch(cohorts, decode, prefix, **how)
    log_counts(log, counts)
    for remark in remarks:
        log.info(remark)
