"""Define the panel from the founders and write it."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_cohorts
from popdesic.cohort.define_panel import build_panel
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    founders = snakemake.params.founders
    genome = genome_of_cohorts(map(Path, snakemake.input.about), **snakemake.params.genome)
    filters = dict(snakemake.params.filters)
    excluded = genome.excluded(filters.pop("exclude_contigs"))
    for sentence in (genome.sentence(), *genome.notes):
        log.info("%s", sentence)
    # both are empty unless the panel is pruned
    raw, samples = snakemake.input.get("raw", []), snakemake.input.get("samples", [])
    steps = build_panel(
        dict(zip(founders, map(Path, snakemake.input.tables), strict=True)),
        Path(snakemake.output.sites),
        Path(snakemake.output.counts),
        genotypes={
            founder: (Path(bed).with_suffix(""), Path(table))
            for founder, bed, table in zip(founders, raw, samples, strict=False)
        },
        exclude_contigs=excluded,
        genome=genome.as_dict(),
        **filters,
        threads=snakemake.threads,
    )
    log_counts(log, steps)
