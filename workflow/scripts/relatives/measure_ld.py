"""Measure LD between panel sites in the founders, and write the lists of LD pruning."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.needs import LD_BYTES
from popdesic.engine.select import select_backend
from popdesic.relatives.ld_scan import LdOptions, measure_ld

with logged(snakemake.log[0], snakemake.input) as log:
    backend = select_backend(snakemake.params.device, snakemake.threads, device_bytes=LD_BYTES)
    log.info("device: %s", backend.describe())
    counts = measure_ld(
        [Path(bed).with_suffix("") for bed in snakemake.input.genotypes],
        snakemake.params.sources,
        Path(snakemake.input.panel),
        next(map(Path, snakemake.input.get("unrelated", [])), None),
        {name: Path(path) for name, path in snakemake.output.items()},
        backend,
        LdOptions(**snakemake.params.options),
    )
    log_counts(log, counts)
