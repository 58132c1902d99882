"""Join the columns of the sample sheet to the coordinates of all maps."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.maps.labels import label_maps

with logged(snakemake.log[0], snakemake.input):
    label_maps(
        dict(zip(map(Path, snakemake.input.maps), map(Path, snakemake.output), strict=True)),
        Path(snakemake.input.samples),
        Path(snakemake.params.sheet),
    )
