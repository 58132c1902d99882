"""Measure which kinships and identities the panel can resolve."""

from dataclasses import asdict
from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.engine.select import cpu_backend
from popdesic.relatives.independence import measure_resolution

with logged(snakemake.log[0], snakemake.input) as log:
    found = measure_resolution(
        [Path(planes).parent for planes in snakemake.input.planes],
        Path(snakemake.input.panel),
        Path(snakemake.output[0]),
        cpu_backend(snakemake.threads),
        max_mismatch=snakemake.params.max_mismatch,
    )
    log_counts(log, asdict(found))
