"""Export trees of samples and of populations, with metadata, for Auspice."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.export.auspice import export_trees

with logged(snakemake.log[0], snakemake.input):
    panel = read_json(snakemake.input.panel)
    export_trees(
        Path(snakemake.input.samples).parent,
        [Path(path) for path in snakemake.input.populations],
        Path(snakemake.params.sheet),
        Path(snakemake.output[0]).parent,
        column=snakemake.params.column,
        color_by=snakemake.params.color_by,
        panel=panel["digest"],
        metric=snakemake.params.metric,
        n_sites=panel["n_sites"],
        min_called=snakemake.params.min_called,
    )
