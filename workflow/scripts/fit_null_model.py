"""Fit the null model of the scans, and compare the phenotype with the structure of the study."""

from pathlib import Path

from popdesic.epistasis.fit_null import fit_null_model
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    counts, warnings = fit_null_model(
        Path(snakemake.input.planes[0]).parent,
        Path(snakemake.params.sheet),
        list(map(Path, snakemake.input.get("axes", []))),
        Path(snakemake.output.model),
        Path(snakemake.output.structure),
        **snakemake.params.model,
    )
    for warning in warnings:
        log.warning("%s", warning)
    log_counts(log, counts)
