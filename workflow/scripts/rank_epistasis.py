"""Rank the hits of one order."""

from pathlib import Path

from popdesic.epistasis.scan import NAMES
from popdesic.epistasis.significance import rank_hits
from popdesic.io.files import read_json
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    order = snakemake.params.order
    counts = rank_hits(
        Path(snakemake.input.planes[0]).parent,
        [Path(path) for path in snakemake.input.units],
        next(map(Path, snakemake.input.get("null", [])), None),
        Path(snakemake.output.table),
        order=order,
        score=snakemake.params.score,
        top=snakemake.params.top,
        max_per_site=snakemake.params.max_per_site,
        loci_out=Path(snakemake.output.loci),
        tests=read_json(snakemake.input.plan)[NAMES[order]]["tests"],
    )
    log_counts(log, counts)
