"""Build the graph of who shares segments of identity by descent with whom."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.ibd.graph import build_graph

with logged(snakemake.log[0], snakemake.input) as log:
    edges = build_graph(
        Path(snakemake.input.pairs),
        Path(snakemake.input.samples),
        snakemake.params.min_cm,
        Path(snakemake.output[0]),
    )
    log.info("%d edges", edges)
