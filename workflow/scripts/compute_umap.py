"""Compute UMAPs of every space: geodesics, plain distances, and their stability."""

from pathlib import Path

from popdesic.distance.matrix import Distances, leading_scores, set_apart, shared_distances
from popdesic.embedding.umap_maps import compute_umap
from popdesic.engine.needs import layout_bytes
from popdesic.engine.select import select_backend
from popdesic.io.files import read_json
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

    def of_space(paths, k):
        """Paths of the k-th space by alpha, if any."""
        some = list(paths or [])[k * len(alphas) : (k + 1) * len(alphas)]
        return dict(zip(alphas, map(Path, some), strict=True)) if some else None

    for k, space in enumerate(params.spaces):
        if space == "pcs":
            plain = leading_scores(Path(files.scores), params.pcs)
        elif space == "ibd":
            plain = set_apart(shared_distances(Path(files.shared[0])))[0].__getitem__
        else:
            plain = Distances(
                Path(files.samples).parent,
                n_sites=read_json(Path(files.panel))["n_sites"],
                **params.distance,
            )
        unstable = list(outputs.get("instability", []))
        compute_umap(
            of_space(files.lengths, k),
            plain,
            Path(files.scores),
            Path(files.samples),
            Path(params.sheet),
            **params.umap,
            tables=of_space(outputs.tables, k) | {"plain": Path(outputs.plain[k])},
            instability_out=Path(unstable[k]) if unstable else None,
            frame=of_space(files.get("frame"), k),
            founders=set(params.founders),
            refits=of_space(outputs.get("refits"), k),
            threads=snakemake.threads,
            backend=backend,
        )
        log.info("space %s", space)
