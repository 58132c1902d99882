"""Export the panel of all cohorts as VCF-Zarr."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.export.zarr import export_zarr

with logged(snakemake.log[0], snakemake.input):
    export_zarr(
        [Path(path).with_suffix("") for path in snakemake.input.genotypes if path.endswith(".bed")],
        Path(snakemake.input.panel),
        Path(snakemake.output[0]),
        missing=snakemake.params.missing,
    )
