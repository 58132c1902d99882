"""Define the axes of the PCA: sites, frequencies, number and loadings, from the founders."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.cohort.long_range_ld import regions_of
from popdesic.components.axes_together import define_together
from popdesic.components.define_axes import define_axes
from popdesic.core.log import log_counts, logged
from popdesic.engine.needs import genotype_bytes
from popdesic.engine.select import select_backend
from popdesic.io.bed import open_bed, read_fam

with logged(snakemake.log[0], snakemake.input) as log:
    prefixes = [Path(bed).with_suffix("") for bed in snakemake.input.genotypes]
    genome = genome_of_panel(Path(snakemake.input.counts))
    exclude = snakemake.params.long_range_ld == "exclude"
    arguments = dict(
        prefixes=prefixes,
        panel=Path(snakemake.input.panel),
        unrelated=next(map(Path, snakemake.input.get("unrelated", [])), None),
        **snakemake.params.axes,
        regions=regions_of(genome.regions_build()) if exclude else [],
        out={
            "axes": Path(snakemake.output.axes),
            "about": Path(snakemake.output.about),
            "loadings": Path(snakemake.output.loadings),
        },
        threads=snakemake.threads,
    )
    if launcher := snakemake.resources.get("mpi"):
        log.info("device: cpu, %d processes by %s", snakemake.resources.tasks, launcher)
        given = launcher, snakemake.resources.tasks, arguments, snakemake.input
        about = define_together(*given)
    else:
        sizes = sum(len(read_fam(prefix)) for prefix in prefixes), len(open_bed(prefixes[0]))
        backend = select_backend(
            snakemake.params.device, snakemake.threads, device_bytes=genotype_bytes(*sizes)
        )
        log.info("device: %s", backend.describe())
        about = define_axes(**arguments, backend=backend)
    log_counts(log, about)
