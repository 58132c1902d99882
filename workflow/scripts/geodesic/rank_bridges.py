"""Rank the bridges of every space and alpha in one table."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.geodesic.explain import rank_bridges

with logged(snakemake.log[0], snakemake.input):
    keys = map(tuple, snakemake.params.tables)
    tables = dict(zip(keys, map(Path, snakemake.input), strict=True))
    rank_bridges(tables, Path(snakemake.output[0]))
