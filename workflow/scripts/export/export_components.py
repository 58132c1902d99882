"""Export principal components as PLINK's .eigenvec."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.export.matrices import export_eigenvec

with logged(snakemake.log[0], snakemake.input):
    export_eigenvec(Path(snakemake.input[0]), Path(snakemake.output[0]))
