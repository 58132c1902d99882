"""Build the nearest-neighbour graph by geodesic distance."""

from pathlib import Path

from popdesic.communities.geodesics import build_geodesic_graph
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    edges = build_geodesic_graph(
        Path(snakemake.input.lengths), snakemake.params.neighbors, Path(snakemake.output[0])
    )
    log.info("%d edges", edges)
