"""Trace the paths of the study's geodesics in one space at one alpha."""

from pathlib import Path

from popdesic.cohort.samples import describe_samples
from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.distance.matrix import study_distances
from popdesic.geodesic.explain import explain_geodesics
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    samples = describe_samples(Path(snakemake.input.samples), Path(snakemake.params.sheet))
    counts = explain_geodesics(
        study_distances(
            Path(snakemake.input.source[0]),
            snakemake.wildcards.space,
            pcs=snakemake.params.pcs,
            metric=snakemake.params.metric,
            n_sites=read_json(snakemake.input.panel)["n_sites"],
            min_called=snakemake.params.min_called,
        ),
        samples,
        founders=samples.cohort.isin(snakemake.params.founders).to_numpy(),
        statistics=read_json(snakemake.input.statistics),
        ends=relatives_but_one(kinship_tiles(snakemake.input.kinship)),
        threads=snakemake.threads,
        parents_out=Path(snakemake.output.parents),
        hops_out=Path(snakemake.output.hops),
        bridges_out=Path(snakemake.output.bridges),
    )
    log_counts(log, counts)
