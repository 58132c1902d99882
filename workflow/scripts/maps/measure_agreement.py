"""Compare the communities of the study with the labels of its samples."""

from pathlib import Path

from popdesic.communities.agreement import compare_labels
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input):
    compare_labels(
        Path(snakemake.input.partition),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
        Path(snakemake.output[0]),
    )
