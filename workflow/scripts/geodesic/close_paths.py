"""Compute the Fermat geodesics of the study in one space at one alpha."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table
from popdesic.engine.select import select_backend
from popdesic.geodesic.graph import chosen_graph
from popdesic.geodesic.study_paths import measure_paths
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    gpus = snakemake.resources.get("gpu", 1)
    space, alpha = snakemake.wildcards.space, snakemake.wildcards.alpha
    choice = next(map(Path, files.choice), None)
    value, graph = chosen_graph(params.graph, alpha, choice, space)
    statistics = measure_paths(
        params.store,
        list(map(Path, files.source)),
        space,
        read_table(files.samples),
        set(params.founders),
        lambda need: select_backend(params.device, snakemake.threads, device_bytes=need, gpus=gpus),
        alpha=alpha,
        value=value,
        graph=graph,
        listed=[Path(path) for path in files.listed if path.endswith(".json")],
        ends=relatives_but_one(kinship_tiles(files.kinship)),
        distance=params.distance | {"n_sites": read_json(files.panel)["n_sites"]},
        code=params.closure_code,
        out={name: Path(path) for name, path in snakemake.output.items()},
        threads=snakemake.threads,
    )
    log_counts(log, statistics)
