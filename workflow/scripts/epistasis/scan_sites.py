"""Fit the null model of the scans, and test the main effect of every scanned site."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.select import cpu_backend
from popdesic.epistasis.fit_null import fit_null_model, place_cohorts
from popdesic.epistasis.relatedness import read_relatives
from popdesic.epistasis.single_sites import scan_single_sites

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, axes = snakemake.input, snakemake.output, None
    if files.axes:
        beds = [Path(bed).with_suffix("") for bed in files.genotypes]
        axes = place_cohorts(beds, *map(Path, files.axes), cpu_backend(snakemake.threads))
    folder, sheet = Path(files.planes[0]).parent, Path(snakemake.params.sheet)
    model = Path(outputs.model)
    # Kinships, if they were computed.
    relatives = read_relatives(folder, map(Path, files.get("kinship", [])), sheet)
    counts, warnings = fit_null_model(
        folder,
        sheet,
        axes,
        model,
        Path(outputs.structure),
        relatives=relatives,
        **snakemake.params.model,
    )
    for warning in warnings:
        log.warning("%s", warning)
    log_counts(log, counts)
    log_counts(log, scan_single_sites(folder, model, Path(outputs.sites), relatives))
