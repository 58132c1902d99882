"""Define the panel from the founders and write it."""

from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.contigs import genome_of_cohorts
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.core.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    founders = snakemake.params.founders
    genome = genome_of_cohorts(map(Path, snakemake.input.about), **snakemake.params.genome)
    filters = dict(snakemake.params.filters)
    excluded = genome.excluded(filters.pop("exclude_contigs"))
    for sentence in (genome.sentence(), *genome.notes):
        log.info("%s", sentence)
    steps = build_panel(
        dict(zip(founders, map(Path, snakemake.input.tables), strict=True)),
        Path(snakemake.output.sites),
        Path(snakemake.output.counts),
        PanelFilters(excluded, **filters),
        further_out=next(map(Path, snakemake.output.get("further", [])), None),
        genotypes={
            founder: (Path(file).with_suffix(""), Path(table))
            for founder, file, table in zip(
                founders, snakemake.input.about, snakemake.input.samples, strict=True
            )
        },
        absent={
            founder: Absent(*said)
            for founder, said in zip(founders, snakemake.params.absent, strict=True)
        },
        genome=genome.as_dict(),
        threads=snakemake.threads,
    )
    log_counts(log, steps)
