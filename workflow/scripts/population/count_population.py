"""Count the genotypes of a cohort by population and site, and find its runs of homozygosity."""

from pathlib import Path

from popdesic.cohort.contigs import genome_of_panel
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.population.counts import count_cohort
from popdesic.population.runs import RunLimits

with logged(snakemake.log[0], snakemake.input) as log:
    genome = genome_of_panel(Path(snakemake.input.panel_counts))
    device = snakemake.params.device if snakemake.resources.get("gpu") else "cpu"
    runs = snakemake.output.get("runs")
    unrelated, row = [*map(Path, snakemake.input.relatives), None, None][:2]
    about = count_cohort(
        Path(snakemake.input.planes[0]).parent,
        Path(snakemake.input.panel),
        Path(snakemake.params.sheet),
        cohort=snakemake.wildcards.cohort,
        x_contigs=genome.x_contigs(snakemake.params.x_contigs),
        column=snakemake.params.column,
        runs=RunLimits(**snakemake.params.limits) if runs else None,
        counts_out=Path(snakemake.output.counts),
        samples_out=Path(snakemake.output.samples),
        runs_out=Path(runs) if runs else None,
        unrelated=unrelated,
        row=row,
        max_kinship=snakemake.params.max_kinship,
        threads=snakemake.threads,
        backend=lambda need: select_backend(device, snakemake.threads, device_bytes=need),
    )
    log_counts(log, about)
