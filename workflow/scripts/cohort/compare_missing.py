"""Compare missing calls of founder cohorts, and of cases and controls."""

from pathlib import Path

from popdesic.cohort.missingness import compare_missing
from popdesic.cohort.phenotype import case_control, of_phenotype
from popdesic.cohort.samples import read_samples
from popdesic.core.log import logged

with logged(snakemake.log[0], snakemake.input) as log:
    params, given = snakemake.params, snakemake.input
    sheet = read_samples(Path(params.sheet))
    found = compare_missing(
        {
            cohort: Path(bed).with_suffix("")
            for cohort, bed in zip(params.cohorts, given.beds, strict=True)
        },
        params.founders,
        {
            phenotype or "phenotype": case_control(
                of_phenotype(sheet, phenotype, params.sheet), params.sheet
            )
            for phenotype in params.phenotypes
        },
        Path(given.panel),
        Path(snakemake.output.table),
        Path(snakemake.output.counts),
    )
    for one in found:
        log.info(
            "%s and %s: missing calls differ at %d of %d sites compared",
            *(one[key] for key in ("group", "other", "different", "compared")),
        )
