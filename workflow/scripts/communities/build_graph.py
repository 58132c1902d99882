"""Build the graph of nearest neighbours, of the founders where all pairs have a distance."""

from pathlib import Path

from popdesic.communities.founders import is_founder
from popdesic.communities.geodesics import build_neighbor_graph
from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.distance.matrix import Distances, leading_scores, rows_of_points

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    among = None
    if files.get("lists"):
        source = Path(files.lists)
    else:
        among = is_founder(Path(files.samples), params.founders)
        if params.space == "pcs":
            source = rows_of_points(leading_scores(Path(files.source[0]), params.pcs))
        else:
            n_sites = read_json(Path(files.panel))["n_sites"]
            folder = Path(files.source[0]).parent
            source = Distances(folder, n_sites=n_sites, **params.distance).rows
    edges = build_neighbor_graph(source, params.neighbors, Path(snakemake.output[0]), among)
    log.info("%d edges", edges)
