"""Rank the hits of the scans, analyse the best of them, and draw the figures of the stage."""

from pathlib import Path

from popdesic.cohort.phenotype import of_phenotype
from popdesic.cohort.samples import read_samples
from popdesic.core.log import log_counts, logged
from popdesic.epistasis.finished import Scans
from popdesic.epistasis.lead_regions import zoom_on_leads
from popdesic.epistasis.power import power_of_scans
from popdesic.epistasis.ranking import rank_scans
from popdesic.epistasis.refit import refit_hits
from popdesic.epistasis.relatedness import read_relatives
from popdesic.epistasis.replication import replicate_scans
from popdesic.report.figures.epistasis import draw_epistasis, read_tables
from popdesic.report.figures.epistasis_zoom import draw_power
from popdesic.report.figures.sites_scan import draw_sites

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs, params = snakemake.input, snakemake.output, snakemake.params
    phenotype, sheet = snakemake.wildcards.get("phenotype", ""), Path(params.sheet)
    beds = [Path(bed).with_suffix("") for bed in files.beds]
    scans = Scans(
        reorder=Path(files.planes[0]).parent,
        folder=Path(files.model).parent,
        orders=params.orders,
        units=params.units,
        permutations=params.permutations,
    )
    # Kinships, if they were computed.
    relatives = read_relatives(scans.reorder, map(Path, files.get("kinship", [])), sheet)
    for counts in rank_scans(scans, relatives, processes=snakemake.threads, **params.ranking):
        log_counts(log, counts)
    if out := outputs.get("refit"):  # with covariates
        tables = {order: scans.hits(order) for order in scans.orders}
        log_counts(log, refit_hits(scans.reorder, tables, scans.model, Path(out)))
    if power := outputs.get("power"):
        log_counts(log, power_of_scans(scans, params.models, Path(power), **params.power))
    if outputs.get("replication"):  # some of the samples were set aside
        samples = of_phenotype(read_samples(sheet), phenotype, params.sheet)
        log_counts(log, replicate_scans(scans, beds, samples, **params.replication))
    figures = Path(outputs.png[0]).parent
    results = figures.parent
    names = draw_sites(scans.folder / "sites.tsv", figures, phenotype)
    hits = read_tables(results, list(params.orders), phenotype)
    near = params.ranking["limits"]["min_distance_bp"]
    zooms = zoom_on_leads(results, hits, beds, phenotype, min_distance_bp=near)
    names += draw_epistasis(results, hits, zooms, figures, phenotype)
    if power:
        names += draw_power(Path(power), params.models, figures, phenotype)
    log.info("drawn: %s", ", ".join(names))
