"""Forecast the epistasis scans and refuse those that would take too long."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.epistasis.scan import plan_scan

with logged(snakemake.log[0], snakemake.input) as log:
    scores = snakemake.params.scores
    residuals = scores[2] == "residuals" and 2 in snakemake.params.orders
    backend = select_backend(snakemake.params.device, snakemake.threads, scans=True)
    log.info("device: %s", backend.describe())
    forecast = plan_scan(
        Path(snakemake.input[0]).parent,
        backend,
        Path(snakemake.output[0]),
        orders=snakemake.params.orders,
        score=scores[3],
        residuals=residuals,
        permutations=snakemake.params.permutations,
        screen=snakemake.params.screen,
        top=snakemake.params.top,
        max_device_hours=snakemake.params.max_device_hours,
    )
    log_counts(log, forecast)
