"""Scan permuted phenotypes and record each scan's best score."""

from pathlib import Path

from popdesic.epistasis.device import scan_backend
from popdesic.epistasis.significance import permute_scan
from popdesic.epistasis.trait_scan import permute_trait_scan
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    score = snakemake.params.score
    backend = scan_backend(snakemake.params.device, snakemake.threads, score)
    log.info("device: %s", backend.describe())
    folder, out = Path(snakemake.input.planes[0]).parent, Path(snakemake.output[0])
    how = dict(
        permutations=snakemake.params.permutations,
        seed=snakemake.params.seed,
        **snakemake.params.limits,
    )
    if score == "residuals":
        null = Path(snakemake.input.null[0])
        warnings = permute_trait_scan(folder, null, backend, out, **how)
    else:
        order = int(snakemake.wildcards.order)
        warnings = permute_scan(folder, backend, out, order=order, score=score, **how)
    for warning in warnings:
        log.warning("%s", warning)
