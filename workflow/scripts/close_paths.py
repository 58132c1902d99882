"""Compute the Fermat geodesics of the study in one space at one alpha."""

from pathlib import Path

from popdesic.compare.kinship import kinship_tiles, relatives_but_one
from popdesic.distance.matrix import study_distances
from popdesic.engine.needs import closure_bytes
from popdesic.engine.select import select_backend
from popdesic.geodesic.graph import Graph
from popdesic.geodesic.measure import measure_geodesics
from popdesic.io.files import read_json
from popdesic.io.log import log_counts, logged
from popdesic.io.tables import read_table

with logged(snakemake.log[0], snakemake.input) as log:
    samples = read_table(snakemake.input.samples)
    backend = select_backend(
        snakemake.params.device, snakemake.threads, device_bytes=closure_bytes(len(samples))
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
    )
    value, graph = alpha, snakemake.params.graph
    if alpha == "auto":
        choice = read_json(snakemake.input.choice[0])[space]
        value = choice["alpha"]
        wanted = graph["neighbors"] if graph["density"] == "correct" else 0
        graph |= {"kind": choice["graph"], "neighbors": choice["neighbors"] or wanted}
    statistics = measure_geodesics(
        distances,
        samples,
        set(snakemake.params.founders),
        backend,
        alpha=alpha,
        value=float(value),
        number=snakemake.params.number,
        ends=relatives_but_one(kinship_tiles(snakemake.input.kinship)),
        graph=Graph(**graph),
        of_points=space == "pcs",
        dense_limit=snakemake.params.dense_limit,
        audit=snakemake.params.audit,
        code=snakemake.params.closure_code,
        lengths_out=Path(snakemake.output.lengths),
        statistics_out=Path(snakemake.output.statistics),
        record_out=Path(snakemake.output.record),
        closure_out=Path(snakemake.output.closure),
        closure_about_out=Path(snakemake.output.about),
    )
    log_counts(log, statistics)
