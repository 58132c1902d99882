"""Export the panel of all cohorts as VCF."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.export.panel import export_vcf

with logged(snakemake.log[0], snakemake.input):
    export_vcf(
        [Path(path).with_suffix("") for path in snakemake.input.genotypes if path.endswith(".bed")],
        Path(snakemake.input.panel),
        Path(snakemake.output[0]),
        missing=snakemake.params.missing,
    )
