"""Compute UMAPs of spaces: geodesics, their stability, and perhaps plain distances."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.distance.matrix import leading_scores
from popdesic.maps.umap_maps import compute_umap, layout_backend, of_space, plain_of_space

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    alphas, baselines = params.alphas, list(outputs.get("plain", []))
    size = params.n_samples, params.umap["neighbors"]
    backend = layout_backend(params.device, snakemake.threads, *size)
    unstable = list(outputs.get("instability", []))

    components = None
    if "pcs" in params.spaces:
        components = leading_scores(Path(files.scores), params.pcs).shape[1]

    for k, space in enumerate(params.spaces):
        tables, plain = of_space(outputs.tables, alphas, k), None
        if baselines:
            tables["plain"] = Path(baselines[k])
            plain = plain_of_space(
                params.store,
                space,
                Path(files.scores),
                params.pcs,
                Path(files.samples).parent,
                graph=Path(next(iter(files.shared), "")),
                n_sites=read_json(Path(files.panel))["n_sites"],
                **params.distance,
            )
        compute_umap(
            of_space(files.lengths, alphas, k),
            plain,
            Path(files.scores),
            Path(files.samples),
            Path(params.sheet),
            **params.umap,
            tables=tables,
            components=components if space == "pcs" else None,
            instability_out=Path(unstable[k]) if unstable else None,
            frame=of_space(files.get("frame"), alphas, k),
            founders=set(params.founders),
            refits=of_space(outputs.get("refits"), alphas, k),
            threads=snakemake.threads,
            backend=backend,
        )
        log.info("space %s", space)
