"""Export distances as text for other tools."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.distance.matrix import export_distances

with logged(snakemake.log[0], snakemake.input):
    export_distances(
        Path(snakemake.output[0]).parent,
        metric=snakemake.params.metric,
        n_sites=read_json(snakemake.input.panel)["n_sites"],
        min_called=snakemake.params.min_called,
        threads=snakemake.threads,
    )
