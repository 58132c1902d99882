"""Encode query profiles or mixtures on the panel, and search them in all cohorts."""

from pathlib import Path

from popdesic.cohort.contigs import excluded_names, haploid_policies
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import header_contigs
from popdesic.relatives.queries import place_profiles, search_mixtures, search_queries
from popdesic.relatives.resolution import load_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    files, params, placed = snakemake.input, snakemake.params, snakemake.params.placed
    profiles, panel = Path(snakemake.output.profiles[0]).parent, Path(files.panel)
    contigs = header_contigs([params.source])
    counts = place_profiles(
        Path(params.source),
        panel,
        profiles,
        haploid=haploid_policies(placed["haploid"], placed["excluded_contigs"], contigs),
        excluded_contigs=excluded_names(placed["excluded_contigs"], contigs),
        filters=CallFilters.parse(placed["filters"]),
        threads=snakemake.threads,
    )
    log_counts(log, counts)
    backend = select_backend(params.device, snakemake.threads)
    log.info("device: %s", backend.describe())
    search, options = search_mixtures, {}
    if snakemake.wildcards.kind == "identity":
        resolution = load_resolution(Path(files.resolution))
        options = {"resolution": resolution, "error_rate": params.error_rate}
        options["ploidy"] = params.ploidy
        search = search_queries
    table = search(
        profiles,
        [Path(planes).parent for planes in files.planes],
        panel,
        Path(snakemake.output.table),
        backend,
        min_called=params.min_called,
        **options,
    )
    log.info("verdicts: %s", table.verdict.value_counts().to_dict())
