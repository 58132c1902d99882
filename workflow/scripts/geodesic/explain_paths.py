"""Trace the paths of the study's geodesics, and rank the samples that bridge others."""

from pathlib import Path

from popdesic.cohort.samples import describe_samples
from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.distance.matrix import study_distances
from popdesic.geodesic.explain import explain_geodesics, rank_bridges
from popdesic.relatives.kinship import kinship_tiles, relatives_but_one

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    samples = describe_samples(Path(files.samples), Path(params.sheet))
    n_sites = read_json(files.panel)["n_sites"]
    tables = {}
    for k, (space, alpha, source) in enumerate(params.paths):
        tables[space, alpha] = Path(outputs.bridges[k])
        counts = explain_geodesics(
            study_distances(Path(source[0]), space, n_sites=n_sites, **params.distance),
            samples,
            founders=samples.cohort.isin(params.founders).to_numpy(),
            statistics=read_json(files.statistics[k]),
            ends=relatives_but_one(kinship_tiles(files.kinship)),
            threads=snakemake.threads,
            parents_out=Path(outputs.parents[k]),
            hops_out=Path(outputs.hops[k]),
            bridges_out=tables[space, alpha],
        )
        log.info("space %s, alpha = %s", space, alpha)
        log_counts(log, counts)
    rank_bridges(tables, Path(outputs[0]))
