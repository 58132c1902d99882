"""Compute UMAPs of every space from nearest neighbours: geodesics and plain distances."""

from pathlib import Path

from popdesic.embedding.umap_maps import compute_umap
from popdesic.engine.needs import layout_bytes
from popdesic.engine.select import select_backend
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    alphas = params.alphas
    backend = select_backend(
        params.device,
        snakemake.threads,
        device_bytes=layout_bytes(params.n_samples, params.umap["neighbors"]),
    )
    log.info("device: %s", backend.describe())
    unstable = list(outputs.get("instability", []))

    def of_space(paths, k):
        """Paths of the k-th space by alpha."""
        some = list(paths)[k * len(alphas) : (k + 1) * len(alphas)]
        return dict(zip(alphas, map(Path, some), strict=True))

    for k, space in enumerate(params.spaces):
        compute_umap(
            of_space(files.lists, k),
            Path(files.plain[k]),
            Path(files.scores),
            Path(files.samples),
            Path(params.sheet),
            **params.umap,
            tables=of_space(outputs.tables, k) | {"plain": Path(outputs.plain[k])},
            instability_out=Path(unstable[k]) if unstable else None,
            threads=snakemake.threads,
            backend=backend,
        )
        log.info("space %s", space)
