"""Rank the hits of one order."""

from pathlib import Path

from popdesic.core.files import read_json
from popdesic.core.log import log_counts, logged
from popdesic.engine.select import cpu_backend
from popdesic.epistasis.kin import read_relatives
from popdesic.epistasis.null_model import read_levels, read_null_model
from popdesic.epistasis.residual_scan import rank_residual_hits
from popdesic.epistasis.scan import NAMES
from popdesic.epistasis.significance import rank_hits

with logged(snakemake.log[0], snakemake.input) as log:
    order, params = snakemake.params.order, snakemake.params
    folder, out = Path(snakemake.input.planes[0]).parent, Path(snakemake.output.table)
    units = [Path(path) for path in snakemake.input.units]
    null = next(map(Path, snakemake.input.get("null", [])), None)
    model = Path(snakemake.input.model)
    ranking = {
        **params.limits,
        "backend": cpu_backend(1),
        "main_effects": next(map(Path, snakemake.input.get("main_effects", [])), None),
        "top": params.top,
        "max_per_site": params.max_per_site,
        "loci_out": Path(snakemake.output.loci),
        "tests": read_json(snakemake.input.plan)[NAMES[order]]["tests"],
    }
    kinship = map(Path, snakemake.input.get("kinship", []))
    ranking |= {"relatives": read_relatives(folder, kinship, Path(params.sheet))}
    if params.quantitative:
        counts = rank_residual_hits(folder, model, units, out, **ranking)
    else:
        ranking |= {"order": order, "score": params.score}
        ranking |= {"levels": read_levels(model) if params.score == "residuals" else None}
        ranking |= {"design": read_null_model(model).design}
        counts = rank_hits(folder, units, null, out, **ranking)
    log_counts(log, counts)
