"""Prepare the panel for segments of identity by descent, by the founders."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.cohort.long_range_ld import regions_of
from popdesic.cohort.map_rates import rate_words
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.genome import prepare_genome

with logged(snakemake.log[0], snakemake.input) as log:
    params = snakemake.params
    genome = genome_of_panel(Path(snakemake.input.counts))
    limits = {name: value for name, value in params.limits.items() if value != "auto"}
    exclude = params.long_range_ld == "exclude"
    if words := rate_words(params.genetic_map):
        log.info("%s", words)
    about = prepare_genome(
        [Path(path).parent for path in snakemake.input.planes],
        Path(snakemake.input.panel),
        Path(snakemake.output.genome),
        Path(snakemake.output.summary),
        select_backend(params.device, snakemake.threads),
        limits=SegmentLimits(**limits),
        measure="error_rate" not in limits,
        x_contigs=genome.x_contigs(params.x_contigs),
        regions=regions_of(genome.regions_build()) if exclude else [],
        genetic_map=params.genetic_map,
    )
    log_counts(log, {key: value for key, value in about.items() if key != "limits"})
