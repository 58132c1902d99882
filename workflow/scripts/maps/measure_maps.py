"""Measure how well each map preserves the distances that it was computed from."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import logged
from popdesic.distance.store import open_distances
from popdesic.maps.quality import measure_maps

with logged(snakemake.log[0], snakemake.input) as log:
    out = Path(snakemake.output.quality)
    params = snakemake.params
    table = measure_maps(
        out.parent / "coordinates",
        open_distances(
            params.store,
            out.parents[1] / "distance",
            n_sites=read_json(Path(snakemake.input.panel))["n_sites"],
            **params.distance,
        ),
        dict(zip(map(tuple, params.maps), map(Path, snakemake.input.lengths), strict=True)),
        Path(snakemake.input.samples),
        Path(params.sheet),
        label=params.label,
        refits=params.refits,
        further=params.further,
        instability=dict(zip(params.spaces, map(Path, snakemake.input.instability), strict=False)),
        instability_out=next(map(Path, snakemake.output.get("instability", [])), None),
        out=out,
        threads=snakemake.threads,
    )
    log.info("%d rows", len(table))
