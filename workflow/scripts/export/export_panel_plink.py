"""Export the panel of all cohorts as PLINK files."""

from pathlib import Path

from popdesic.cohort.samples import samples_in_order
from popdesic.core.log import logged
from popdesic.export.panel import export_plink

with logged(snakemake.log[0], snakemake.input):
    export_plink(
        [Path(path).with_suffix("") for path in snakemake.input if path.endswith(".bed")],
        samples_in_order(Path(snakemake.params.sheet), snakemake.params.cohorts),
        Path(snakemake.output[0]).with_suffix(""),
    )
