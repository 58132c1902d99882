"""Rank the hits of one order."""

from pathlib import Path

from popdesic.epistasis.scan import NAMES
from popdesic.epistasis.significance import rank_hits
from popdesic.epistasis.trait_scan import rank_trait_hits
from popdesic.io.files import read_json
from popdesic.io.log import log_counts, logged

with logged(snakemake.log[0], snakemake.input) as log:
    order, params = snakemake.params.order, snakemake.params
    folder, out = Path(snakemake.input.planes[0]).parent, Path(snakemake.output[0])
    units = [Path(path) for path in snakemake.input.units]
    null = next(map(Path, snakemake.input.get("null", [])), None)
    tests = read_json(snakemake.input.plan)[NAMES[order]]["tests"]
    ranking = {"top": params.top, "tests": tests}
    if params.quantitative:
        model = Path(snakemake.input.model)
        counts = rank_trait_hits(folder, model, units, null, out, **ranking)
    else:
        counts = rank_hits(folder, units, null, out, order=order, score=params.score, **ranking)
    log_counts(log, counts)
