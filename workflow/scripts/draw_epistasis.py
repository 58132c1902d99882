"""Draw the figures of the epistasis scans."""

from pathlib import Path

from popdesic.epistasis.zoom import zoom_on_leads
from popdesic.io.log import logged
from popdesic.report.figures.epistasis import draw_epistasis

with logged(snakemake.log[0], snakemake.input) as log:
    out = Path(snakemake.output[0]).parent
    trait = snakemake.wildcards.get("trait", "")
    apart = snakemake.params.min_distance_bp
    orders = snakemake.params.orders
    zooms = zoom_on_leads(out.parent, orders, trait, min_distance_bp=apart)
    names = draw_epistasis(out.parent, orders, zooms, out, trait)
    log.info("drawn: %s", ", ".join(names))
