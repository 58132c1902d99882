"""Export principal components as PLINK's .eigenvec."""

from pathlib import Path

from popdesic.export.matrices import export_eigenvec
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input):
    export_eigenvec(Path(snakemake.input[0]), Path(snakemake.output[0]))
