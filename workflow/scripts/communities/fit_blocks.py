"""Fit a nested stochastic block model to a graph of samples, here made of nearest neighbours."""

from pathlib import Path

from popdesic.communities.block_model import fit_blocks
from popdesic.communities.founders import is_founder
from popdesic.communities.geodesics import build_neighbor_graph
from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.distance.matrix import Distances, leading_scores, rows_of_points

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    graph = Path(files.source[0])
    for made in map(Path, snakemake.output.get("graph", [])):
        source, among = graph, None
        if params.store == "dense":
            among = is_founder(Path(files.samples), params.founders)
            if params.space == "pcs":
                source = rows_of_points(leading_scores(graph, params.pcs))
            else:
                n_sites = read_json(Path(files.panel))["n_sites"]
                source = Distances(graph.parent, n_sites=n_sites, **params.distance).rows
        log.info("%d edges", build_neighbor_graph(source, params.neighbors, made, among))
        graph = made
    missing = fit_blocks(
        graph,
        Path(snakemake.output.blocks),
        python=params.python,
        seed=params.seed,
        code=params.code,
        threads=snakemake.threads,
    )
    if missing:
        log.warning("%s", missing)
        print(missing)
