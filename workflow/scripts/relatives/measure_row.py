"""Distances and comparisons of one cohort with others: its rows of tiles."""

from dataclasses import replace
from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.distance import store
from popdesic.distance.fill_rows import update_rows
from popdesic.distance.rows import ROW, folders_of
from popdesic.engine.select import select_backend
from popdesic.relatives import cohorts
from popdesic.relatives.resolution import load_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    params, files = snakemake.params, snakemake.input
    folders, panel = folders_of(files.planes), Path(files.panel)
    founders = dict(zip(params.founders, map(Path, files.founders), strict=True))
    results, works = Path(snakemake.output.distance).parents[3], []
    for row, pairs in params.pairs["distance"].items():
        out, pairs = results / "distance/tiles" / row / ROW, list(map(tuple, pairs))
        work = store.row_work(
            params.store, out, pairs, folders, founders, code=params.tile_code, **params.distance
        )
        works.append(replace(work, label="distances: "))
    for row, pairs in params.pairs["compare"].items():
        limits = cohorts.Limits(
            **params.limits, resolution=load_resolution(Path(files.resolution[0]))
        )
        out, pairs = results / "compare/tiles" / row / ROW, list(map(tuple, pairs))
        work = cohorts.row_work(out, pairs, folders, panel, limits, params.compare_code)
        works.append(replace(work, label="comparisons: "))
    host_bytes = snakemake.resources.host_memory_mb << 20

    def backend(need):
        return select_backend(params.device, snakemake.threads, host_bytes, need)

    log_counts(log, update_rows(works, folders, backend, snakemake.wildcards.row))
