"""Compute UMAPs of every space: geodesics, plain distances, and their stability."""

from pathlib import Path

from popdesic.distance.matrix import Distances, leading_scores, set_apart, shared_distances
from popdesic.embedding.umap_maps import compute_umap, layout_backend, of_space
from popdesic.io.files import read_json
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    alphas = params.alphas
    size = params.n_samples, params.umap["neighbors"]
    backend = layout_backend(params.device, snakemake.threads, *size)

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
            of_space(files.lengths, alphas, k),
            plain,
            Path(files.scores),
            Path(files.samples),
            Path(params.sheet),
            **params.umap,
            tables=of_space(outputs.tables, alphas, k) | {"plain": Path(outputs.plain[k])},
            instability_out=Path(unstable[k]) if unstable else None,
            frame=of_space(files.get("frame"), alphas, k),
            founders=set(params.founders),
            refits=of_space(outputs.get("refits"), alphas, k),
            threads=snakemake.threads,
            backend=backend,
        )
        log.info("space %s", space)
