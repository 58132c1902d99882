"""Test sets of sites for interactions, and draw them."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.epistasis.relatedness import read_relatives
from popdesic.epistasis.study_sets import scan_study_sets
from popdesic.report.figures.sets_scan import draw_forest, draw_sets

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs = snakemake.input, snakemake.output
    folder, sheet = Path(files.planes[0]).parent, Path(snakemake.params.sheet)
    # Kinships, if they were computed.
    relatives = read_relatives(folder, map(Path, files.get("kinship", [])), sheet)
    table = Path(outputs.table)
    given = Path(files.sets), table, relatives, snakemake.threads
    replication = None
    if by_cohort := outputs.get("by_cohort"):  # of two cohorts or more
        replication = Path(outputs.replication), Path(by_cohort), snakemake.params.founders
    log_counts(log, scan_study_sets(folder, Path(files.model), *given, replication))
    phenotype = snakemake.wildcards.get("phenotype", "")
    names = draw_sets(table, folder / "sites.tsv", Path(outputs.png[0]).parent, phenotype)
    if by_cohort:
        names += draw_forest(*replication[:2], Path(outputs.png[0]).parent, phenotype)
    log.info("drawn: %s", ", ".join(names))
