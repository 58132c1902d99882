"""Fit the null model of the scans, and compare the phenotype with the structure of the study."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.select import cpu_backend
from popdesic.epistasis.fit_null import fit_null_model, place_cohorts
from popdesic.epistasis.kin import read_relatives

with logged(snakemake.log[0], snakemake.input) as log:
    axes = None
    if snakemake.input.axes:
        beds = [Path(bed).with_suffix("") for bed in snakemake.input.genotypes]
        backend = cpu_backend(snakemake.threads)
        axes = place_cohorts(beds, *map(Path, snakemake.input.axes), backend)
    folder, sheet = Path(snakemake.input.planes[0]).parent, Path(snakemake.params.sheet)
    counts, warnings = fit_null_model(
        folder,
        sheet,
        axes,
        Path(snakemake.output.model),
        Path(snakemake.output.structure),
        relatives=read_relatives(folder, map(Path, snakemake.input.kinship), sheet),
        **snakemake.params.model,
    )
    for warning in warnings:
        log.warning("%s", warning)
    log_counts(log, counts)
