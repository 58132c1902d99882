"""Join the columns of the sample sheet to the coordinates of all maps."""

from pathlib import Path

from popdesic.embedding.labels import label_maps
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input):
    label_maps(
        dict(zip(map(Path, snakemake.input.maps), map(Path, snakemake.output), strict=True)),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
    )
