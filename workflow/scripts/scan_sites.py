"""Test the main effect of every scanned site."""

from pathlib import Path

from popdesic.epistasis.single_sites import scan_sites
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    counts = scan_sites(
        Path(snakemake.input.planes[0]).parent,
        Path(snakemake.input.null),
        Path(snakemake.output[0]),
    )
    log_counts(log, counts)
