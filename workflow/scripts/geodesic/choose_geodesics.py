"""Choose graph, alpha and components of the geodesics of each space, by sites that are held out."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.geodesic.choose_geodesics import choose_geodesics

with logged(snakemake.log[0], snakemake.input) as log:
    chosen = choose_geodesics(
        [Path(bed).with_suffix("") for bed in snakemake.input.genotypes],
        Path(snakemake.input.axes),
        Path(snakemake.input.about),
        Path(snakemake.input.panel),
        **snakemake.params.choice,
        out=Path(snakemake.output[0]),
        threads=snakemake.threads,
    )
    for space, choice in chosen.items():
        log.info("%s: %s", space, choice["why"])
