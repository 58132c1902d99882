"""Compute UMAPs of every space from nearest neighbours: geodesics and plain distances."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.maps.umap_maps import compute_umap, layout_backend, of_space

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    alphas = params.alphas
    size = params.n_samples, params.umap["neighbors"]
    backend = layout_backend(params.device, snakemake.threads, *size)
    unstable = list(outputs.get("instability", []))

    for k, space in enumerate(params.spaces):
        compute_umap(
            of_space(files.lists, alphas, k),
            Path(files.plain[k]),
            Path(files.scores),
            Path(files.samples),
            Path(params.sheet),
            **params.umap,
            tables=of_space(outputs.tables, alphas, k) | {"plain": Path(outputs.plain[k])},
            instability_out=Path(unstable[k]) if unstable else None,
            threads=snakemake.threads,
            backend=backend,
        )
        log.info("space %s", space)
