"""Decode the genotype files of one cohort, or of a batch of small ones; its quality control."""

import json
from pathlib import Path

from popdesic.cohort.contigs import genome_of_cohorts
from popdesic.cohort.decode import decode_unit
from popdesic.cohort.par import pseudoautosomal
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.sample_checks import Checks
from popdesic.cohort.samples import excluded_samples, pedigree, populations, read_samples, sexes
from popdesic.core.files import digest
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, outputs, threads = snakemake.params, snakemake.output, snakemake.threads
    about, sheet = Path(outputs.about), Path(params.sheet)
    excluded, people = excluded_samples(sheet), read_samples(sheet)
    decoded = dict(params.decoded)
    key = digest(json.dumps(decoded))
    for part in ("files", "code"):  # of the key alone
        del decoded[part]
    counts, remarks = decode_unit(
        about.with_suffix(""),
        **decoded,
        key=key,
        listed=people["sample"][people.cohort.isin(decoded["cohorts"])].tolist(),
        excluded=excluded,
        threads=threads,
    )
    log_counts(log, counts)
    genome, limits = genome_of_cohorts([about], **params.genome), dict(params.limits)
    for remark in (*remarks, genome.sentence(), *genome.notes):
        log.info("%s", remark)
    counts = summarize_cohort(
        about.with_suffix(""),
        populations(sheet),
        Path(outputs.sites),
        Path(outputs.samples),
        populations_out=Path(outputs.populations),
        min_sample_call_rate=limits.pop("min_sample_call_rate"),
        threads=threads,
        excluded=excluded,
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
