"""Export distances as PLINK's .mibs, PHYLIP's matrix and a neighbour-joining tree."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.export.matrices import export_trees_and_matrices

with logged(snakemake.log[0], snakemake.input):
    export_trees_and_matrices(
        Path(snakemake.input.samples).parent,
        snakemake.params.formats,
        Path(snakemake.output[0]).parent,
        metric=snakemake.params.metric,
        n_sites=read_json(snakemake.input.panel)["n_sites"],
        min_called=snakemake.params.min_called,
    )
