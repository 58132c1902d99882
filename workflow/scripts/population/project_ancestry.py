"""Ancestry proportions of a cohort."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.population.ancestry import project_cohort

with logged(snakemake.log[0], snakemake.input) as log:
    about = project_cohort(
        Path(snakemake.input.genotypes[0]).with_suffix(""),
        Path(snakemake.input.model),
        Path(snakemake.params.sheet),
        cohort=snakemake.wildcards.cohort,
        column=snakemake.params.column,
        out=Path(snakemake.output[0]),
    )
    log_counts(log, about)
