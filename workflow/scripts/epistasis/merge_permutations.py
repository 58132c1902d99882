"""Merge the units of permuted scans into the best score of each."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.epistasis.permutations import merge_permutations

with logged(snakemake.log[0], snakemake.input):
    units, out = [Path(path) for path in snakemake.input], Path(snakemake.output[0])
    merge_permutations(units, out, permutations=snakemake.params.permutations)
