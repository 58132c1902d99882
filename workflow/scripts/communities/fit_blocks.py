"""Fit a nested stochastic block model to a graph of samples."""

from pathlib import Path

from popdesic.communities.block_model import fit_blocks
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    missing = fit_blocks(
        Path(snakemake.input[0]),
        Path(snakemake.output[0]),
        python=snakemake.params.python,
        seed=snakemake.params.seed,
        threads=snakemake.threads,
    )
    if missing:
        log.warning("%s", missing)
        print(missing)
