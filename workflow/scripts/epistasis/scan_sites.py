"""Test the main effect of every scanned site."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.epistasis.kin import read_relatives
from popdesic.epistasis.single_sites import scan_single_sites

with logged(snakemake.log[0], snakemake.input) as log:
    folder, sheet = Path(snakemake.input.planes[0]).parent, Path(snakemake.params.sheet)
    counts = scan_single_sites(
        folder,
        Path(snakemake.input.null),
        Path(snakemake.output[0]),
        read_relatives(folder, map(Path, snakemake.input.get("kinship", [])), sheet),
    )
    log_counts(log, counts)
