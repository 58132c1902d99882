"""Fit logistic regressions of the best hits."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.epistasis.refit import refit_hits

with logged(snakemake.log[0], snakemake.input) as log:
    tables = zip(snakemake.params.orders, map(Path, snakemake.input.hits), strict=True)
    counts = refit_hits(
        Path(snakemake.input.planes[0]).parent,
        dict(tables),
        Path(snakemake.input.null),
        Path(snakemake.output[0]),
    )
    log_counts(log, counts)
