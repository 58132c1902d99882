"""Rank the hits of one order."""

from pathlib import Path

from popdesic.epistasis.kin import read_relatives
from popdesic.epistasis.scan import NAMES
from popdesic.epistasis.significance import rank_hits
from popdesic.io.files import read_json
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    order = snakemake.params.order
    folder = Path(snakemake.input.planes[0]).parent
    counts = rank_hits(
        folder,
        [Path(path) for path in snakemake.input.units],
        next(map(Path, snakemake.input.get("null", [])), None),
        Path(snakemake.output[0]),
        order=order,
        score=snakemake.params.score,
        top=snakemake.params.top,
        tests=read_json(snakemake.input.plan)[NAMES[order]]["tests"],
        relatives=read_relatives(
            folder, map(Path, snakemake.input.get("kinship", [])), Path(snakemake.params.sheet)
        ),
    )
    log_counts(log, counts)
