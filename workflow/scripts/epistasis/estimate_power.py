"""Estimate the power of the epistasis scans."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.epistasis.power import estimate_power

with logged(snakemake.log[0], snakemake.input) as log:
    nulls = zip(snakemake.params.orders, map(Path, snakemake.input.nulls), strict=True)
    power = estimate_power(
        Path(snakemake.input.samples),
        Path(snakemake.input.plan),
        dict(nulls),
        snakemake.params.models,
        Path(snakemake.output[0]),
        score=snakemake.params.score,
        seed=snakemake.params.seed,
    )
    log_counts(log, power)
