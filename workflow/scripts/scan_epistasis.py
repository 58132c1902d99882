"""Run one unit of an exhaustive scan."""

from pathlib import Path

from popdesic.epistasis.device import scan_backend
from popdesic.epistasis.scan import scan_unit
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    backend = scan_backend(
        snakemake.params.device, snakemake.threads, snakemake.params.scan["score"]
    )
    log.info("device: %s", backend.describe())
    counts = scan_unit(
        Path(snakemake.input.planes[0]).parent,
        backend,
        Path(snakemake.output[0]),
        order=int(snakemake.wildcards.order),
        unit=int(snakemake.wildcards.unit),
        n_units=snakemake.params.n_units,
        top=snakemake.params.top,
        **snakemake.params.scan,
    )
    log_counts(log, counts)
