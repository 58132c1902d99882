"""Test sets of sites for interactions, and draw them."""

from pathlib import Path

from popdesic.core.log import log_counts, logged
from popdesic.epistasis.relatedness import read_relatives
from popdesic.epistasis.study_sets import BetweenCohorts, Environments, scan_study_sets
from popdesic.report.figures.sets_scan import draw_forest, draw_sets

with logged(snakemake.log[0], snakemake.input) as log:
    files, outputs = snakemake.input, snakemake.output
    folder, sheet = Path(files.planes[0]).parent, Path(snakemake.params.sheet)
    # Kinships, if they were computed.
    relatives = read_relatives(folder, map(Path, files.get("kinship", [])), sheet)
    table = Path(outputs.table)
    given = Path(files.sets), table, relatives, snakemake.threads
    between = None
    if by_cohort := outputs.get("by_cohort"):  # of two cohorts or more
        restrict = files.get("restrict")
        between = BetweenCohorts(
            [Path(bed).with_suffix("") for bed in files.beds],
            Path(restrict) if restrict else None,
            snakemake.params.founders,
            snakemake.params.transform,
            *(Path(outputs[name]) for name in ("scores", "replication", "by_cohort")),
            snakemake.params.tile_code,
            snakemake.params.code,
        )
    outside = outputs.get("outside")
    further = {
        "pairs": Path(files.pairs) if files.get("pairs") else None,
        "environments": outside and Environments(snakemake.params.environments, Path(outside)),
    }
    log_counts(log, scan_study_sets(folder, Path(files.model), *given, between, **further))
    phenotype, figures = snakemake.wildcards.get("phenotype", ""), Path(outputs.png[0]).parent
    names = draw_sets(table, folder / "sites.tsv", figures, phenotype)
    if between:
        names += draw_forest(between.replication, between.by_cohort, figures, phenotype)
    log.info("drawn: %s", ", ".join(names))
