"""Rank the bridges of every space and alpha in one table."""

from pathlib import Path

from popdesic.geodesic.explain import rank_bridges
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input):
    keys = map(tuple, snakemake.params.tables)
    tables = dict(zip(keys, map(Path, snakemake.input), strict=True))
    rank_bridges(tables, Path(snakemake.output[0]))
