"""Compute tiles of nearest samples and of comparisons of some cohorts with others."""

from dataclasses import replace
from pathlib import Path

from popdesic.core.files import read_json, write_json
from popdesic.core.log import log_counts, logged
from popdesic.distance import neighbors
from popdesic.distance.fill_rows import fill_rows
from popdesic.distance.landmarks import landmarks_of_cohorts
from popdesic.distance.rows import ROW, folders_of
from popdesic.engine.select import select_backend
from popdesic.relatives import cohorts
from popdesic.relatives.resolution import load_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    params, out = snakemake.params, Path(snakemake.output[0])
    host_bytes = snakemake.resources.host_memory_mb << 20
    about = zip(params.founders, snakemake.input.founders, strict=True)
    sizes = {cohort: len(read_json(Path(path))["samples"]) for cohort, path in about}
    folders = folders_of(snakemake.input.planes)
    limits = cohorts.Limits(
        **params.limits, resolution=load_resolution(Path(snakemake.input.resolution))
    )
    panel, landmarks = Path(snakemake.input.panel), landmarks_of_cohorts(sizes)
    tiles = out.parents[1]
    works = []
    for row, pairs in params.near.items():
        options = {"k": params.k, "metric": params.metric, "missing": params.missing}
        options |= {"min_called": params.min_called, "landmarks": landmarks}
        path = tiles / row / ROW
        work = neighbors.row_work(
            path, list(map(tuple, pairs)), folders, **options, code=params.code_near
        )
        works.append(replace(work, label="nearest: "))
    for row, pairs in params.compared.items():
        path = tiles.parents[1] / "compare/tiles" / row / ROW
        pairs = list(map(tuple, pairs))
        work = cohorts.row_work(path, pairs, folders, panel, limits, params.code_compared)
        works.append(replace(work, label="compared: "))

    def backend(need):
        return select_backend(params.device, snakemake.threads, host_bytes, need)

    log_counts(log, fill_rows(works, folders, backend))
    write_json(out, {"cohort": snakemake.wildcards.row})
