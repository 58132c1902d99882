"""Freeze the list of sites that the founders define."""

from pathlib import Path

from popdesic.log import log_counts, logged
from popdesic.panel import build_panel

with logged(snakemake.log[0]) as log:
    steps = build_panel(
        dict(zip(snakemake.params.founders, map(Path, snakemake.input), strict=True)),
        Path(snakemake.output.sites),
        Path(snakemake.output.counts),
        **snakemake.params.filters,
    )
    log_counts(log, steps)
