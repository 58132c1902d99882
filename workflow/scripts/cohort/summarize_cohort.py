"""Compute the statistics of one cohort's samples and sites."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_cohorts
from popdesic.cohort.par import pseudoautosomal
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.sample_checks import Checks
from popdesic.cohort.samples import excluded_samples, pedigree, populations, sexes
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    sheet, limits = Path(snakemake.params.sheet), dict(snakemake.params.limits)
    params = snakemake.params
    genome = genome_of_cohorts([Path(snakemake.input[3])], **params.genome)
    for sentence in (genome.sentence(), *genome.notes):
        log.info("%s", sentence)
    counts = summarize_cohort(
        Path(snakemake.input[0]).with_suffix(""),
        populations(sheet),
        Path(snakemake.output.sites),
        Path(snakemake.output.samples),
        populations_out=Path(snakemake.output.populations),
        min_sample_call_rate=limits.pop("min_sample_call_rate"),
        threads=snakemake.threads,
        excluded=excluded_samples(sheet),
        checks=Checks(
            sexes=sexes(sheet),
            parents=pedigree(sheet),
            x_contigs=tuple(genome.x_contigs(params.x_contigs)),
            other_contigs=tuple(genome.excluded(params.exclude_contigs)),
            par=tuple(pseudoautosomal(genome.par_build())),
            **limits,
        ),
    )
    log_counts(log, counts)
