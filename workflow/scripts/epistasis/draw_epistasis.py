"""Draw the figures of the epistasis scans."""

from pathlib import Path

from popdesic.core.log import logged
from popdesic.epistasis.zoom import zoom_on_leads
from popdesic.report.figures.epistasis import draw_epistasis, read_tables

with logged(snakemake.log[0], snakemake.input) as log:
    out = Path(snakemake.output[0]).parent
    phenotype = snakemake.wildcards.get("phenotype", "")
    apart = snakemake.params.min_distance_bp
    hits = read_tables(out.parent, snakemake.params.orders, phenotype)
    beds = [Path(bed).with_suffix("") for bed in snakemake.input.beds]
    zooms = zoom_on_leads(out.parent, hits, beds, phenotype, min_distance_bp=apart)
    names = draw_epistasis(out.parent, hits, zooms, out, phenotype)
    log.info("drawn: %s", ", ".join(names))
