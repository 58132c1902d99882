"""Prepare the panel for segments of identity by descent, by the founders."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.cohort.long_range_ld import regions_of
from popdesic.cohort.map_rates import rate_words
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.genome import prepare_genome
from popdesic.ibd.haploid_study import prepare_haploids

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    genome = genome_of_panel(Path(snakemake.input.counts))
    limits = {name: value for name, value in params.limits.items() if value != "auto"}
    exclude = params.long_range_ld == "exclude"
    if words := rate_words(params.genetic_map):
        log.info("%s", words)
    given = {"limits": SegmentLimits(**limits), "genetic_map": params.genetic_map}
    paths = [Path(snakemake.input.panel), *map(Path, snakemake.output)]
    folders = [Path(path).parent for path in snakemake.input.planes]
    backend = select_backend(params.device, snakemake.threads)
    if params.ploidy == 1:
        about = prepare_haploids(folders, *paths, backend, **given)
    else:
        about = prepare_genome(
            folders,
            *paths,
            backend,
            **given,
            measure="error_rate" not in limits,
            x_contigs=genome.x_contigs(params.x_contigs),
            regions=regions_of(genome.regions_build()) if exclude else [],
        )
    log_counts(log, {key: value for key, value in about.items() if key != "limits"})
