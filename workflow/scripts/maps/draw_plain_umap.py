"""Draw the UMAP of the plain distances of one space."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.maps.umap_maps import compute_umap, plain_of_space

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    compute_umap(
        {},
        plain_of_space(
            snakemake.wildcards.space,
            Path(files.scores),
            params.pcs,
            Path(files.samples).parent,
            graph=Path(files.source[0]),
            n_sites=read_json(Path(files.panel))["n_sites"],
            **params.distance,
        ),
        Path(files.scores),
        Path(files.samples),
        Path(params.sheet),
        **params.umap,
        tables={"plain": Path(snakemake.output[0])},
        threads=snakemake.threads,
    )
    log.info("space %s", snakemake.wildcards.space)
