"""Compute densMAP or t-SNE of the geodesic distances of one space."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.maps.further_maps import compute_further_map
from popdesic.maps.umap_maps import layout_backend

with logged(snakemake.log[0], snakemake.input) as log:
    files, params = snakemake.input, snakemake.params
    frames = list(files.get("frame", [])) or [None] * len(files.lengths)
    backend = None
    if snakemake.wildcards.method == "densmap":
        size = params.n_samples, params.layout["neighbors"]
        backend = layout_backend(params.device, snakemake.threads, *size)
    for lengths, frame, table in zip(files.lengths, frames, snakemake.output.tables, strict=True):
        compute_further_map(
            snakemake.wildcards.method,
            Path(lengths),
            Path(files.scores),
            Path(files.samples),
            Path(params.sheet),
            **params.layout,
            out=Path(table),
            frame=Path(frame) if frame else None,
            founders=set(params.founders),
            threads=snakemake.threads,
            backend=backend,
        )
        log.info("%s", table)
