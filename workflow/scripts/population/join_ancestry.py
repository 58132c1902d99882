"""Join ancestry proportions of all cohorts."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.population.ancestry import join_cohorts

with logged(snakemake.log[0], snakemake.input):
    join_cohorts([Path(path) for path in snakemake.input], Path(snakemake.output[0]))
