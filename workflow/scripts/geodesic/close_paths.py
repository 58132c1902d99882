"""Compute the Fermat geodesics of the study in one space at one alpha."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.core.tables import read_table
from popdesic.distance.matrix import study_distances
from popdesic.engine.needs import closure_bytes
from popdesic.engine.select import select_backend
from popdesic.geodesic.graph import chosen_graph
from popdesic.geodesic.measure import measure_geodesics
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    samples = read_table(snakemake.input.samples)
    backend = select_backend(
        snakemake.params.device,
        snakemake.threads,
        device_bytes=closure_bytes(len(samples)),
        gpus=snakemake.resources.get("gpu", 1),
    )
    log.info("device: %s", backend.describe())
    space, alpha = snakemake.wildcards.space, snakemake.wildcards.alpha
    distances = study_distances(
        Path(snakemake.input.source[0]),
        space,
        pcs=snakemake.params.pcs,
        metric=snakemake.params.metric,
        n_sites=read_json(snakemake.input.panel)["n_sites"],
        min_called=snakemake.params.min_called,
        threads=snakemake.threads,
    )
    choice = next(map(Path, snakemake.input.choice), None)
    value, graph = chosen_graph(snakemake.params.graph, alpha, choice, space)
    statistics = measure_geodesics(
        distances,
        samples,
        set(snakemake.params.founders),
        backend,
        alpha=alpha,
        value=value,
        number=snakemake.params.number,
        ends=relatives_but_one(kinship_tiles(snakemake.input.kinship)),
        graph=graph,
        of_points=space == "pcs",
        dense_limit=snakemake.params.dense_limit,
        audit=snakemake.params.audit,
        code=snakemake.params.closure_code,
        statistics_out=Path(snakemake.output.statistics),
        record_out=Path(snakemake.output.record),
        closure_out=Path(snakemake.output.closure),
        closure_about_out=Path(snakemake.output.about),
    )
    log_counts(log, statistics)
