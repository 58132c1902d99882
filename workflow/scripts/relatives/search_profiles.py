"""Search query profiles or mixtures among the samples of all cohorts."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.engine.select import select_backend
from popdesic.relatives.queries import search_mixtures, search_queries
from popdesic.relatives.resolution import load_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend(snakemake.params.device, snakemake.threads)
    log.info("device: %s", backend.describe())
    search, options = search_mixtures, {}
    if snakemake.wildcards.kind == "identity":
        resolution = load_resolution(Path(snakemake.input.resolution))
        options = {"resolution": resolution, "error_rate": snakemake.params.error_rate}
        search = search_queries
    table = search(
        Path(snakemake.input.profiles[0]).parent,
        [Path(planes).parent for planes in snakemake.input.planes],
        Path(snakemake.input.panel),
        Path(snakemake.output[0]),
        backend,
        min_called=snakemake.params.min_called,
        **options,
    )
    log.info("verdicts: %s", table.verdict.value_counts().to_dict())
