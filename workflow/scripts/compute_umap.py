"""Compute UMAPs of one space: geodesics, plain distances, and their stability."""

from pathlib import Path

from popdesic.distance.matrix import Distances, leading_scores
from popdesic.embedding.umap_maps import compute_umap
from popdesic.io.files import read_json
from popdesic.io.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    if snakemake.wildcards.space == "pcs":
        plain = leading_scores(Path(files.scores), params.pcs)
    else:
        plain = Distances(
            Path(files.source[0]).parent,
            n_sites=read_json(Path(files.panel))["n_sites"],
            **params.distance,
        )
    outputs = snakemake.output

    def by_alpha(paths):
        return dict(zip(params.alphas, map(Path, paths), strict=True)) if paths else None

    unstable = list(outputs.get("instability", []))
    compute_umap(
        by_alpha(files.lengths),
        plain,
        Path(files.scores),
        Path(files.samples),
        Path(params.sheet),
        **params.umap,
        tables=by_alpha(outputs.tables) | {"plain": Path(outputs.plain)},
        instability_out=Path(unstable[0]) if unstable else None,
        frame=by_alpha(files.get("frame")),
        founders=set(params.founders),
        refits=by_alpha(outputs.get("refits")),
    )
