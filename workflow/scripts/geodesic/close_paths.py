"""Compute the Fermat geodesics of the study, in one space at one alpha or in all."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table
from popdesic.engine.select import select_backend
from popdesic.geodesic.graph import chosen_graph
from popdesic.geodesic.study_paths import measure_paths
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    files, params, outputs = snakemake.input, snakemake.params, snakemake.output
    gpus = snakemake.resources.get("gpu", 1)
    choice = next(map(Path, files.choice), None)
    listed = [Path(path) for path in files.listed if path.endswith(".json")]
    for k, (space, alpha, source) in enumerate(params.paths):
        out = {
            name: Path(paths if isinstance(paths, str) else paths[k])
            for name, paths in outputs.items()
        }
        value, graph = chosen_graph(params.graph, alpha, choice, space)
        statistics = measure_paths(
            params.store,
            list(map(Path, source)),
            space,
            read_table(files.samples),
            set(params.founders),
            lambda need: select_backend(
                params.device, snakemake.threads, device_bytes=need, gpus=gpus
            ),
            alpha=alpha,
            value=value,
            graph=graph,
            listed=[path for path in listed if path.parent == out["statistics"].parent],
            ends=relatives_but_one(kinship_tiles(files.kinship)),
            distance=params.distance | {"n_sites": read_json(files.panel)["n_sites"]},
            code=params.closure_code,
            out=out,
            threads=snakemake.threads,
        )
        log.info("space %s, alpha = %s", space, alpha)
        log_counts(log, statistics)
        if params.store == "dense" and alpha != "auto":
            listed.append(out["statistics"])
