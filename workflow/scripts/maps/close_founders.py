"""Compute geodesics through founders only, for maps that new cohorts do not change."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.core.tables import read_table
from popdesic.distance.matrix import study_distances
from popdesic.engine.select import select_backend
from popdesic.geodesic.founder_paths import founder_lengths
from popdesic.geodesic.graph import Graph
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    backend = select_backend(params.device, snakemake.threads)
    log.info("device: %s", backend.describe())
    distances = study_distances(
        Path(snakemake.input.source[0]),
        snakemake.wildcards.space,
        pcs=params.pcs,
        metric=params.metric,
        n_sites=read_json(snakemake.input.panel)["n_sites"],
        min_called=params.min_called,
    )
    statistics = read_json(snakemake.input.statistics)
    samples = read_table(snakemake.input.samples)
    lengths = founder_lengths(
        distances,
        samples.cohort.isin(params.founders).to_numpy(),
        list(samples["sample"]),
        backend,
        alpha=statistics["value"],
        ends=samples["sample"]
        .isin(relatives_but_one(kinship_tiles(snakemake.input.kinship)))
        .to_numpy(),
        graph=Graph(**statistics["graph"]),
        of_points=snakemake.wildcards.space == "pcs",
        out=Path(snakemake.output[0]),
    )
    log.info("%d samples, %d founders", *lengths.shape)
