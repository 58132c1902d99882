"""Draw the figures of the epistasis scans."""

from pathlib import Path

from popdesic.io.log import logged
from popdesic.report.figures.epistasis import draw_epistasis

with logged(snakemake.log[0], snakemake.input) as log:
    out = Path(snakemake.output[0]).parent
    trait = snakemake.wildcards.get("trait", "")
    apart = snakemake.params.min_distance_bp
    names = draw_epistasis(out.parent, snakemake.params.orders, out, trait, min_distance_bp=apart)
    log.info("drawn: %s", ", ".join(names))
