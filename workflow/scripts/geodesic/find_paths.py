"""Find the geodesics among nearest neighbours of the study in one space at one alpha."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table
from popdesic.distance.landmarks import read_landmarks, read_neighbors
from popdesic.geodesic.graph import chosen_graph
from popdesic.geodesic.near_paths import measure_near_geodesics
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    space, alpha = snakemake.wildcards.space, snakemake.wildcards.alpha
    lists = read_neighbors(Path(files.source[0]))
    value, graph = chosen_graph(params.graph, alpha, next(map(Path, files.choice), None), space)
    statistics = measure_near_geodesics(
        lists,
        read_landmarks(Path(files.source[1]), lists.landmarks),
        read_table(files.samples),
        set(params.founders),
        alpha=alpha,
        value=value,
        number=params.number,
        ends=relatives_but_one(kinship_tiles(files.kinship)),
        graph=graph,
        of_points=space == "pcs",
        neighbors_out=Path(outputs.neighbors),
        landmarks_out=Path(outputs.landmarks),
        statistics_out=Path(outputs.statistics),
        record_out=Path(outputs.record),
        threads=snakemake.threads,
    )
    log_counts(log, statistics)
