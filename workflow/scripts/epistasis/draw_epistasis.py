"""Draw the figures of the epistasis scans."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.epistasis.zoom import zoom_on_leads
from popdesic.report.figures.epistasis import draw_epistasis, read_tables

with logged(snakemake.log[0], snakemake.input) as log:
    out = Path(snakemake.output[0]).parent
    trait = snakemake.wildcards.get("trait", "")
    apart = snakemake.params.min_distance_bp
    hits = read_tables(out.parent, snakemake.params.orders, trait)
    beds = [Path(bed).with_suffix("") for bed in snakemake.input.beds]
    zooms = zoom_on_leads(out.parent, hits, beds, trait, min_distance_bp=apart)
    names = draw_epistasis(out.parent, hits, zooms, out, trait)
    log.info("drawn: %s", ", ".join(names))
