"""Run one unit of an exhaustive scan."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.select import select_backend
from popdesic.epistasis.residual_scan import scan_residual_unit
from popdesic.epistasis.scan import scan_unit

with logged(snakemake.log[0], snakemake.input) as log:
    score = snakemake.params.score
    backend = select_backend(snakemake.params.device, snakemake.threads, scans=True)
    log.info("device: %s", backend.describe())
    folder, out = Path(snakemake.input.planes[0]).parent, Path(snakemake.output[0])
    unit = dict(
        unit=int(snakemake.wildcards.unit),
        n_units=snakemake.params.n_units,
        top=snakemake.params.top,
        device=snakemake.params.device,
        **snakemake.params.limits,
    )
    if score == "residuals":
        null = Path(snakemake.input.null[0])
        counts = scan_residual_unit(folder, null, backend, out, **unit)
    else:
        order = int(snakemake.wildcards.order)
        counts = scan_unit(folder, backend, out, order=order, score=score, **unit)
    log_counts(log, counts)
